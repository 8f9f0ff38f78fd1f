//! `server records` and `server compensate`: what the panel offers, for a person without a browser.

use std::io::Write;

use anyhow::{Context, bail, ensure};
use domain::{
    IdempotencyKey, Role,
    compensation::CompensationStatus,
    view::{CompensationAnswer, EvidenceView, RecordFilter, RecordPage},
};
use engine::{Actor, Compensate, Engine, Requester};
use uuid::Uuid;

use crate::{
    commands::open,
    settings::{AskedCompensation, DatabaseSettings, EngineSettings},
};

/// How this process is named among the instances, and where its compensations come from.
const ORIGIN: &str = "command line";
/// How long an execution that a compensation started may take to end.
const DRAIN: std::time::Duration = std::time::Duration::from_secs(20);

/// Prints a page of records.
///
/// # Errors
/// When the cursor is none of ours, or the store fails.
pub async fn list(
    database: &DatabaseSettings,
    as_servers: &EngineSettings,
    filter: &RecordFilter,
    json: bool,
) -> anyhow::Result<()> {
    let (database, engine) = open(database, as_servers.config(ORIGIN)).await?;
    let page = engine.list_records(filter).await;
    database.close().await?;
    let page = page?.context("--after is no cursor of this list")?;
    let text = if json {
        serde_json::to_string_pretty(&page)? + "\n"
    } else {
        table(&page)
    };
    let written = std::io::stdout().lock().write_all(text.as_bytes());
    written.context("cannot print the records")
}

/// Does something about a record and prints what became of it.
///
/// # Errors
/// When it was refused, or the store fails.
pub async fn compensate(
    database: &DatabaseSettings,
    as_servers: &EngineSettings,
    asked: AskedCompensation,
) -> anyhow::Result<()> {
    let (database, engine) = open(database, as_servers.config(ORIGIN)).await?;
    let done = compensate_with(&engine, asked).await;
    engine.stop(DRAIN).await;
    database.close().await?;
    let answer = done?;
    print!("{}", report(&answer));
    if let Some(refusal) = &answer.compensation.refusal {
        bail!("it was refused: {refusal}; nothing was changed");
    }
    Ok(())
}

async fn compensate_with(
    engine: &Engine,
    asked: AskedCompensation,
) -> anyhow::Result<CompensationAnswer> {
    let actor = match &asked.admin {
        Some(name) => Some(find_admin(engine, name).await?),
        None => None,
    };
    let key = match asked.key {
        Some(key) => key,
        None => IdempotencyKey::from_text(&Uuid::new_v4().to_string())?,
    };
    let requester = Requester {
        actor,
        origin: ORIGIN.to_owned(),
        trace_id: Uuid::new_v4().simple().to_string(),
    };
    let compensate = Compensate {
        record_id: asked.record_id,
        action: asked.action,
        reason: asked.reason,
        expected_version: asked.expected_version,
        key,
    };
    Ok(engine.compensate(&requester, compensate).await?)
}

async fn find_admin(engine: &Engine, name: &str) -> anyhow::Result<Actor> {
    let found = engine.list_accounts(&[name.to_owned()], None).await?;
    let actor = found.into_iter().next();
    let actor = actor.with_context(|| format!("--as: there is no account named {name:?}"))?;
    ensure!(actor.role == Role::Admin, "--as: {name:?} is no admin");
    Ok(actor)
}

fn report(answer: &CompensationAnswer) -> String {
    let compensation = &answer.compensation;
    let mut text = format!(
        "compensation {}: {} of record {} is {}\n",
        compensation.id, compensation.action, compensation.record_id, compensation.status
    );
    if let Some(evidence) = &compensation.evidence {
        text.push_str(&describe(evidence));
    }
    if compensation.status == CompensationStatus::AwaitingApproval {
        let until = compensation.expires_at.as_deref().unwrap_or_default();
        text.push_str(&format!("another admin has to approve it until {until}\n"));
    }
    if let Some(record) = &answer.record {
        text.push_str(&format!(
            "record {}: {}, version {}, attempt {}\n",
            record.id, record.state, record.version, record.attempt
        ));
    }
    text
}

fn describe(evidence: &EvidenceView) -> String {
    let permitted: Vec<_> = evidence.permitted.iter().map(AsRef::as_ref).collect();
    let mut text = format!("evidence: {}", evidence.finding);
    if let Some(location) = &evidence.location {
        text.push_str(&format!(", {location}"));
    }
    text.push_str(&format!("; permits {}", permitted.join(", ")));
    if let Some(proposed) = evidence.proposed {
        text.push_str(&format!("; proposed: {proposed}"));
    }
    text.push('\n');
    text
}

fn table(page: &RecordPage) -> String {
    let header = [
        "ID", "STATE", "STUCK", "VERSION", "ATTEMPT", "ACTION", "SUBJECT", "KEY",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(page.records.iter().map(|record| {
        [
            record.id.clone(),
            record.state.to_string(),
            record
                .stuck_seconds
                .map_or_else(String::new, |seconds| format!("{seconds} s")),
            record.version.to_string(),
            record.attempt.to_string(),
            record.action.clone(),
            record.subject_name.clone(),
            record.key.clone(),
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    if let Some(next) = &page.next {
        text.push_str(&format!("more: --after {next}\n"));
    }
    text
}
