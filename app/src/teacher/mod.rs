//! The teacher's pages: how the classes stand, one student, one task of one student, and a new task.

pub mod api;
mod new_task;
mod progress;
mod pupil;

pub(crate) use new_task::NewTaskPage;
pub(crate) use progress::ProgressPage;
pub(crate) use pupil::{PupilPage, PupilTaskPage, TaskRow};
