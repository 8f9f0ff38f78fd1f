//! How tasks stand, for the student, the teacher and the parent: all read from one view, so they agree at any moment.

use domain::{
    Role,
    view::{
        AttemptView, ChildReport, ClassOverview, ClassProgress, ClassView, PupilTask,
        StudentFilter, StudentProgress, StudentView, TaskView,
    },
};
use sqlx::{Postgres, Transaction};

use crate::{
    Actor, Engine, StoreError,
    reading::{MAX_PAGE, cursor, page},
    store::{progress, rfc3339, task, transaction::begin_reading},
};

/// How much of a submission a list shows, in characters.
const EXCERPT_CHARS: i32 = 120;

impl Engine {
    /// The tasks of a student.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_tasks(&self, actor: &Actor) -> Result<Vec<TaskView>, StoreError> {
        task::list_tasks(&self.0.pools.reading, actor.id).await
    }

    /// A task of a student; `None` when there is none of this id for them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find_task(
        &self,
        actor: &Actor,
        task_id: &str,
    ) -> Result<Option<TaskView>, StoreError> {
        let Ok(task_id) = task_id.parse() else {
            return Ok(None);
        };
        task::find_task(&self.0.pools.reading, actor.id, task_id).await
    }

    /// What this student has handed in for a task, newest first; of very much, the newest.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_submissions(
        &self,
        actor: &Actor,
        task_id: &str,
    ) -> Result<Vec<AttemptView>, StoreError> {
        let Ok(task_id) = task_id.parse() else {
            return Ok(Vec::new());
        };
        self.submissions_of(actor.id, task_id).await
    }

    async fn submissions_of(
        &self,
        student_id: i64,
        task_id: i64,
    ) -> Result<Vec<AttemptView>, StoreError> {
        let pool = &self.0.pools.reading;
        let limit = i64::from(MAX_PAGE);
        Ok(task::list_submissions(pool, student_id, task_id, EXCERPT_CHARS, limit).await?)
    }

    /// The classes that this teacher teaches.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_classes(&self, actor: &Actor) -> Result<Vec<ClassView>, StoreError> {
        Ok(progress::list_classes(&self.0.pools.reading, actor).await?)
    }

    /// How the students of a class stand: all of them, or a page when the filter has a limit. `None` when this teacher does not
    /// teach it, or when the filter names a cursor or a task that is none.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn class_progress(
        &self,
        actor: &Actor,
        class_id: &str,
        filter: &StudentFilter,
    ) -> Result<Option<ClassProgress>, StoreError> {
        let Some((class, id)) = self.taught(actor, class_id).await? else {
            return Ok(None);
        };
        let mut snapshot = begin_reading(&self.0.pools.reading).await?;
        read_progress(&mut snapshot, class, id, filter).await
    }

    /// A class at one moment: how far it is with each task, and a page of its students. `None` as for [`Engine::class_progress`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn class_overview(
        &self,
        actor: &Actor,
        class_id: &str,
        filter: &StudentFilter,
    ) -> Result<Option<ClassOverview>, StoreError> {
        let Some((class, id)) = self.taught(actor, class_id).await? else {
            return Ok(None);
        };
        let mut snapshot = begin_reading(&self.0.pools.reading).await?;
        let (students, at) = progress::count_students(&mut snapshot, id).await?;
        let rates = progress::list_rates(&mut snapshot, id, students).await?;
        let progress = read_progress(&mut snapshot, class, id, filter).await?;
        Ok(progress.map(|progress| ClassOverview {
            at: rfc3339(at),
            students,
            rates,
            progress,
        }))
    }

    /// The tasks of a student that this teacher teaches, as the student sees them. `None` when there is no such student.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn pupil_tasks(
        &self,
        actor: &Actor,
        student_id: &str,
    ) -> Result<Option<(StudentView, Vec<TaskView>)>, StoreError> {
        let Ok(id) = student_id.parse() else {
            return Ok(None);
        };
        let pool = &self.0.pools.reading;
        let Some((student, _)) = progress::find_pupil(pool, actor.id, id, None).await? else {
            return Ok(None);
        };
        // A student may learn in classes of other teachers too; those tasks are none of this one's business.
        let tasks = task::list_tasks_taught_by(pool, actor.id, id).await?;
        Ok(Some((student, tasks)))
    }

    /// One task of a student that this teacher teaches, with its submissions; `version` chooses the one to show whole.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn pupil_task(
        &self,
        actor: &Actor,
        student_id: &str,
        task_id: &str,
        version: Option<i32>,
    ) -> Result<Option<PupilTask>, StoreError> {
        let (Ok(student_id), Ok(task_id)) = (student_id.parse(), task_id.parse()) else {
            return Ok(None);
        };
        let pool = &self.0.pools.reading;
        let pupil = progress::find_pupil(pool, actor.id, student_id, Some(task_id)).await?;
        let Some((student, class)) = pupil else {
            return Ok(None);
        };
        let Some(task) = task::find_task(pool, student_id, task_id).await? else {
            return Ok(None);
        };
        let shown = match version {
            Some(version) => task::find_version(pool, student_id, task_id, version).await?,
            None => task.submission.clone(),
        };
        Ok(Some(PupilTask {
            student,
            class,
            submissions: self.submissions_of(student_id, task_id).await?,
            shown,
            task,
        }))
    }

    /// The children of this parent.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_children(&self, actor: &Actor) -> Result<Vec<StudentView>, StoreError> {
        if actor.role != Role::Parent {
            return Ok(Vec::new());
        }
        Ok(progress::list_children(&self.0.pools.reading, actor).await?)
    }

    /// How a child stands; `None` when it is not this parent's.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn child_report(
        &self,
        actor: &Actor,
        child_id: &str,
    ) -> Result<Option<ChildReport>, StoreError> {
        let Some((child, id)) = self.child(actor, child_id).await? else {
            return Ok(None);
        };
        let tasks = progress::list_student_progress(&self.0.pools.reading, id).await?;
        Ok(Some(ChildReport { child, tasks }))
    }

    /// The tasks of a child, as the child sees them; `None` when it is not this parent's.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn child_tasks(
        &self,
        actor: &Actor,
        child_id: &str,
    ) -> Result<Option<(StudentView, Vec<TaskView>)>, StoreError> {
        let Some((child, id)) = self.child(actor, child_id).await? else {
            return Ok(None);
        };
        let tasks = task::list_tasks(&self.0.pools.reading, id).await?;
        Ok(Some((child, tasks)))
    }

    async fn child(
        &self,
        actor: &Actor,
        child_id: &str,
    ) -> Result<Option<(StudentView, i64)>, StoreError> {
        let children = self.list_children(actor).await?;
        let child = children.into_iter().find(|child| child.id == child_id);
        Ok(child.zip(child_id.parse().ok()))
    }

    async fn taught(
        &self,
        actor: &Actor,
        class_id: &str,
    ) -> Result<Option<(ClassView, i64)>, StoreError> {
        let classes = self.list_classes(actor).await?;
        let class = classes.into_iter().find(|class| class.id == class_id);
        Ok(class.zip(class_id.parse().ok()))
    }
}

async fn read_progress(
    snapshot: &mut Transaction<'static, Postgres>,
    class: ClassView,
    class_id: i64,
    filter: &StudentFilter,
) -> Result<Option<ClassProgress>, StoreError> {
    let Ok(open) = filter.open.as_deref().map(str::parse).transpose() else {
        return Ok(None);
    };
    let Some((after, limit)) = cursor(filter.after.as_deref(), filter.limit) else {
        return Ok(None);
    };
    let asked = filter.limit.map(|_| limit + 1);
    let found: Vec<StudentProgress> =
        progress::list_class_progress(snapshot, class_id, filter, open, after, asked).await?;
    let (students, next) = match filter.limit {
        Some(_) => page(found, limit, |student| student.id.clone()),
        None => (found, None),
    };
    Ok(Some(ClassProgress {
        class,
        students,
        next,
    }))
}
