//! The application's server: settings, sign-in, HTTP, the private Postgres, wiring and graceful stop.
//!
//! It may use everything; nothing may use it. It holds no SQL and no rule of the protocol.

pub mod auth;
pub mod commands;
pub mod database;
pub mod http;
pub mod import;
pub mod private_postgres;
pub mod records;
pub mod reward_provider;
pub mod serve;
pub mod settings;
pub mod simulate;
pub mod telemetry;

use settings::Invocation;

/// Does what was asked for.
///
/// # Errors
/// When it cannot be done.
pub async fn run(invocation: Invocation) -> anyhow::Result<()> {
    match invocation {
        Invocation::Serve { settings, demo } => serve::serve(*settings, demo).await,
        Invocation::Migrate(database) => commands::migrate(&database).await,
        Invocation::AccountAdd { database, account } => {
            commands::add_account(&database, account).await
        }
        Invocation::TokenIssue { database, owners } => {
            commands::issue_tokens(&database, owners).await
        }
        Invocation::Import {
            database,
            file,
            rejects,
            engine,
        } => import::import(&database, &engine, &file, rejects.as_deref()).await,
        Invocation::Records {
            database,
            engine,
            filter,
            json,
        } => records::list(&database, &engine, &filter, json).await,
        Invocation::Simulate(simulation) => simulate::run(simulation).await,
        Invocation::RewardProvider {
            listen,
            mode,
            delay,
            log,
        } => reward_provider::serve(listen, mode, delay, log).await,
        Invocation::Compensate {
            database,
            engine,
            asked,
        } => records::compensate(&database, &engine, asked).await,
    }
}
