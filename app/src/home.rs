//! `/`: sign-in, or the way to the page that an account starts on.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::{
    components::{Elsewhere, PageHead, fault_view},
    path,
    session::AccountResource,
    text::words,
};

/// `/`.
#[component]
pub(crate) fn HomePage() -> impl IntoView {
    let account = expect_context::<AccountResource>().0;
    view! {
        <Suspense>
            {move || Suspend::new(async move {
                match account.await {
                    Ok(Some(account)) => {
                        let home = next_untracked().unwrap_or_else(|| account.role.home().to_owned());
                        view! { <Elsewhere path=home/> }.into_any()
                    }
                    Ok(None) => view! { <SignIn/> }.into_any(),
                    Err(fault) => fault_view(fault),
                }
            })}
        </Suspense>
    }
}

/// The page that the reader wanted before signing in.
fn next_untracked() -> Option<String> {
    let next = use_query_map().with_untracked(|query| query.get("next"))?;
    path::own(&next).map(str::to_owned)
}

#[component]
fn SignIn() -> impl IntoView {
    let words = words();
    let query = use_query_map();
    let (error, name) = query.with_untracked(|query| (query.get("error"), query.get("name")));
    let error = error.map(|code| {
        let text = match code.as_str() {
            "too-many" | "rate-limited" => words.sign_in_too_many,
            "sign-in-failed" => words.sign_in_failed,
            _ => words.failed,
        };
        view! { <p class="form-error" role="alert" id="sign-in-error">{text}</p> }
    });
    let described = error.is_some().then_some("sign-in-error");
    view! {
        <div class="page sign-in">
            <PageHead title=words.sign_in/>
            <p class="quiet">{words.tagline}</p>
            <form method="post" action="/session">
                {error}
                <label for="username">{words.user_name}</label>
                <input id="username" name="username" autocomplete="username" autocapitalize="none" spellcheck="false" required value=name/>
                <label for="password">{words.password}</label>
                <input id="password" name="password" type="password" autocomplete="current-password" required aria-describedby=described/>
                {next_untracked().map(|next| view! { <input type="hidden" name="next" value=next/> })}
                <button class="primary">{words.sign_in}</button>
            </form>
        </div>
    }
}
