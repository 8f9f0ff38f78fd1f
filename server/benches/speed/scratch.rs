//! Databases of the measurements' own, on the cluster that `.make/bench.sh` starts and throws away.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, ensure};
use engine::{Engine, EngineConfig};
use serde_json::{Value, json};
use server::{database::Database, settings::DatabaseSettings};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};

use crate::school::School;

/// The cluster.
pub(crate) struct Cluster {
    options: PgConnectOptions,
    /// Whether statements can be counted.
    pub(crate) counts_statements: bool,
}

/// One migrated database with a school in it, reached as the server reaches its own.
pub(crate) struct Scratch {
    name: String,
    pub(crate) url: String,
    pub(crate) database: Database,
    pub(crate) engine: Engine,
    pub(crate) school: Arc<School>,
}

impl Cluster {
    /// Looks at it.
    pub(crate) async fn open(url: &str) -> anyhow::Result<Self> {
        let options: PgConnectOptions = url.parse().context("the database's URL")?;
        let mut connection = options.connect().await.context("cannot reach Postgres")?;
        let preloaded: String = show(&mut connection, "shared_preload_libraries").await?;
        for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
            let value: String = show(&mut connection, setting).await?;
            ensure!(
                value == "on",
                "{setting} is {value}: what a commit costs is not measured without it"
            );
        }
        Ok(Self {
            options,
            counts_statements: preloaded.contains("pg_stat_statements"),
        })
    }

    /// What the figures were measured on.
    pub(crate) async fn machine(&self) -> anyhow::Result<Value> {
        let mut connection = self.options.connect().await?;
        let cores = std::thread::available_parallelism()?.get();
        let postgres: String = show(&mut connection, "server_version").await?;
        Ok(json!({ "cores": cores, "postgres": postgres, "fsync": "on" }))
    }

    /// Makes a database with a school, after `prepare` has made of it what it will.
    pub(crate) async fn make(
        &self,
        name: &str,
        prepare: impl AsyncFnOnce(&mut PgConnection) -> anyhow::Result<()>,
    ) -> anyhow::Result<Scratch> {
        let name = format!("yici_bench_{name}_{}", std::process::id());
        self.run(format!("CREATE DATABASE {name}")).await?;
        let options = self.options.clone().database(&name);
        let url = options.to_url_lossy().to_string();
        let settings = DatabaseSettings {
            url: Some(url.clone().into()),
            direct_url: None,
            data_dir: PathBuf::new(),
        };
        let database = Database::open(&settings, true).await?;
        let mut connection = options.connect().await?;
        prepare(&mut connection).await?;
        connection.close().await?;
        let engine = Engine::start(database.pools.clone(), EngineConfig::default()).await?;
        let school = Arc::new(School::open(&engine, &database.pools.work).await?);
        Ok(Scratch {
            name,
            url,
            database,
            engine,
            school,
        })
    }

    /// Throws a database away.
    pub(crate) async fn drop(&self, scratch: Scratch) -> anyhow::Result<()> {
        scratch.engine.flush().await;
        scratch.database.close().await?;
        self.run(format!("DROP DATABASE {} WITH (FORCE)", scratch.name))
            .await
    }

    /// Runs one statement that holds nothing of anybody else's.
    async fn run(&self, sql: String) -> anyhow::Result<()> {
        let mut connection = self.options.connect().await?;
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await?;
        Ok(connection.close().await?)
    }
}

impl Scratch {
    /// A connection of one's own.
    pub(crate) async fn connect(&self) -> anyhow::Result<PgConnection> {
        Ok(PgConnection::connect(&self.url).await?)
    }
}

async fn show(connection: &mut PgConnection, setting: &str) -> anyhow::Result<String> {
    Ok(sqlx::query_scalar("SELECT current_setting($1)")
        .bind(setting)
        .fetch_one(connection)
        .await?)
}
