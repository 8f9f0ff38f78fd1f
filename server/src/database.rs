//! The connection to Postgres: the given one or the private one, migrated, as pools.

use std::time::Duration;

use anyhow::Context;
use engine::Pools;
use secrecy::ExposeSecret;
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{private_postgres::PrivatePostgres, settings::DatabaseSettings};

/// Connections for claims and finishes: a set each, some sets of one after a failure, the recorder and the look-ups of tokens.
const WORK_CONNECTIONS: u32 = 16;
/// Connections for what is only shown.
const READING_CONNECTIONS: u32 = 6;
/// How long a request waits for a connection before it is told that the store is away.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// A reachable, migrated database.
#[derive(Debug)]
pub struct Database {
    /// The pools.
    pub pools: Pools,
    private: Option<PrivatePostgres>,
}

impl Database {
    /// Reaches or starts Postgres and brings the schema up to date. A command beside a running server joins its private
    /// Postgres; a server insists on its own.
    ///
    /// # Errors
    /// When it cannot be reached, started or migrated.
    pub async fn open(settings: &DatabaseSettings, beside_a_server: bool) -> anyhow::Result<Self> {
        let private = match &settings.url {
            Some(_) => None,
            None if beside_a_server => {
                Some(PrivatePostgres::start_or_join(&settings.data_dir).await?)
            }
            None => Some(PrivatePostgres::start(&settings.data_dir).await?),
        };
        let url = match (&settings.url, &private) {
            (Some(url), _) => url,
            (None, Some(private)) => private.database_url(),
            (None, None) => anyhow::bail!("there is no database"),
        };
        let options: PgConnectOptions = url.expose_secret().parse().context("DATABASE_URL")?;
        let direct: PgConnectOptions = match &settings.direct_url {
            Some(url) => url
                .expose_secret()
                .parse()
                .context("YICI_DIRECT_DATABASE_URL")?,
            None => options.clone(),
        };
        let migrating = PgPoolOptions::new()
            .max_connections(1)
            .connect_with(direct)
            .await
            .context("cannot reach Postgres")?;
        engine::MIGRATOR
            .run(&migrating)
            .await
            .context("cannot bring the schema up to date")?;
        migrating.close().await;
        let pools = Pools {
            work: pool(&options, WORK_CONNECTIONS, "yici work").await?,
            reading: pool(&options, READING_CONNECTIONS, "yici reading").await?,
        };
        Ok(Self { pools, private })
    }

    /// Closes the pools, then stops a private Postgres.
    ///
    /// # Errors
    /// When the private Postgres does not stop.
    pub async fn close(self) -> anyhow::Result<()> {
        self.pools.work.close().await;
        self.pools.reading.close().await;
        if let Some(private) = self.private {
            private.stop().await?;
        }
        Ok(())
    }
}

async fn pool(options: &PgConnectOptions, connections: u32, name: &str) -> anyhow::Result<PgPool> {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_with(options.clone().application_name(name))
        .await
        .context("cannot reach Postgres")
}
