//! What teachers and parents are told: a short list beside the numbers, read again while the page is in sight.

use std::time::Duration;

use domain::view::NotificationView;
use leptos::prelude::*;

use crate::{
    components::Ago,
    fault::Fault,
    live::Watched,
    text::{fill, words},
};

/// How often the list is read again: as often as the numbers beside it, whose age is said.
const LOOK_EVERY: Duration = Duration::from_secs(4);

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

/// The newest notifications, to begin with. What cannot be read is left out: the page's own numbers matter more.
pub(crate) fn first_news() -> Resource<Vec<NotificationView>> {
    Resource::new(
        || (),
        |()| async { list_notifications().await.unwrap_or_default() },
    )
}

/// The newest notifications, read again and again; nothing while there are none.
#[component]
pub(crate) fn News(
    /// What the page was rendered from.
    first: Vec<NotificationView>,
    /// How many are shown.
    most: usize,
) -> impl IntoView {
    let words = words();
    let list = Watched::start(first, LOOK_EVERY, list_notifications).data;
    let shown = move || list.with(|list| list.iter().take(most).cloned().collect::<Vec<_>>());
    view! {
        <section class="news" hidden=move || list.with(Vec::is_empty)>
            <h2>{words.news_title}</h2>
            <ul>
                <For each=shown key=|line| line.id.clone() let:line>
                    <Line line=line/>
                </For>
            </ul>
        </section>
    }
}

#[component]
fn Line(line: NotificationView) -> impl IntoView {
    let words = words();
    let text = match line.topic.as_str() {
        "redemption.created" => words.news_redeemed,
        _ => words.news_submitted,
    };
    let text = fill(text, &[("who", &line.student), ("what", &line.title)]);
    view! { <li><span>{text}</span> <span class="quiet"><Ago at=line.at/></span></li> }
}
