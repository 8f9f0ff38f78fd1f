//! Signing in and out: JSON for programs, plain forms for pages, which need no script.

use std::time::Duration;

use axum::{
    Extension, Form, Json, Router,
    extract::State,
    response::{IntoResponse, Redirect, Response},
    routing::post,
};
use axum_extra::extract::{
    CookieJar,
    cookie::{Cookie, SameSite},
};
use domain::{ProblemCode, view::Account};
use engine::{Actor, Engine, TokenKind};
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{AppState, body::JsonBody, limits::Peer, problem::ApiProblem};
use crate::auth::{Identity, SESSION_COOKIE, Signed, password, token};

/// How long a session lasts: a school term's holidays are longer, a lost phone's session should not be.
const SESSION_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest name or password that is looked at.
const MAX_CREDENTIAL_BYTES: usize = 1024;

/// `POST /api/v1/session` and `DELETE /api/v1/session`.
pub fn api() -> Router<AppState> {
    Router::new().route("/session", post(sign_in).delete(sign_out).get(show))
}

/// The forms of the pages.
pub fn forms() -> Router<AppState> {
    Router::new()
        .route("/session", post(sign_in_form))
        .route("/session/end", post(sign_out_form))
}

/// Name and password.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Credentials {
    username: String,
    password: String,
}

/// What somebody gets who signed in.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SignedIn {
    token: String,
    account: Account,
}

enum SignIn {
    Done(Actor, SecretString),
    Failed,
    TooMany(u32),
}

async fn sign_in(
    State(state): State<AppState>,
    Extension(peer): Extension<Peer>,
    jar: CookieJar,
    JsonBody(credentials): JsonBody<Credentials>,
) -> Result<Response, ApiProblem> {
    match check(&state, peer, credentials).await? {
        SignIn::Done(actor, token) => {
            let body = SignedIn {
                token: token.expose_secret().to_owned(),
                account: account(&actor),
            };
            Ok((jar.add(cookie(&token)), no_store(), Json(body)).into_response())
        }
        SignIn::Failed => Err(ApiProblem::plain(ProblemCode::SignInFailed)),
        SignIn::TooMany(seconds) => {
            Err(ApiProblem::plain(ProblemCode::RateLimited).retry_after(seconds))
        }
    }
}

async fn show(Signed(actor): Signed) -> impl IntoResponse {
    (no_store(), Json(account(&actor)))
}

async fn sign_out(
    State(engine): State<Engine>,
    identity: Extension<Identity>,
    jar: CookieJar,
) -> Result<impl IntoResponse, ApiProblem> {
    end(&engine, &identity).await?;
    Ok((StatusCode::NO_CONTENT, jar.remove(removal())))
}

async fn sign_in_form(
    State(state): State<AppState>,
    Extension(peer): Extension<Peer>,
    jar: CookieJar,
    Form(credentials): Form<Credentials>,
) -> Result<Response, ApiProblem> {
    let name = utf8_percent_encode(&credentials.username, NON_ALPHANUMERIC).to_string();
    Ok(match check(&state, peer, credentials).await? {
        SignIn::Done(actor, token) => {
            (jar.add(cookie(&token)), Redirect::to(actor.role.home())).into_response()
        }
        SignIn::Failed => {
            Redirect::to(&format!("/?error=sign-in-failed&name={name}")).into_response()
        }
        SignIn::TooMany(_) => {
            Redirect::to(&format!("/?error=too-many&name={name}")).into_response()
        }
    })
}

async fn sign_out_form(
    State(engine): State<Engine>,
    identity: Extension<Identity>,
    jar: CookieJar,
) -> Result<impl IntoResponse, ApiProblem> {
    end(&engine, &identity).await?;
    Ok((jar.remove(removal()), Redirect::to("/")))
}

async fn check(
    state: &AppState,
    peer: Peer,
    credentials: Credentials,
) -> Result<SignIn, ApiProblem> {
    let Credentials { username, password } = credentials;
    // A NUL cannot be in any stored name, and Postgres refuses the question.
    let plausible =
        username.len().max(password.len()) <= MAX_CREDENTIAL_BYTES && !username.contains('\0');
    let found = if plausible {
        state.engine.find_password(&username).await?
    } else {
        None
    };
    let stored = found.as_ref().map(|found| found.password_hash.clone());
    let fits = password::verify(password, stored).await.map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "a sign-in could not be checked"
        );
        ApiProblem::plain(ProblemCode::Internal)
    })?;
    let Some(found) = found.filter(|_| fits) else {
        return Ok(state
            .limits
            .failed_sign_in(peer)
            .map_or(SignIn::Failed, SignIn::TooMany));
    };
    let (token, hash) = token::make().map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "a token could not be made"
        );
        ApiProblem::plain(ProblemCode::Internal)
    })?;
    state
        .engine
        .add_token(
            found.actor.id,
            &hash,
            TokenKind::Session,
            Some(SESSION_LIFETIME),
        )
        .await?;
    Ok(SignIn::Done(found.actor, token))
}

async fn end(engine: &Engine, identity: &Identity) -> Result<(), ApiProblem> {
    if let (Some(_), Some(hash)) = (&identity.actor, &identity.token_hash) {
        engine.remove_token(hash).await?;
    }
    Ok(())
}

fn account(actor: &Actor) -> Account {
    Account {
        id: actor.id.to_string(),
        name: actor.name.clone(),
        role: actor.role,
    }
}

fn no_store() -> [(http::HeaderName, &'static str); 1] {
    [(http::header::CACHE_CONTROL, "no-store")]
}

fn cookie(token: &SecretString) -> Cookie<'static> {
    Cookie::build((SESSION_COOKIE, token.expose_secret().to_owned()))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .max_age(time::Duration::seconds(
            SESSION_LIFETIME.as_secs().try_into().unwrap_or(i64::MAX),
        ))
        .build()
}

fn removal() -> Cookie<'static> {
    Cookie::build(SESSION_COOKIE).path("/").build()
}
