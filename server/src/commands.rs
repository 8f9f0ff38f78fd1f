//! The short commands: migrate, accounts, tokens.

use std::io::{BufRead, Write};

use anyhow::{Context, bail, ensure};
use engine::{Engine, EngineConfig};
use secrecy::ExposeSecret;

use crate::{
    auth::{password, token},
    database::Database,
    settings::{DatabaseSettings, NewAccount, TokenOwners},
};

/// Brings the schema up to date.
///
/// # Errors
/// When the database cannot be reached or migrated.
pub async fn migrate(settings: &DatabaseSettings) -> anyhow::Result<()> {
    Database::open(settings, true).await?.close().await?;
    println!("The schema is up to date.");
    Ok(())
}

/// Adds an account; the first line of standard input is its password.
///
/// # Errors
/// When the password is empty, the name is taken, or the store fails.
pub async fn add_account(settings: &DatabaseSettings, new: NewAccount) -> anyhow::Result<()> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .context("cannot read the password from standard input")?;
    let secret = line.trim_end_matches(['\r', '\n']).to_owned();
    ensure!(
        !secret.is_empty(),
        "the password comes on standard input, and there was none"
    );
    let (database, engine) = open(settings, EngineConfig::default()).await?;
    let new = engine::NewAccount {
        name: new.name,
        role: new.role,
        password_hash: password::hash(secret).await?,
        class: new.class,
        children: new.children,
    };
    let added = engine.add_account(&new).await;
    database.close().await?;
    let account = added?;
    println!(
        "{} has the id {} and the role {}.",
        account.name, account.id, account.role
    );
    Ok(())
}

/// Issues a token for each account and prints `name,token` lines.
///
/// # Errors
/// When a name is unknown, or the store fails.
pub async fn issue_tokens(settings: &DatabaseSettings, owners: TokenOwners) -> anyhow::Result<()> {
    let (database, engine) = open(settings, EngineConfig::default()).await?;
    let issued = issue(&engine, &owners).await;
    database.close().await?;
    std::io::stdout()
        .lock()
        .write_all(issued?.as_bytes())
        .context("cannot print the tokens")
}

async fn issue(engine: &Engine, owners: &TokenOwners) -> anyhow::Result<String> {
    let accounts = engine.list_accounts(&owners.names, owners.role).await?;
    let unknown: Vec<_> = owners
        .names
        .iter()
        .filter(|name| !accounts.iter().any(|a| &a.name == *name))
        .collect();
    if !unknown.is_empty() {
        bail!("there is no account named {unknown:?}; nothing was issued");
    }
    let mut lines = String::new();
    let mut kept = Vec::with_capacity(accounts.len());
    for account in &accounts {
        let (token, hash) = token::make()?;
        kept.push((account.id, hash.to_vec()));
        lines.push_str(&format!("{},{}\n", account.name, token.expose_secret()));
    }
    engine.add_machine_tokens(&kept).await?;
    Ok(lines)
}

/// Opens the database, beside a running server or without one, and starts an engine on it.
pub(crate) async fn open(
    settings: &DatabaseSettings,
    config: EngineConfig,
) -> anyhow::Result<(Database, Engine)> {
    let database = Database::open(settings, true).await?;
    let engine = Engine::start(database.pools.clone(), config).await?;
    Ok((database, engine))
}
