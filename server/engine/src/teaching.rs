//! What teachers do: tasks for their classes, and one more version for a student.
//!
//! Neither is an action with a record: a task's own row keeps the key of the request that made it, and a reopening is
//! unique per version, so a repeated request finds what the first one wrote.

use domain::{
    Fingerprint, IdempotencyKey,
    teaching::{InvalidTask, NewTask},
    view::{AssignedTask, TaskView},
};
use serde_json::json;
use sqlx::types::time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::{
    Actor, Engine, StoreError,
    store::{audit, rfc3339, task, teaching},
};

/// What became of a request for a new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assigned {
    /// It was made now.
    New(AssignedTask),
    /// The same request made it before.
    Reused(AssignedTask),
    /// Another request made the very same task for this class before.
    Exists(AssignedTask),
    /// The key was used for another task.
    KeyReused,
    /// This teacher teaches no such class.
    NoSuchClass,
    /// It is not as a task has to be.
    Invalid(InvalidTask),
}

/// A task that may be stored.
pub(crate) struct CheckedTask {
    pub(crate) class_id: i64,
    pub(crate) task: NewTask,
    pub(crate) due_at: Option<OffsetDateTime>,
    pub(crate) closes_at: Option<OffsetDateTime>,
    pub(crate) fingerprint: Fingerprint,
}

impl Engine {
    /// Makes a task and assigns it to a class. Repeating the request with its key changes nothing, and neither does asking for
    /// the very same task under another key.
    ///
    /// # Errors
    /// When the store fails; nothing was made then, or the same key finds it.
    pub async fn assign_task(
        &self,
        actor: &Actor,
        key: &IdempotencyKey,
        new: NewTask,
    ) -> Result<Assigned, StoreError> {
        let checked = match check(new) {
            Ok(Some(checked)) => checked,
            Ok(None) => return Ok(Assigned::NoSuchClass),
            Err(invalid) => return Ok(Assigned::Invalid(invalid)),
        };
        let mut transaction = self.0.pools.work.begin().await?;
        if let Some(found) = teaching::find_by_key(&mut transaction, actor.id, key).await? {
            return Ok(found.same_as(&checked));
        }
        if !teaching::teaches(&mut transaction, actor.id, checked.class_id).await? {
            return Ok(Assigned::NoSuchClass);
        }
        let made = teaching::insert_task(&mut transaction, actor.id, key, &checked).await?;
        if let Some(made) = made {
            let (object, detail) = (
                format!("task/{}", made.id),
                json!({ "class_id": made.class_id, "title": made.title }),
            );
            audit::insert_entry(
                &mut *transaction,
                Some(actor.id),
                "task.create",
                &object,
                &detail,
            )
            .await?;
            transaction.commit().await?;
            return Ok(Assigned::New(made));
        }
        // RACE: whoever was first has committed by now; the statement before could not see it.
        if let Some(found) = teaching::find_by_key(&mut transaction, actor.id, key).await? {
            return Ok(found.same_as(&checked));
        }
        let same = teaching::find_by_content(&mut transaction, &checked).await?;
        Ok(same.map_or(
            Assigned::Invalid(InvalidTask::ClosedAlready),
            Assigned::Exists,
        ))
    }

    /// Lets a student hand in one more version of an assignment, and gives the task as it now stands for that student. It changes
    /// nothing when the current version has no submission yet, when the task is a practice, or when `seen_version` is no longer
    /// the current one: two clicks are one. `None`: no such task and student in a class of this teacher.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn reopen_task(
        &self,
        actor: &Actor,
        task_id: &str,
        student_id: &str,
        seen_version: Option<i32>,
    ) -> Result<Option<TaskView>, StoreError> {
        let (Ok(task_id), Ok(student_id)) = (task_id.parse(), student_id.parse()) else {
            return Ok(None);
        };
        let mut transaction = self.0.pools.work.begin().await?;
        if !teaching::has_pupil(&mut transaction, actor.id, task_id, student_id).await? {
            return Ok(None);
        }
        let opened = teaching::insert_reopening(
            &mut transaction,
            actor.id,
            task_id,
            student_id,
            seen_version,
        )
        .await?;
        if let Some(version) = opened {
            let detail = json!({ "student_id": student_id.to_string(), "submit_version": version });
            let object = format!("task/{task_id}");
            audit::insert_entry(
                &mut *transaction,
                Some(actor.id),
                "task.reopen",
                &object,
                &detail,
            )
            .await?;
        }
        transaction.commit().await?;
        task::find_task(&self.0.pools.work, student_id, task_id).await
    }
}

/// Checks texts and times; `None` when the class's id is none.
fn check(new: NewTask) -> Result<Option<CheckedTask>, InvalidTask> {
    let mut task = new.checked()?;
    let Ok(class_id) = task.class_id.parse() else {
        return Ok(None);
    };
    let due_at = task.due_at.as_deref().map(time_of).transpose()?;
    let closes_at = task.closes_at.as_deref().map(time_of).transpose()?;
    if due_at
        .zip(closes_at)
        .is_some_and(|(due, closes)| closes < due)
    {
        return Err(InvalidTask::ClosesBeforeDue);
    }
    // The same moment in another zone is the same task.
    task.due_at = due_at.map(rfc3339);
    task.closes_at = closes_at.map(rfc3339);
    let fingerprint = Fingerprint::of_canonical(&task).map_err(|_| InvalidTask::Title)?;
    Ok(Some(CheckedTask {
        class_id,
        task,
        due_at,
        closes_at,
        fingerprint,
    }))
}

/// A time in UTC and whole microseconds, which is what Postgres keeps.
fn time_of(text: &str) -> Result<OffsetDateTime, InvalidTask> {
    let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| InvalidTask::Time)?;
    let at = at.to_offset(time::UtcOffset::UTC);
    let at = at
        .replace_microsecond(at.microsecond())
        .map_err(|_| InvalidTask::Time)?;
    if (2000..3000).contains(&at.year()) {
        Ok(at)
    } else {
        Err(InvalidTask::Time)
    }
}

#[cfg(test)]
mod tests {
    use domain::action::TaskKind;

    use super::*;

    fn new(due_at: &str, closes_at: &str) -> NewTask {
        NewTask {
            class_id: "1".into(),
            title: "t".into(),
            instructions: "i".into(),
            kind: TaskKind::Practice,
            due_at: Some(due_at.into()),
            closes_at: Some(closes_at.into()),
        }
    }

    #[test]
    fn one_moment_in_two_zones_is_one_task() {
        let of = |text: &str| {
            let checked = check(new(text, text)).unwrap().unwrap();
            *checked.fingerprint.as_bytes()
        };
        let utc = of("2026-12-05T10:00:00Z");
        assert_eq!(of("2026-12-05T18:00:00.000000400+08:00"), utc);
        assert_ne!(of("2026-12-05T18:00:00Z"), utc);
    }

    #[test]
    fn times_that_cannot_be_meant_are_refused() {
        for (due, closes, why) in [
            ("tomorrow", "2026-12-05T10:00:00Z", InvalidTask::Time),
            (
                "2026-12-05T10:00:00Z",
                "0001-01-01T00:00:00Z",
                InvalidTask::Time,
            ),
            (
                "2026-12-05T10:00:00Z",
                "2026-12-05T09:59:59Z",
                InvalidTask::ClosesBeforeDue,
            ),
        ] {
            assert_eq!(check(new(due, closes)).err(), Some(why), "{due} {closes}");
        }
    }
}
