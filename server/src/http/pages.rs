//! The pages, their server functions, and the files that the browser loads for them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use app::{App, path, shell};
use axum::{
    Form, Router,
    extract::{FromRef, Request},
    middleware::{Next, from_fn},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use axum_extra::extract::{
    CookieJar,
    cookie::{Cookie, SameSite},
};
use engine::Engine;
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};
use leptos::{config::Env, nonce::use_nonce, prelude::*};
use leptos_axum::{LeptosRoutes, ResponseOptions, generate_route_list};
use serde::Deserialize;
use tower::ServiceBuilder;
use tower_http::{services::ServeDir, set_header::SetResponseHeaderLayer};

use super::AppState;

/// Served from memory: browsers ask for it on pages that are not ours to design, too.
const FAVICON: &str = include_str!("../../../style/favicon.svg");

/// The built front end cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("YICI_SITE_DIR: there is no built front end in {}; `make build` makes one", .0.display())]
pub struct SiteMissing(PathBuf);

/// The built front end.
#[derive(Debug, Clone)]
pub struct Site {
    options: LeptosOptions,
}

impl Site {
    /// Looks for the front end, so that what is missing is found before anybody asks for a page.
    ///
    /// # Errors
    /// [`SiteMissing`] when the files are not there.
    pub fn find(dir: &Path) -> Result<Self, SiteMissing> {
        let missing = || SiteMissing(dir.to_owned());
        let dir = std::path::absolute(dir).map_err(|_| missing())?;
        // Names carry hashes in a release build; in development they do not.
        let hash_file = dir.join("hash.txt");
        let hashed = hash_file.is_file();
        if !hashed && !dir.join("pkg/yici.js").is_file() {
            return Err(missing());
        }
        let options = LeptosOptions::builder()
            .output_name("yici")
            .site_root(dir.to_string_lossy().into_owned())
            .site_pkg_dir("pkg")
            .hash_files(hashed)
            .hash_file(Arc::from(hash_file.to_string_lossy()))
            .env(Env::PROD)
            .build();
        Ok(Self { options })
    }

    /// What the pages' shell needs to know.
    pub fn options(&self) -> LeptosOptions {
        self.options.clone()
    }
}

/// The pages, their server functions and their forms.
pub fn router(state: &AppState) -> Router<AppState> {
    let context = context(state.engine.clone());
    let options = state.options.clone();
    let routes = generate_route_list(App);
    Router::new()
        .route("/language", post(choose_language))
        .leptos_routes_with_context(state, routes, context.clone(), move || {
            shell(options.clone())
        })
        .fallback(leptos_axum::render_app_to_stream_with_context(context, {
            let options = state.options.clone();
            move || shell(options.clone())
        }))
        .layer(from_fn(never_stored))
}

/// The files, which know nobody: no identity is looked up for them.
pub fn files(state: &AppState) -> Router<AppState> {
    let kept = if state.options.hash_files {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let pkg = ServiceBuilder::new()
        .layer(SetResponseHeaderLayer::if_not_present(
            CACHE_CONTROL,
            move |response: &http::Response<_>| {
                response
                    .status()
                    .is_success()
                    .then(|| HeaderValue::from_static(kept))
            },
        ))
        .service(
            ServeDir::new(format!("{}/pkg", state.options.site_root))
                .precompressed_br()
                .precompressed_gzip(),
        );
    Router::new()
        .nest_service("/pkg", pkg)
        .route("/favicon.svg", get(favicon))
        .route("/favicon.ico", get(favicon))
}

async fn favicon() -> impl IntoResponse {
    (
        [
            (CONTENT_TYPE, "image/svg+xml"),
            (CACHE_CONTROL, "public, max-age=86400"),
        ],
        FAVICON,
    )
}

/// What components and server functions find: the engine; and with each page the policy that permits its own scripts only.
fn context(engine: Engine) -> impl Fn() + Clone + Send + Sync + 'static {
    move || {
        provide_context(engine.clone());
        let (Some(nonce), Some(response)) = (use_nonce(), use_context::<ResponseOptions>()) else {
            return;
        };
        let policy = format!(
            "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; \
             connect-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; \
             object-src 'none'"
        );
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            response.insert_header(CONTENT_SECURITY_POLICY, policy);
        }
    }
}

/// Pages and answers of server functions are personal and of the moment.
async fn never_stored(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response
        .headers_mut()
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A chosen language, and the page to go back to.
#[derive(Deserialize)]
struct Language {
    lang: String,
    back: String,
}

/// How long a chosen language is remembered.
const LANGUAGE_DAYS: i64 = 365;

async fn choose_language(jar: CookieJar, Form(form): Form<Language>) -> Response {
    let known = matches!(form.lang.as_str(), "zh" | "en");
    let back = Redirect::to(path::own(&form.back).unwrap_or("/"));
    if !known {
        return back.into_response();
    }
    let cookie = Cookie::build(("lang", form.lang))
        .path("/")
        .same_site(SameSite::Lax)
        .max_age(time::Duration::days(LANGUAGE_DAYS))
        .build();
    (jar.add(cookie), back).into_response()
}

/// The pages' options as a part of the handlers' state.
impl FromRef<AppState> for LeptosOptions {
    fn from_ref(state: &AppState) -> Self {
        state.options.clone()
    }
}
