//! The rewards: the points, what they buy, and what became of the last redemption. Plain forms; while a redemption is undecided
//! the page looks again by itself.

use std::time::Duration;

use domain::{RecordState, view::RedemptionView};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::rewards_api::{AskedRedemption, RewardForm, RewardPage, load_rewards};
use crate::{
    components::{At, Empty, PageHead, Shape, Skeleton, fault_view, icon},
    text::{fill, grouped, words},
};

/// How often an undecided redemption is looked at again.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// `/rewards`.
#[component]
pub(crate) fn RewardsPage() -> impl IntoView {
    let query = use_query_map();
    let request = query.read_untracked().get("request");
    let refused = query.read_untracked().get("refused");
    let page = Resource::new(|| (), move |()| load_rewards(request.clone()));
    crate::pageshow::refetch_on_return(page);
    look_again_while_open(page);
    view! {
        <div class="page page-narrow">
            <Transition fallback=|| view! { <Skeleton lines=6/> }>
                {move || {
                    let refused = refused.clone();
                    Suspend::new(async move {
                        match page.await {
                            Ok(page) => view! { <Rewards page=page refused=refused/> }.into_any(),
                            Err(fault) => fault_view(fault),
                        }
                    })
                }}
            </Transition>
        </div>
    }
}

/// Reads the page again as long as the outcome of its request is open.
fn look_again_while_open(page: Resource<Result<RewardPage, crate::fault::Fault>>) {
    Effect::new(move || {
        let open = page.with(|page| match page {
            Some(Ok(page)) => page.asked.as_ref().is_some_and(is_open),
            _ => false,
        });
        if !open {
            return;
        }
        if let Ok(timer) = set_timeout_with_handle(move || page.refetch(), LOOK_EVERY) {
            on_cleanup(move || timer.clear());
        }
    });
}

fn is_open(asked: &AskedRedemption) -> bool {
    matches!(
        asked.state,
        Some(RecordState::Processing | RecordState::Unknown)
    )
}

#[component]
fn Rewards(page: RewardPage, refused: Option<String>) -> impl IntoView {
    let words = words();
    let names: Vec<(String, String)> = page
        .rewards
        .iter()
        .map(|form| (form.reward.id.clone(), form.reward.name.clone()))
        .collect();
    let open = page.asked.as_ref().filter(|asked| is_open(asked)).cloned();
    let body = if page.rewards.is_empty() {
        view! { <Empty text=words.rewards_empty/> }.into_any()
    } else {
        let points = page.points;
        let rows: Vec<_> = page
            .rewards
            .into_iter()
            .map(|form| {
                let waits = open.as_ref().is_some_and(|asked| asked.key == form.key);
                view! { <Reward form=form points=points waits=waits/> }
            })
            .collect();
        view! { <ul class="task-list">{rows}</ul> }.into_any()
    };
    view! {
        <PageHead title=words.rewards_title>
            <p class="points">
                <span class="quiet">{words.points}</span>
                <strong class="number">{grouped(page.points)}</strong>
            </p>
        </PageHead>
        <p class="phase" role="status" aria-live="polite">{status_line(page.asked, refused)}</p>
        {body}
        <Redeemed redemptions=page.redemptions names=names/>
    }
}

#[component]
fn Reward(form: RewardForm, points: i64, waits: bool) -> impl IntoView {
    let words = words();
    let price = i64::from(form.reward.price);
    let missing = price - points;
    let label = fill(words.reward_redeem, &[("n", &grouped(price))]);
    let action = if waits {
        view! { <span class="reward-waits phase-unknown">{icon(Shape::HalfRing)} {words.reward_waits}</span> }
            .into_any()
    } else if missing > 0 {
        let text = fill(words.reward_missing, &[("n", &grouped(missing))]);
        view! { <span class="quiet">{text}</span> }.into_any()
    } else {
        view! {
            <form method="post" action="/api/fn/redeem_reward">
                <input type="hidden" name="reward_id" value=form.reward.id/>
                <input type="hidden" name="sequence" value=form.reward.next_sequence/>
                <input type="hidden" name="client_id" value=form.client_id/>
                <input type="hidden" name="key" value=form.key/>
                <button class="primary">{label}</button>
            </form>
        }
        .into_any()
    };
    view! {
        <li class="task-row reward-row">
            <span class="reward-name">{form.reward.name}</span>
            <span class="task-facts">
                <span>{fill(words.reward_price, &[("n", &grouped(price))])}</span>
            </span>
            <span class="task-status">{action}</span>
        </li>
    }
}

/// What became of the redemption that the page was reached by.
fn status_line(asked: Option<AskedRedemption>, refused: Option<String>) -> AnyView {
    let words = words();
    let line = |class: &'static str, shape: Shape, text: &'static str| {
        view! { <span class=class>{icon(shape)} {text}</span> }.into_any()
    };
    let Some(asked) = asked else {
        return match refused {
            Some(code) => line(
                "phase-refused",
                Shape::BarredSquare,
                words.reward_refusal(&code),
            ),
            None => view! { <span class="quiet">{words.rewards_idle}</span> }.into_any(),
        };
    };
    match (asked.state, asked.code) {
        (Some(RecordState::Succeeded), _) => {
            line("phase-submitted", Shape::Check, words.reward_done)
        }
        (Some(RecordState::Processing | RecordState::Unknown), _) => {
            line("phase-unknown", Shape::Question, words.reward_unknown)
        }
        (Some(RecordState::FailedRetryable), _) => {
            line("phase-unknown", Shape::RoundArrow, words.reward_again)
        }
        (Some(RecordState::FailedFinal), code) => {
            let text = words.reward_refusal(code.as_deref().unwrap_or_default());
            line("phase-refused", Shape::BarredSquare, text)
        }
        (None, _) => line(
            "phase-refused",
            Shape::BarredSquare,
            words.reward_never_arrived,
        ),
    }
}

#[component]
fn Redeemed(redemptions: Vec<RedemptionView>, names: Vec<(String, String)>) -> impl IntoView {
    let words = words();
    (!redemptions.is_empty()).then(|| {
        let rows: Vec<_> = redemptions
            .into_iter()
            .map(|redemption| {
                let points = grouped(i64::from(redemption.points));
                let name = names.iter().find(|(id, _)| *id == redemption.reward_id);
                let name = name.map(|(_, name)| name.clone());
                view! {
                    <li class="task-row reward-row">
                        <span class="reward-name">{name}</span>
                        <span class="task-facts">
                            <At at=redemption.created_at/>
                            <span>{fill(words.reward_number, &[("n", &redemption.sequence.to_string())])}</span>
                        </span>
                        <span class="task-status number">"−" {points}</span>
                    </li>
                }
            })
            .collect();
        view! {
            <h2 class="part">{words.rewards_redeemed}</h2>
            <ul class="task-list">{rows}</ul>
        }
    })
}
