//! The `server` command.

use std::process::ExitCode;

use server::{run, settings::Invocation, telemetry};

#[tokio::main]
async fn main() -> ExitCode {
    let invocation = match Invocation::from_env() {
        Ok(invocation) => invocation,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let (format, otlp_endpoint) = invocation.telemetry();
    let telemetry = match telemetry::start(format, otlp_endpoint) {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::from(2);
        }
    };
    let done = run(invocation).await;
    telemetry.stop().await;
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
