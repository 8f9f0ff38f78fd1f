//! The identity of a request: looked up once, in front of every handler and server function.

use axum::{
    extract::{FromRequestParts, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use axum_extra::extract::CookieJar;
use domain::{ProblemCode, Role};
use engine::{Actor, Engine};
use http::{HeaderMap, header::AUTHORIZATION, request::Parts};

use super::token;
use crate::http::problem::ApiProblem;

/// The cookie that holds a browser's token.
pub const SESSION_COOKIE: &str = "yici_session";

/// What a request was authenticated as, and by which token.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// The account; `None` without a valid token.
    pub actor: Option<Actor>,
    /// The hash of the token that came, valid or not.
    pub token_hash: Option<[u8; 32]>,
}

/// Middleware: looks the token up and leaves an [`Identity`], and the `Option<Actor>` that server functions take, in the
/// request's extensions. A store that does not answer is answered 503 here: nobody is taken for a stranger because of it.
pub async fn identify(State(engine): State<Engine>, mut request: Request, next: Next) -> Response {
    let token_hash = presented(request.headers()).map(|token| token::hash(&token));
    let actor = match token_hash {
        Some(hash) => match engine.find_actor_by_token(&hash).await {
            Ok(actor) => actor,
            Err(error) => return ApiProblem::from(error).into_response(),
        },
        None => None,
    };
    request.extensions_mut().insert(actor.clone());
    request
        .extensions_mut()
        .insert(Identity { actor, token_hash });
    next.run(request).await
}

/// The token that came: a bearer token counts before a cookie.
fn presented(headers: &HeaderMap) -> Option<String> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.trim().to_owned());
    }
    CookieJar::from_headers(headers)
        .get(SESSION_COOKIE)
        .map(|cookie| cookie.value().to_owned())
}

/// Extractor: somebody who is signed in, else 401.
#[derive(Debug, Clone)]
pub struct Signed(pub Actor);

impl Signed {
    /// The actor, if the role is one of these, else 403.
    ///
    /// # Errors
    /// [`ProblemCode::Forbidden`].
    pub fn require(self, roles: &[Role]) -> Result<Actor, ApiProblem> {
        if roles.contains(&self.0.role) {
            return Ok(self.0);
        }
        let roles: Vec<_> = roles.iter().map(AsRef::as_ref).collect();
        Err(ApiProblem::new(
            ProblemCode::Forbidden,
            format!("This needs an account of the role {}.", roles.join(" or ")),
        ))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Signed {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiProblem> {
        let identity = parts.extensions.get::<Identity>();
        let actor = identity.and_then(|identity| identity.actor.clone());
        actor
            .map(Self)
            .ok_or_else(|| ApiProblem::plain(ProblemCode::Unauthenticated))
    }
}
