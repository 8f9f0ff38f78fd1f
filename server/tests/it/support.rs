//! The whole application without a socket, on a fresh database with the demo's data.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::{Router, body::Body};
use engine::{Engine, EngineConfig, Pools, TokenKind};
use http::{HeaderMap, Method, Request, StatusCode, header::AUTHORIZATION};
use http_body_util::BodyExt;
use secrecy::ExposeSecret;
use serde_json::Value;
use server::{
    auth::{password, token},
    http::{AppState, feed::PanelFeed, limits::Limits, metrics::MetricsPage, pages::Site, router},
};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Every account of the demo that tests use, one for each role and one more student.
pub(crate) const NAMES: &[&str] = &[
    "student1", "student2", "teacher1", "parent1", "ops1", "admin1",
];

pub(crate) struct World {
    pub(crate) app: Router,
    pub(crate) engine: Engine,
    pub(crate) pool: PgPool,
    _site: tempfile::TempDir,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl World {
    pub(crate) async fn new(pool: PgPool) -> Self {
        Self::with_limits(pool, Limits::new(None, None)).await
    }

    /// Another instance on the same database, with pages and API of its own.
    pub(crate) async fn beside(world: &Self) -> Self {
        Self::with_limits(world.pool.clone(), Limits::new(None, None)).await
    }

    pub(crate) async fn with_limits(pool: PgPool, limits: Limits) -> Self {
        Self::with(pool, limits, EngineConfig::default()).await
    }

    pub(crate) async fn with(pool: PgPool, limits: Limits, config: EngineConfig) -> Self {
        let site = tempfile::tempdir().unwrap();
        std::fs::create_dir(site.path().join("pkg")).unwrap();
        std::fs::write(site.path().join("pkg/yici.js"), "// nothing").unwrap();
        let pools = Pools {
            work: pool.clone(),
            reading: pool.clone(),
        };
        let engine = Engine::start(pools, config).await.unwrap();
        engine
            .load_demo(2, &password::hash("demo".into()).await.unwrap())
            .await
            .unwrap();
        let state = AppState {
            feed: PanelFeed::new(engine.clone(), CancellationToken::new()),
            engine: engine.clone(),
            limits,
            metrics: MetricsPage::new(engine.clone(), CancellationToken::new()),
            options: Site::find(site.path()).unwrap().options(),
        };
        Self {
            app: router(state),
            engine,
            pool,
            _site: site,
        }
    }

    /// One more instance on the same database.
    pub(crate) async fn another_instance(&self) -> Engine {
        let pools = Pools {
            work: self.pool.clone(),
            reading: self.pool.clone(),
        };
        Engine::start(pools, EngineConfig::default()).await.unwrap()
    }

    /// A token for an account of the demo.
    pub(crate) async fn token(&self, name: &str) -> String {
        let account = self
            .engine
            .list_accounts(&[name.to_owned()], None)
            .await
            .unwrap()
            .pop()
            .unwrap();
        let (token, hash) = token::make().unwrap();
        self.engine
            .add_token(account.id, &hash, TokenKind::Machine, None)
            .await
            .unwrap();
        token.expose_secret().to_owned()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes().to_vec(),
        }
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        self.send(
            request(Method::GET, path, token)
                .body(Body::empty())
                .unwrap(),
        )
        .await
    }

    /// Posts JSON under a key.
    pub(crate) async fn submit(&self, token: &str, path: &str, key: &str, body: &str) -> Answer {
        let request = request(Method::POST, path, token)
            .header("idempotency-key", key)
            .header("content-type", "application/json")
            .body(Body::from(body.to_owned()))
            .unwrap();
        self.send(request).await
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }
}

pub(crate) fn request(method: Method, path: &str, token: &str) -> http::request::Builder {
    let builder = Request::builder().method(method).uri(path);
    if token.is_empty() {
        builder
    } else {
        builder.header(AUTHORIZATION, format!("Bearer {token}"))
    }
}

/// A body that no other call has made.
pub(crate) fn fresh_submission(version: u32) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(r#"{{"submit_version":{version},"client_id":"device","content":"work {n}"}}"#)
}
