//! How far an import is, on standard error: a bar for people at a terminal, a line now and then for a log.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a log gets a line.
pub(super) const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows how far an import is.
#[derive(Debug)]
pub struct Progress {
    look: Look,
    began: Instant,
    /// The file's size in bytes; 0 when it has none, such as a pipe.
    size: u64,
    rows: u64,
    bytes: u64,
}

#[derive(Debug)]
enum Look {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

impl Progress {
    /// A bar when standard error is a terminal, else lines.
    pub fn on_stderr(size: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::new(Look::Lines, size);
        }
        let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr());
        let template = if size == 0 {
            "{spinner} {elapsed_precise} {msg}"
        } else {
            "{wide_bar} {percent:>3} %  {msg}  {eta_precise} left"
        };
        // INVARIANT: both templates are good; the default look would do as well.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self::new(Look::Bar(bar), size)
    }

    /// Shows nothing.
    pub fn hidden() -> Self {
        Self::new(Look::Nothing, 0)
    }

    fn new(look: Look, size: u64) -> Self {
        Self {
            look,
            began: Instant::now(),
            size,
            rows: 0,
            bytes: 0,
        }
    }

    /// How far it is: rows that were decided, bytes that were read.
    pub(super) fn at(&mut self, rows: u64, bytes: u64) {
        (self.rows, self.bytes) = (rows, bytes);
        if let Look::Bar(bar) = &self.look {
            bar.set_position(bytes.min(self.size));
            bar.set_message(self.rate());
        }
    }

    /// Is called every [`LINE_EVERY`].
    pub(super) fn tick(&self) {
        if matches!(self.look, Look::Lines) {
            let percent = self.bytes.saturating_mul(100).checked_div(self.size);
            let percent = percent.map_or(String::new(), |p| format!("{} % read, ", p.min(100)));
            eprintln!("{percent}{}", self.rate());
        }
    }

    /// Says something to the person without tearing the bar.
    pub(super) fn say(&self, write: impl FnOnce()) {
        match &self.look {
            Look::Bar(bar) => bar.suspend(write),
            Look::Lines | Look::Nothing => write(),
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        if let Look::Bar(bar) = &self.look {
            bar.finish_and_clear();
        }
    }

    /// Rows so far and per second.
    pub(super) fn rate(&self) -> String {
        let seconds = self.began.elapsed().as_secs_f64().max(0.001);
        format!(
            "{} rows, {:.0} rows/s",
            self.rows,
            self.rows as f64 / seconds
        )
    }
}
