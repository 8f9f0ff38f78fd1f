//! How far it is, on standard error: a line that moves for people at a terminal, a line for each step for a log.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the line moves.
const MOVE_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    begun: Instant,
}

impl Progress {
    pub(crate) fn start() -> Self {
        let people = std::io::stderr().is_terminal();
        Self {
            bar: people.then(bar),
            begun: Instant::now(),
        }
    }

    /// Says what is done now.
    pub(crate) fn say(&self, step: impl Into<String>) {
        let step = step.into();
        match &self.bar {
            Some(bar) => bar.set_message(step),
            None => eprintln!("{:>4} s  {step}", self.begun.elapsed().as_secs()),
        }
    }

    /// Prints without the moving line in between.
    pub(crate) fn pause(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // INVARIANT: the template is good; the default look would do as well.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(MOVE_EVERY);
    bar
}
