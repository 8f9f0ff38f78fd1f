//! The two halves of what a browser loads: nobody needs the pages of both, and each is loaded whole before a page comes alive.
//!
//! The server has both (features `school` and `ops` together); each build for the browser has one.

use leptos::prelude::*;

/// The pages of ops and admins, by the beginnings of their paths; everything else is the school's.
#[cfg(feature = "ssr")]
const OPS: &[&str] = &[
    "/panel",
    "/records",
    "/arrivals",
    "/approvals",
    "/compensated",
    "/failures",
    "/bulks",
    "/audit",
];

/// The options by which the scripts of the page that is being rendered are found.
#[cfg(feature = "ssr")]
pub(crate) fn scripts_of(options: &LeptosOptions) -> LeptosOptions {
    let parts = use_context::<axum::http::request::Parts>();
    if !parts.is_some_and(|parts| is_ops(parts.uri.path())) {
        return options.clone();
    }
    let mut scripts = options.clone();
    scripts.output_name = "ops".into();
    scripts.hash_file = options.hash_file.replace("hash.txt", "ops.txt").into();
    scripts
}

#[cfg(feature = "ssr")]
fn is_ops(path: &str) -> bool {
    let below = |page: &&str| {
        path.strip_prefix(*page)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    OPS.iter().any(below)
}

/// A page of the other half: the browser asks the server for it, which sends it with its own half.
#[cfg(not(all(feature = "school", feature = "ops")))]
#[component]
pub(crate) fn OtherHalf() -> impl IntoView {
    let url = leptos_router::hooks::use_url().get_untracked();
    let query = if url.search().is_empty() {
        String::new()
    } else {
        format!("?{}", url.search())
    };
    let address = format!("{}{query}{}", url.path(), url.hash());
    // The router writes the address right after this. What it has written is replaced, or one step would be two on the way back.
    let load = move || window().location().replace(&address).map(drop);
    set_timeout(
        move || load().unwrap_or_default(),
        std::time::Duration::ZERO,
    );
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::is_ops;

    #[test]
    fn each_page_has_its_half() {
        for path in ["/panel", "/records/12", "/audit", "/bulks/new"] {
            assert!(is_ops(path), "{path}");
        }
        for path in ["/", "/tasks/1", "/progress", "/recordsx", "/rewards"] {
            assert!(!is_ops(path), "{path}");
        }
    }
}
