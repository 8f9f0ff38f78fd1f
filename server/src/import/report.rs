//! What became of the rows: the outcome of each, the sums of all, and the list of those that were not taken.

use std::{collections::BTreeMap, fmt, io::Write};

use domain::{Bucket, ProblemCode, problem::Problem};
use engine::Answer;

use super::file::{COLUMNS, InvalidRow, Place};

/// What became of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was handed in now.
    New,
    /// This very row was taken before.
    Reused,
    /// Another key had handed in the same content.
    ConflictSame,
    /// Another content stands in its place.
    ConflictOther {
        /// Where that can be read.
        submission: String,
    },
    /// A rule says no.
    Refused {
        /// The problem's code.
        code: String,
        /// What happened and what to do.
        detail: String,
        /// Whether an earlier run was told so already and this is the stored answer.
        before: bool,
    },
    /// It is not as it must be.
    Invalid(InvalidRow),
    /// It is not known to be taken, for a reason that may pass: the same command again finds out and completes it.
    Failed(String),
    /// It was not tried, because an earlier row of the same student and task had failed. It counts as failed.
    HeldBack,
}

impl Outcome {
    /// What an answer means for its row; `None` when it is no outcome yet: still executing, not known, or failed for now.
    pub(super) fn of_answer(answer: &Answer) -> Option<Self> {
        Some(match (answer.status, answer.bucket) {
            (202 | 503, _) => return None,
            (..400, Bucket::Reused) => Self::Reused,
            (..400, Bucket::ConstraintConflict) => Self::ConflictSame,
            (..400, _) => Self::New,
            _ => Self::of_problem(answer),
        })
    }

    fn of_problem(answer: &Answer) -> Self {
        let problem: Option<Problem> = serde_json::from_str(&answer.body).ok();
        match problem {
            Some(Problem {
                code, submission, ..
            }) if code == ProblemCode::AlreadySubmitted.as_ref() => Self::ConflictOther {
                submission: submission.unwrap_or_default(),
            },
            Some(Problem { code, detail, .. }) => Self::Refused {
                code,
                detail,
                before: answer.replayed,
            },
            None => Self::Refused {
                code: answer.status.to_string(),
                detail: String::new(),
                before: answer.replayed,
            },
        }
    }

    /// Whether the submission that the row describes stands there.
    pub const fn is_taken(&self) -> bool {
        matches!(self, Self::New | Self::Reused | Self::ConflictSame)
    }

    /// One word for programs.
    const fn word(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Reused => "reused",
            Self::ConflictSame => "conflict_same",
            Self::ConflictOther { .. } => "conflict_other",
            Self::Refused { .. } => "refused",
            Self::Invalid(_) => "invalid",
            Self::Failed(_) | Self::HeldBack => "failed",
        }
    }

    /// Why it was not taken, and what can be done.
    fn reason(&self) -> String {
        match self {
            Self::New | Self::Reused | Self::ConflictSame => String::new(),
            Self::ConflictOther { submission } => format!(
                "{}: another content was handed in already, {submission}; have the task reopened and use the next version",
                ProblemCode::AlreadySubmitted
            ),
            Self::Refused {
                code,
                detail,
                before,
            } => {
                let again = if *before {
                    " (An earlier run was told so, and its answer is repeated while the record is kept.)"
                } else {
                    ""
                };
                format!("{code}: {detail}{again}")
            }
            Self::Invalid(invalid) => invalid.to_string(),
            Self::Failed(why) => format!("{why}; run the same command again"),
            // A later attempt would be refused for good while the earlier one is missing.
            Self::HeldBack => "not tried, because an earlier row of this student and task failed; run the same command again".into(),
        }
    }
}

/// The sums of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Handed in now.
    pub new: u64,
    /// Taken before.
    pub reused: u64,
    /// Another key had handed in the same content.
    pub conflict_same: u64,
    /// Another content stands there.
    pub conflict_other: u64,
    /// Refused by a rule, by the problem's code.
    pub refused: BTreeMap<String, u64>,
    /// Not as they must be.
    pub invalid: u64,
    /// Not known to be taken.
    pub failed: u64,
}

impl Report {
    /// Counts one row.
    pub fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::New => self.new += 1,
            Outcome::Reused => self.reused += 1,
            Outcome::ConflictSame => self.conflict_same += 1,
            Outcome::ConflictOther { .. } => self.conflict_other += 1,
            Outcome::Refused { code, .. } => *self.refused.entry(code.clone()).or_default() += 1,
            Outcome::Invalid(_) => self.invalid += 1,
            Outcome::Failed(_) | Outcome::HeldBack => self.failed += 1,
        }
    }

    /// All rows that were decided.
    pub fn rows(&self) -> u64 {
        self.taken() + self.not_taken()
    }

    /// Rows whose submission stands there.
    pub const fn taken(&self) -> u64 {
        self.new + self.reused + self.conflict_same
    }

    /// The others.
    pub fn not_taken(&self) -> u64 {
        self.conflict_other + self.refused.values().sum::<u64>() + self.invalid + self.failed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![
            ("rows".to_owned(), self.rows()),
            ("new".to_owned(), self.new),
            ("reused".to_owned(), self.reused),
            (
                "constraint conflict, same content".to_owned(),
                self.conflict_same,
            ),
            ("conflict, other content".to_owned(), self.conflict_other),
            ("refused".to_owned(), self.refused.values().sum()),
        ];
        lines.extend(
            self.refused
                .iter()
                .map(|(code, n)| (format!("  {code}"), *n)),
        );
        lines.push(("invalid".to_owned(), self.invalid));
        lines.push(("failed".to_owned(), self.failed));
        let width = self.rows().to_string().len();
        for (name, n) in lines {
            writeln!(f, "{name:<36}{n:>width$}")?;
        }
        Ok(())
    }
}

/// The list of rows that were not taken: CSV, one line each, in the order in which they were decided.
pub struct Rejects {
    writer: csv::Writer<Box<dyn Write + Send>>,
    has_header: bool,
}

impl fmt::Debug for Rejects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rejects(…)")
    }
}

impl Rejects {
    /// A list that goes there. Its header comes with the first row, so that nothing is said when there is none.
    pub fn new(output: Box<dyn Write + Send>) -> Self {
        Self {
            writer: csv::Writer::from_writer(output),
            has_header: false,
        }
    }

    /// Writes the header, unless it is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self) -> csv::Result<()> {
        if self.has_header {
            return Ok(());
        }
        self.has_header = true;
        let [task_id, student, submit_version, _] = COLUMNS;
        self.writer.write_record([
            "line",
            task_id,
            student,
            submit_version,
            "outcome",
            "reason",
        ])
    }

    /// Adds a row that was not taken.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn add(&mut self, place: &Place, outcome: &Outcome) -> csv::Result<()> {
        self.begin()?;
        let [task_id, student, submit_version] = &place.cells;
        self.writer.write_record([
            &place.line.to_string(),
            task_id,
            student,
            submit_version,
            outcome.word(),
            &outcome.reason(),
        ])
    }

    /// Hands on what was gathered.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn flush(&mut self) -> csv::Result<()> {
        Ok(self.writer.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_line_and_the_codes_below_their_sum() {
        let mut report = Report::default();
        let refused = |code: &str| Outcome::Refused {
            code: code.into(),
            detail: String::new(),
            before: false,
        };
        for outcome in [
            Outcome::New,
            Outcome::Reused,
            Outcome::ConflictSame,
            Outcome::ConflictOther {
                submission: String::new(),
            },
            refused("task-closed"),
            refused("task-closed"),
            refused("task-not-assigned"),
            Outcome::Invalid(InvalidRow::Blank),
            Outcome::Failed(String::new()),
        ] {
            report.count(&outcome);
        }
        assert_eq!(
            (report.rows(), report.taken(), report.not_taken()),
            (9, 3, 6)
        );
        let table = report.to_string();
        let words: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.rsplitn(2, ' ').map(str::trim).collect())
            .collect();
        assert_eq!(
            words,
            [
                ["9", "rows"],
                ["1", "new"],
                ["1", "reused"],
                ["1", "constraint conflict, same content"],
                ["1", "conflict, other content"],
                ["3", "refused"],
                ["2", "task-closed"],
                ["1", "task-not-assigned"],
                ["1", "invalid"],
                ["1", "failed"],
            ]
        );
    }
}
