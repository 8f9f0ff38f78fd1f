//! What teachers and parents are told: a short list beside the numbers, read again while the page is in sight.

use std::time::Duration;

use domain::view::NotificationView;
use leptos::prelude::*;
use web_sys::VisibilityState;

use crate::{
    components::Ago,
    fault::Fault,
    text::{fill, words},
};

/// How often the list is read again.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The newest notifications of the teacher or parent who asks.
///
/// # Errors
/// A [`Fault`] without the identity of one, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "list_notifications")]
pub async fn list_notifications() -> Result<Vec<NotificationView>, Fault> {
    use crate::request;
    use domain::Role;
    let reads = |role| matches!(role, Role::Teacher | Role::Parent);
    let actor = request::require(reads).await?;
    let listed = request::engine()?.list_notifications(&actor).await;
    listed.map_err(|e| request::store_fault(&e))
}

/// The newest notifications. What cannot be read is left out: the page's own numbers matter more.
#[component]
pub(crate) fn News() -> impl IntoView {
    let news = Resource::new(|| (), |()| list_notifications());
    crate::pageshow::refetch_on_return(news);
    Effect::new(move || {
        let look = move || {
            if document().visibility_state() == VisibilityState::Visible {
                news.refetch();
            }
        };
        if let Ok(timer) = set_interval_with_handle(look, LOOK_EVERY) {
            on_cleanup(move || timer.clear());
        }
    });
    view! {
        <Transition>
            {move || Suspend::new(async move { news.await.ok().map(|list| view! { <Lines list=list/> }) })}
        </Transition>
    }
}

#[component]
fn Lines(list: Vec<NotificationView>) -> impl IntoView {
    let words = words();
    let lines: Vec<_> = list
        .into_iter()
        .map(|line| {
            let text = match line.topic.as_str() {
                "redemption.created" => words.news_redeemed,
                _ => words.news_submitted,
            };
            let text = fill(text, &[("who", &line.student), ("what", &line.title)]);
            view! { <li><span>{text}</span> <span class="quiet"><Ago at=line.at/></span></li> }
        })
        .collect();
    (!lines.is_empty()).then(|| {
        view! {
            <section class="news">
                <h2>{words.news_title}</h2>
                <ul>{lines}</ul>
            </section>
        }
    })
}
