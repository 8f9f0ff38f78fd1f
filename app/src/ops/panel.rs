//! `/panel`: the numbers stand in the first HTML, and the stream takes over from there.

use domain::{
    Role,
    view::{PanelView, RecordPage, Window},
};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::{
    api::{list_stuck_records, panel},
    arrivals::Arrivals,
    counters::{Counters, Shares},
    findings::Findings,
    glance::Glance,
    keys::Keys,
    live::Live,
    stuck::{StuckRows, StuckTable},
    tiles::Tiles,
};
use crate::{
    components::{Skeleton, fault_view},
    session::AccountResource,
    text::words,
};

/// `/panel`.
#[component]
pub(crate) fn PanelPage() -> impl IntoView {
    let query = use_query_map();
    let window = Memo::new(move |_| {
        let name = query.read().get("window").unwrap_or_default();
        name.parse::<Window>().unwrap_or_default()
    });
    let account = expect_context::<AccountResource>().0;
    let view = Resource::new(move || window.get(), panel);
    let stuck = Resource::new(|| (), |()| list_stuck_records());
    view! {
        <leptos_meta::Title text=format!("{} · {}", words().ops.panel_title, words().product)/>
        <div class="page panel">
            <h1 class="visually-hidden">{words().ops.panel_title}</h1>
            <Transition fallback=|| view! { <Skeleton lines=14/> }>
                {move || Suspend::new(async move {
                    let account = account.await.ok().flatten();
                    let acts = account.is_some_and(|account| account.role == Role::Admin);
                    match (view.await, stuck.await) {
                        (Ok(view), Ok(stuck)) => view! { <Panel first=view stuck=stuck acts=acts/> }.into_any(),
                        (Err(fault), _) | (_, Err(fault)) => fault_view(fault),
                    }
                })}
            </Transition>
        </div>
    }
}

#[component]
fn Panel(first: PanelView, stuck: RecordPage, acts: bool) -> impl IntoView {
    let live = Live::open(first);
    let rows = StuckRows::follow(stuck, live);
    let step = RwSignal::new(None);
    view! {
        <Keys/>
        <Glance live=live/>
        <Tiles view=live.view step=step/>
        <div class="panel-middle">
            <div class="panel-main">
                <Arrivals view=live.view read=step/>
                <Shares view=live.view/>
            </div>
            <div class="panel-side">
                <Findings view=live.view/>
                <Counters view=live.view/>
            </div>
        </div>
        <StuckTable rows=rows view=live.view acts=acts/>
    }
}
