//! The frame of every page: skip link, header with pages, language and sign-out, main.

use domain::{Role, view::Account};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_location;

use crate::{
    session::AccountResource,
    text::{Lang, Words, lang, words},
};

/// The frame around a page.
#[component]
pub(crate) fn Frame(children: Children) -> impl IntoView {
    let words = words();
    let account = expect_context::<AccountResource>().0;
    let who = move || {
        Suspend::new(async move {
            let account = account.await.ok().flatten();
            account.map(|account| view! { <Who account=account/> })
        })
    };
    let pages = move || {
        Suspend::new(async move {
            let account = account.await.ok().flatten();
            account.map(|account| links(account.role, words))
        })
    };
    view! {
        <a class="skip" href="#main" rel="external">{words.skip_to_content}</a>
        <header class="top">
            <a class="brand" href="/">
                <Mark/>
                {words.product}
            </a>
            <nav aria-label=words.navigation>
                <Suspense>{pages}</Suspense>
            </nav>
            <div class="top-end">
                <LanguageSwitch/>
                <Suspense>{who}</Suspense>
            </div>
        </header>
        <main id="main" tabindex="-1">
            {children()}
        </main>
    }
}

/// A page's title, in the browser's tab and as its first heading.
#[component]
pub(crate) fn PageHead(
    /// The title.
    #[prop(into)]
    title: String,
    /// What stands beside it.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let tab = format!("{title} · {}", words().product);
    view! {
        <Title text=tab/>
        <div class="page-head">
            <h1>{title}</h1>
            {children.map(|children| children())}
        </div>
    }
}

/// One stroke through a ring: once.
#[component]
fn Mark() -> impl IntoView {
    view! {
        <svg class="mark" viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
            <path d="M8 1.5a6.5 6.5 0 1 0 0 13A6.5 6.5 0 1 0 8 1.5"></path>
            <path d="M4.5 8h7"></path>
        </svg>
    }
}

/// Address and name of a page.
type Page = (&'static str, fn(&Words) -> &'static str);

/// The pages of a role.
fn pages_of(role: Role) -> &'static [Page] {
    match role {
        Role::Student => &[
            ("/tasks", |words| words.nav_tasks),
            ("/rewards", |words| words.nav_rewards),
        ],
        Role::Teacher => &[("/progress", |words| words.nav_progress)],
        Role::Parent => &[("/report", |words| words.nav_report)],
        Role::Ops | Role::Admin => &[
            ("/panel", |words| words.nav_panel),
            ("/records", |words| words.nav_records),
            ("/approvals", |words| words.nav_approvals),
            ("/audit", |words| words.nav_audit),
        ],
    }
}

/// The links to the pages of a role; that of the page, or of the list that it belongs to, is current.
fn links(role: Role, words: &'static Words) -> impl IntoView {
    let path = use_location().pathname;
    let link = |&(href, name): &Page| {
        let below = format!("{href}/");
        let current = move || {
            path.with(|path| path == href || path.starts_with(&below))
                .then_some("page")
        };
        view! { <a href=href aria-current=current>{name(words)}</a> }
    };
    pages_of(role).iter().map(link).collect_view()
}

#[component]
fn Who(account: Account) -> impl IntoView {
    let words = words();
    let role = match account.role {
        Role::Student => words.role_student,
        Role::Teacher => words.role_teacher,
        Role::Parent => words.role_parent,
        Role::Ops => words.role_ops,
        Role::Admin => words.role_admin,
    };
    view! {
        <form class="who" method="post" action="/session/end">
            <span class="who-name" title=role>{account.name}</span>
            <button class="plain">{words.sign_out}</button>
        </form>
    }
}

/// The other language, as a form: it needs no JavaScript, and the page comes back in one piece.
#[component]
fn LanguageSwitch() -> impl IntoView {
    let location = use_location();
    let back = move || {
        let (path, query) = (location.pathname.get(), location.search.get());
        if query.is_empty() {
            path
        } else {
            format!("{path}?{}", query.trim_start_matches('?'))
        }
    };
    let (value, name, tag) = match lang() {
        Lang::En => ("zh", "中文", "zh-CN"),
        Lang::Zh => ("en", "English", "en"),
    };
    view! {
        <form method="post" action="/language" aria-label=words().language>
            <input type="hidden" name="back" value=back/>
            <button class="plain" name="lang" value=value lang=tag>{name}</button>
        </form>
    }
}
