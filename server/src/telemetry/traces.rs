//! Traces, sent by OTLP over HTTP as JSON.

use std::time::Duration;

use anyhow::Context;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use secrecy::{ExposeSecret, SecretString};
use tracing_opentelemetry::OpenTelemetryLayer;

use super::ids::Ids;

/// How long the receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends spans in sets from a thread of its own; when the receiver is away they are dropped after a while, and nobody waits.
pub(super) fn provider(endpoint: &SecretString) -> anyhow::Result<SdkTracerProvider> {
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .build()
        .context("no HTTP client")?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Client {
            client,
            runtime: tokio::runtime::Handle::current(),
        })
        .with_protocol(Protocol::HttpJson)
        .with_timeout(PATIENCE)
        .with_endpoint(format!("{}/v1/traces", endpoint.expose_secret()))
        .build()?;
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_id_generator(Ids::default())
        .with_resource(Resource::builder().with_service_name("yici").build())
        .build())
}

/// The layer that makes spans of spans.
pub(super) fn layer<S>(provider: &SdkTracerProvider) -> OpenTelemetryLayer<S, SdkTracer>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("yici"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        // Ids come from our own hands; entering a span must not change what the thread holds.
        .with_context_activation(false)
}

/// Our HTTP client, used from the exporter's thread, which is none of the runtime's.
#[derive(Debug)]
struct Client {
    client: reqwest::Client,
    runtime: tokio::runtime::Handle,
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let answer = client.execute(request.try_into()?).await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        });
        let (status, body) = sent.await??;
        Ok(http::Response::builder().status(status).body(body)?)
    }
}
