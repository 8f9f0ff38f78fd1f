//! How the task stands at the server, read again now and then: another device may have handed it in, a teacher may have reopened it.

use domain::{
    action::TaskKind,
    phase::{Intent, Phase},
    view::TaskStatus,
};
use leptos::{prelude::*, task::spawn_local};

use super::Machine;
use crate::student::api::{TaskPage, load_task};

impl Machine {
    /// Reads how the task stands now.
    pub(super) fn read_back(self) {
        let Some(task_id) = self
            .intent
            .try_with_untracked(|intent| intent.task_id.clone())
        else {
            return;
        };
        spawn_local(async move {
            match load_task(task_id, None, None).await {
                Ok(page) => self.take(page),
                Err(_) => self.pulse.note_lost(true),
            }
        });
    }

    /// Takes over how the task stands, and moves on to the version that is current when nothing is on its way.
    fn take(self, page: TaskPage) {
        let TaskPage {
            task,
            attempts,
            student_id,
            ..
        } = page;
        let Some(before) = self.intent.try_get_untracked() else {
            return;
        };
        // Somebody else has signed in on this device: that task is theirs, and this page is not.
        if student_id != before.student_id {
            return self.read_account();
        }
        let reopened = task.kind == TaskKind::Assignment
            && task.status == TaskStatus::Pending
            && before.phase == Phase::Submitted
            && before.submit_version < task.submit_version;
        let after = if reopened {
            Intent::idle(
                before.task_id.clone(),
                before.student_id.clone(),
                task.submit_version,
                before.client_id.clone(),
            )
        } else {
            before.clone().for_version(task.submit_version)
        };
        self.pulse.beat();
        if let (Phase::Refused { code }, Phase::Idle) = (&before.phase, &after.phase) {
            self.notice.set(Some(code.clone()));
        }
        if task.submission.is_some()
            && self
                .submission
                .with_untracked(|known| *known != task.submission)
        {
            self.submission.set(task.submission.clone());
        }
        if self.attempts.with_untracked(|known| *known != attempts) {
            self.attempts.set(attempts);
        }
        if self.task.with_untracked(|known| *known != task) {
            self.task.set(task);
        }
        if after != before {
            self.intent.set(after);
        }
    }
}
