//! The panel's numbers, once and as a stream, and the lists and rows that they lead to.

use std::{convert::Infallible, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, Query, State, rejection::QueryRejection},
    response::{IntoResponse, Response, Sse, sse::Event, sse::KeepAlive},
    routing::get,
};
use domain::{
    ProblemCode, RecordState, Role,
    view::{ArrivalFilter, ArrivalPage, PanelView, RecordDetail, RecordFilter, RecordPage, Window},
};
use engine::Engine;
use futures::{Stream, StreamExt};
use serde::Deserialize;
use tokio_stream::wrappers::WatchStream;

use super::{
    AppState, export,
    feed::PanelFeed,
    problem::ApiProblem,
    query::{self, checked},
    tasks::found,
};
use crate::auth::Signed;

/// Who sees the panel.
const READERS: &[Role] = &[Role::Ops, Role::Admin];
/// Keeps proxies from closing a stream while the store is away.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The routes, below the API's root.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/panel", get(show_panel))
        .route("/panel/events", get(stream_panel))
        .route("/records", get(list_records))
        .route("/records.csv", get(export_records))
        .route("/records/{id}", get(show_record))
        .route("/arrivals", get(list_arrivals))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct PanelQuery {
    #[serde(default)]
    window: Window,
}

async fn show_panel(
    State(engine): State<Engine>,
    signed: Signed,
    query: Result<Query<PanelQuery>, QueryRejection>,
) -> Result<Json<PanelView>, ApiProblem> {
    signed.require(READERS)?;
    Ok(Json(engine.panel(checked(query)?.window).await?))
}

async fn stream_panel(
    State(feed): State<PanelFeed>,
    signed: Signed,
    query: Result<Query<PanelQuery>, QueryRejection>,
) -> Result<impl IntoResponse, ApiProblem> {
    signed.require(READERS)?;
    let window = checked(query)?.window;
    let headers = [("cache-control", "no-store"), ("x-accel-buffering", "no")];
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok((
        headers,
        Sse::new(events(&feed, window)).keep_alive(keep_alive),
    ))
}

/// A whole snapshot with each event, so that a lost one does not matter; ends when the server stops.
fn events(
    feed: &PanelFeed,
    window: Window,
) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    let stopping = feed.stopping();
    WatchStream::new(feed.subscribe(window))
        .filter_map(async |snapshot| {
            snapshot.map(|json| Ok(Event::default().event("panel").data(&*json)))
        })
        .take_until(stopping.cancelled_owned())
}

async fn list_records(
    State(engine): State<Engine>,
    signed: Signed,
    query: Result<Query<RecordFilter>, QueryRejection>,
) -> Result<Json<RecordPage>, ApiProblem> {
    signed.require(READERS)?;
    let filter = checked_filter(query)?;
    let page = engine.list_records(&filter).await?;
    query::page(page)
}

/// The same rows as a table for people's own tools.
async fn export_records(
    State(engine): State<Engine>,
    signed: Signed,
    query: Result<Query<RecordFilter>, QueryRejection>,
) -> Result<Response, ApiProblem> {
    signed.require(READERS)?;
    let filter = checked_filter(query)?;
    export::records(engine, filter).await
}

async fn show_record(
    State(engine): State<Engine>,
    signed: Signed,
    Path(id): Path<String>,
) -> Result<Json<RecordDetail>, ApiProblem> {
    signed.require(READERS)?;
    found(engine.find_record(&id).await?)
}

async fn list_arrivals(
    State(engine): State<Engine>,
    signed: Signed,
    query: Result<Query<ArrivalFilter>, QueryRejection>,
) -> Result<Json<ArrivalPage>, ApiProblem> {
    signed.require(READERS)?;
    let filter = checked(query)?;
    query::check_list(filter.limit, &[&filter.action])?;
    let page = engine.list_arrivals(&filter).await?;
    query::page(page)
}

fn checked_filter(
    query: Result<Query<RecordFilter>, QueryRejection>,
) -> Result<RecordFilter, ApiProblem> {
    let filter = checked(query)?;
    query::check_list(filter.limit, &[&filter.action, &filter.subject, &filter.q])?;
    let counts_ends = matches!(
        filter.state,
        Some(RecordState::FailedFinal | RecordState::FailedRetryable)
    );
    if filter.window.is_some() && filter.outcome.is_none() && !counts_ends {
        return Err(ApiProblem::new(
            ProblemCode::InvalidQuery,
            "`window` needs an `outcome` or a failed `state`.",
        ));
    }
    Ok(filter)
}
