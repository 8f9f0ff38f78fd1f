//! The rewards: the points, what they buy, and what became of the last redemption. The forms are plain ones that work as they are;
//! a script takes over once it runs.

use domain::{RecordState, view::RedemptionView};
use leptos::{ev, prelude::*};
use leptos_router::hooks::use_query_map;

use super::{
    redeeming::{Redeeming, Sent},
    rewards_api::{AskedRedemption, RewardForm, RewardPage, load_rewards},
};
use crate::{
    components::{At, Empty, PageHead, Shape, Skeleton, fault_view, icon},
    live::Freshness,
    text::{fill, grouped, words},
};

/// `/rewards`.
#[component]
pub(crate) fn RewardsPage() -> impl IntoView {
    let query = use_query_map();
    let request = query.read_untracked().get("request");
    let refused = query.read_untracked().get("refused");
    let page = Resource::new(|| (), move |()| load_rewards(request.clone()));
    view! {
        <div class="page page-narrow">
            <Suspense fallback=|| view! { <Skeleton lines=6/> }>
                {move || {
                    let refused = refused.clone();
                    Suspend::new(async move {
                        match page.await {
                            Ok(page) => view! { <Rewards first=page refused=refused/> }.into_any(),
                            Err(fault) => fault_view(fault),
                        }
                    })
                }}
            </Suspense>
        </div>
    }
}

#[component]
fn Rewards(first: RewardPage, refused: Option<String>) -> impl IntoView {
    let words = words();
    let redeeming = Redeeming::start(first, refused);
    let page = redeeming.page();
    let ids = move || {
        page.with(|page| {
            page.rewards
                .iter()
                .map(|form| form.reward.id.clone())
                .collect::<Vec<_>>()
        })
    };
    let none = move || page.with(|page| page.rewards.is_empty());
    view! {
        <PageHead title=words.rewards_title>
            <p class="points">
                <span class="quiet">{words.points}</span>
                <strong class="number">{move || grouped(page.with(|page| page.points))}</strong>
            </p>
        </PageHead>
        <Freshness pulse=redeeming.pulse() at=None/>
        <p class="phase" role="status" aria-live="polite">{move || status_line(redeeming)}</p>
        {move || none().then(|| view! { <Empty text=words.rewards_empty/> })}
        <ul class="task-list" hidden=none>
            // Keyed by the reward alone: a row keeps its place and its focus whatever becomes of it.
            <For each=ids key=String::clone let:id>
                <Reward id=id redeeming=redeeming/>
            </For>
        </ul>
        <Redeemed page=page/>
    }
}

/// What a row offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offer {
    /// It can be redeemed.
    Open,
    /// It is being redeemed.
    Waits,
    /// So many points are missing.
    Missing(i64),
}

impl Offer {
    fn of(page: &RewardPage, form: &RewardForm) -> Self {
        let waits = page
            .asked
            .as_ref()
            .is_some_and(|asked| asked.key == form.key && is_open(asked));
        let missing = i64::from(form.reward.price) - page.points;
        match missing {
            _ if form.is_undecided || waits => Self::Waits,
            1.. => Self::Missing(missing),
            _ => Self::Open,
        }
    }
}

fn is_open(asked: &AskedRedemption) -> bool {
    matches!(
        asked.state,
        Some(RecordState::Processing | RecordState::Unknown)
    )
}

#[component]
fn Reward(id: String, redeeming: Redeeming) -> impl IntoView {
    let words = words();
    let page = redeeming.page();
    let found = move |page: &RewardPage| {
        page.rewards
            .iter()
            .find(|form| form.reward.id == id)
            .cloned()
    };
    let form = Memo::new(move |_| page.with(&found));
    let offer = Memo::new(move |_| {
        page.with(|page| form.with(|form| Some(Offer::of(page, form.as_ref()?))))
    });
    let price =
        move || form.with(|form| grouped(form.as_ref().map_or(0, |form| form.reward.price.into())));
    let action = move || {
        match offer.get() {
        None => ().into_any(),
        Some(Offer::Open) => view! { <RedeemForm form=form redeeming=redeeming/> }.into_any(),
        Some(Offer::Waits) => {
            view! { <span class="reward-waits phase-unknown">{icon(Shape::HalfRing)} {words.reward_waits}</span> }.into_any()
        }
        Some(Offer::Missing(n)) => {
            view! { <span class="quiet number">{fill(words.reward_missing, &[("n", &grouped(n))])}</span> }.into_any()
        }
    }
    };
    view! {
        <li class="task-row reward-row">
            <span class="reward-name">{move || form.with(|form| form.as_ref().map(|form| form.reward.name.clone()))}</span>
            <span class="task-facts">
                <span class="number">{move || fill(words.reward_price, &[("n", &price())])}</span>
            </span>
            <span class="task-status">{action}</span>
        </li>
    }
}

/// The one button of a reward. Without a script its key makes every press the same intent until that is decided.
#[component]
fn RedeemForm(form: Memo<Option<RewardForm>>, redeeming: Redeeming) -> impl IntoView {
    let words = words();
    let value =
        move |read: fn(&RewardForm) -> String| move || form.with(|form| form.as_ref().map(read));
    // The price and the name stand beside it; whoever hears the button alone is told both.
    let label = move || {
        let told = form.with(|form| {
            let reward = form.as_ref().map(|form| &form.reward);
            reward.map(|reward| (reward.name.clone(), grouped(reward.price.into())))
        });
        let (name, price) = told.unwrap_or_default();
        fill(words.reward_redeem_label, &[("name", &name), ("n", &price)])
    };
    let submit = move |event: ev::SubmitEvent| {
        event.prevent_default();
        if let Some(form) = form.get_untracked() {
            redeeming.press(form);
        }
    };
    // The second half of a double click, and a key that is held down, mean nothing new.
    let click = move |event: ev::MouseEvent| {
        if event.detail() > 1 {
            event.prevent_default();
        }
    };
    let key = move |event: ev::KeyboardEvent| {
        if event.repeat() {
            event.prevent_default();
        }
    };
    let disabled = move || redeeming.is_busy().then_some("true");
    view! {
        <form method="post" action="/api/fn/redeem_reward" on:submit=submit>
            <input type="hidden" name="reward_id" value=value(|form| form.reward.id.clone())/>
            <input type="hidden" name="sequence" value=value(|form| form.reward.next_sequence.to_string())/>
            <input type="hidden" name="client_id" value=value(|form| form.client_id.clone())/>
            <input type="hidden" name="key" value=value(|form| form.key.clone())/>
            <button class="primary" aria-label=label aria-disabled=disabled on:click=click on:keydown=key>{words.reward_redeem}</button>
        </form>
    }
}

/// Where the last redemption stands, in one line.
fn status_line(redeeming: Redeeming) -> AnyView {
    let words = words();
    let line = |class: &'static str, shape: Shape, text: &'static str| {
        view! { <span class=class>{icon(shape)} {text}</span> }.into_any()
    };
    match redeeming.sent() {
        Some(Sent::Sending) => {
            return line("phase-submitting", Shape::HalfRing, words.reward_sending);
        }
        Some(Sent::Unanswered) => {
            return line("phase-unknown", Shape::Question, words.reward_unanswered);
        }
        Some(Sent::Offline) => {
            return line("phase-unknown", Shape::Question, words.reward_offline);
        }
        None => {}
    }
    if let Some(code) = redeeming.refused() {
        return line(
            "phase-refused",
            Shape::BarredSquare,
            words.reward_refusal(&code),
        );
    }
    let Some(asked) = redeeming.page().with(|page| page.asked.clone()) else {
        return view! { <span class="quiet">{words.rewards_idle}</span> }.into_any();
    };
    match asked.state {
        Some(RecordState::Succeeded) => line("phase-submitted", Shape::Check, words.reward_done),
        Some(RecordState::Processing | RecordState::Unknown) => {
            line("phase-unknown", Shape::Question, words.reward_unknown)
        }
        Some(RecordState::FailedRetryable) => {
            line("phase-unknown", Shape::RoundArrow, words.reward_again)
        }
        Some(RecordState::FailedFinal) => {
            let text = words.reward_refusal(asked.code.as_deref().unwrap_or_default());
            line("phase-refused", Shape::BarredSquare, text)
        }
        None => line(
            "phase-refused",
            Shape::BarredSquare,
            words.reward_never_arrived,
        ),
    }
}

#[component]
fn Redeemed(page: RwSignal<RewardPage>) -> impl IntoView {
    let words = words();
    let none = move || page.with(|page| page.redemptions.is_empty());
    view! {
        <h2 class="part" hidden=none>{words.rewards_redeemed}</h2>
        <ul class="task-list" hidden=none>
            <For each=move || page.with(|page| page.redemptions.clone()) key=|one| one.id.clone() let:redemption>
                <RedeemedRow redemption=redemption page=page/>
            </For>
        </ul>
    }
}

#[component]
fn RedeemedRow(redemption: RedemptionView, page: RwSignal<RewardPage>) -> impl IntoView {
    let words = words();
    let points = grouped(i64::from(redemption.points));
    let name = page.with_untracked(|page| {
        let form = page
            .rewards
            .iter()
            .find(|form| form.reward.id == redemption.reward_id);
        form.map(|form| form.reward.name.clone())
    });
    view! {
        <li class="task-row reward-row">
            <span class="reward-name">{name}</span>
            <span class="task-facts">
                <At at=redemption.created_at/>
                <span class="number">{fill(words.reward_number, &[("n", &redemption.sequence.to_string())])}</span>
            </span>
            <span class="task-status number">"−" {points}</span>
        </li>
    }
}
