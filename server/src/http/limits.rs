//! How much one account, or one address without identity, may ask for.
//!
//! The address is the peer's: a header that callers can write is not trusted.

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    sync::Arc,
};

use axum::{
    extract::{ConnectInfo, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use domain::ProblemCode;
use engine::Origin;
use governor::{
    DefaultKeyedRateLimiter, Quota,
    clock::{Clock, DefaultClock},
};

use super::problem::ApiProblem;
use crate::auth::Identity;

/// How many requests may come at once, as a multiple of the rate per second.
const BURST: NonZeroU32 = NonZeroU32::new(4).expect("not zero");
/// Failed sign-ins of one address: ten at once, then one every six seconds. A class behind one address mistypes less.
const FAILED_SIGN_INS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(10).expect("not zero");

/// Where a request came from.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// The limits of this process.
#[derive(Clone)]
pub struct Limits {
    accounts: Option<Arc<DefaultKeyedRateLimiter<i64>>>,
    addresses: Option<Arc<DefaultKeyedRateLimiter<IpAddr>>>,
    failed_sign_ins: Arc<DefaultKeyedRateLimiter<IpAddr>>,
}

impl std::fmt::Debug for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").finish_non_exhaustive()
    }
}

impl Limits {
    /// Requests per second for each account, and for each address without identity; `None` does not limit.
    pub fn new(per_account: Option<NonZeroU32>, per_address: Option<NonZeroU32>) -> Self {
        let quota =
            |rate: NonZeroU32| Quota::per_second(rate).allow_burst(rate.saturating_mul(BURST));
        Self {
            accounts: per_account.map(|rate| Arc::new(DefaultKeyedRateLimiter::keyed(quota(rate)))),
            addresses: per_address
                .map(|rate| Arc::new(DefaultKeyedRateLimiter::keyed(quota(rate)))),
            failed_sign_ins: Arc::new(DefaultKeyedRateLimiter::keyed(Quota::per_minute(
                FAILED_SIGN_INS_PER_MINUTE,
            ))),
        }
    }

    /// Notes a failed sign-in; the seconds to wait when there were too many.
    pub fn failed_sign_in(&self, peer: Peer) -> Option<u32> {
        over(&self.failed_sign_ins, &peer.0)
    }

    /// Forgets whoever has been quiet, so that memory does not grow with every address that was ever seen.
    pub fn forget_quiet(&self) {
        self.accounts
            .iter()
            .for_each(|limiter| limiter.retain_recent());
        self.addresses
            .iter()
            .for_each(|limiter| limiter.retain_recent());
        self.failed_sign_ins.retain_recent();
    }
}

fn over<K: std::hash::Hash + Eq + Clone>(
    limiter: &DefaultKeyedRateLimiter<K>,
    key: &K,
) -> Option<u32> {
    let refused = limiter.check_key(key).err()?;
    let wait = refused.wait_time_from(DefaultClock::default().now());
    Some(
        u32::try_from(wait.as_secs())
            .unwrap_or(u32::MAX)
            .saturating_add(1),
    )
}

/// Middleware: leaves the [`Peer`] in the request's extensions.
pub async fn note_peer(mut request: Request, next: Next) -> Response {
    let address = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map(|info| info.0.ip());
    let address = address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
    request.extensions_mut().insert(Peer(address));
    request.extensions_mut().insert(Origin(address.to_string()));
    next.run(request).await
}

/// Middleware, behind the identity: answers 429 to whoever asks too much.
pub async fn limit(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    let actor = request
        .extensions()
        .get::<Identity>()
        .and_then(|identity| identity.actor.as_ref());
    let wait = match (actor, request.extensions().get::<Peer>()) {
        (Some(actor), _) => limits
            .accounts
            .as_ref()
            .and_then(|limiter| over(limiter, &actor.id)),
        (None, Some(peer)) => limits
            .addresses
            .as_ref()
            .and_then(|limiter| over(limiter, &peer.0)),
        (None, None) => None,
    };
    match wait {
        Some(seconds) => ApiProblem::plain(ProblemCode::RateLimited)
            .retry_after(seconds)
            .into_response(),
        None => next.run(request).await,
    }
}
