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
    telemetry::start_log();
    match run(invocation).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
