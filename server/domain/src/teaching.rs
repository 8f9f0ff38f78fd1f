//! What a teacher asks for: a new task for a class, and one more version of a task for a student.

use serde::{Deserialize, Serialize};

use crate::action::TaskKind;

/// The longest title in characters: a line of a list on a phone is shorter.
pub const MAX_TITLE_CHARS: usize = 200;
/// The longest instructions in characters: some ten pages.
pub const MAX_INSTRUCTIONS_CHARS: usize = 20_000;

/// The body of `POST /api/v1/tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewTask {
    /// The class that has to do it; all its students, also those who join later.
    pub class_id: String,
    /// The title.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub title: String,
    /// What is to be done.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 20000))]
    pub instructions: String,
    /// Assignment or practice.
    pub kind: TaskKind,
    /// Until when it is expected; RFC 3339.
    #[serde(default)]
    pub due_at: Option<String>,
    /// From when on nothing is accepted any more; RFC 3339.
    #[serde(default)]
    pub closes_at: Option<String>,
}

/// The body of `POST /api/v1/tasks/{task_id}/reopening`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReopeningBody {
    /// The student who may hand it in once more.
    pub student_id: String,
}

/// What is wrong with a task whose members have the right types.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, strum::AsRefStr, strum::EnumString,
)]
#[strum(serialize_all = "kebab-case")]
pub enum InvalidTask {
    /// Blank, too long, or with a control character.
    #[error("title must have 1 to {MAX_TITLE_CHARS} characters and no control character")]
    Title,
    /// Blank, too long, or with a NUL.
    #[error("instructions must have 1 to {MAX_INSTRUCTIONS_CHARS} characters and no NUL character")]
    Instructions,
    /// No time.
    #[error("due_at and closes_at must be RFC 3339 times of the years 2000 to 2999")]
    Time,
    /// It would close before it is due.
    #[error("closes_at must not be before due_at")]
    ClosesBeforeDue,
    /// Nobody could hand it in.
    #[error("closes_at must be in the future")]
    ClosedAlready,
}

impl NewTask {
    /// The task without what only a text field adds, once its texts fit.
    ///
    /// # Errors
    /// The first rule that is broken; times are checked by whoever has a calendar.
    pub fn checked(self) -> Result<Self, InvalidTask> {
        let title = self.title.trim().to_owned();
        let instructions = self.instructions.replace("\r\n", "\n").replace('\r', "\n");
        let instructions = instructions.trim_end().to_owned();
        let fits = |text: &str, max| (1..=max).contains(&text.chars().count());
        if !fits(&title, MAX_TITLE_CHARS) || title.contains(char::is_control) {
            return Err(InvalidTask::Title);
        }
        if !fits(instructions.trim(), MAX_INSTRUCTIONS_CHARS) || instructions.contains('\0') {
            return Err(InvalidTask::Instructions);
        }
        Ok(Self {
            title,
            instructions,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(title: &str, instructions: &str) -> NewTask {
        NewTask {
            class_id: "1".into(),
            title: title.into(),
            instructions: instructions.into(),
            kind: TaskKind::Assignment,
            due_at: None,
            closes_at: None,
        }
    }

    #[test]
    fn texts_are_taken_without_their_edges() {
        let checked = task(" 作文 ", "  a\r\nb\n\n").checked().expect("good");
        assert_eq!(checked, task("作文", "  a\nb"));
    }

    #[test]
    fn texts_that_nobody_could_read_are_refused() {
        let long = "x".repeat(MAX_TITLE_CHARS + 1);
        for title in ["", "  ", "a\nb", "a\0", &long] {
            assert_eq!(task(title, "x").checked(), Err(InvalidTask::Title));
        }
        for instructions in ["", " \r\n ", "a\0b"] {
            let refused = task("x", instructions).checked();
            assert_eq!(refused, Err(InvalidTask::Instructions));
        }
    }
}
