//! How far a simulation is, on standard error.

use std::{io::IsTerminal, sync::Arc, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinHandle;

use super::ledger::Ledger;

/// How often people at a terminal see something new, and how often a log does.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Shows it until it ends.
pub(super) fn start(ledger: Arc<Ledger>) -> JoinHandle<()> {
    let people = std::io::stderr().is_terminal();
    tokio::spawn(async move {
        let bar = people.then(|| bar(ledger.intents().1));
        let every = if people { LOOK_EVERY.0 } else { LOOK_EVERY.1 };
        let mut waited = every;
        while !ledger.has_ended() {
            if waited >= every {
                waited = Duration::ZERO;
                show(&ledger, bar.as_ref());
            }
            tokio::time::sleep(LOOK_EVERY.0).await;
            waited += LOOK_EVERY.0;
        }
        show(&ledger, bar.as_ref());
        if let Some(bar) = bar {
            bar.finish();
        }
    })
}

fn bar(most: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(most), ProgressDrawTarget::stderr());
    // INVARIANT: the template is good; the default look would do as well.
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} intents  {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(ledger: &Ledger, bar: Option<&ProgressBar>) {
    let (done, most) = ledger.intents();
    let words: Vec<String> = ledger
        .counts()
        .iter()
        .map(|(word, n)| format!("{word} {n}"))
        .collect();
    match bar {
        Some(bar) => {
            bar.set_position(done);
            bar.set_message(words.join("  "));
        }
        None => eprintln!("{done}/{most} intents: {}", words.join(", ")),
    }
}
