//! The student's pages: the tasks, one task, and the submission with its phases.

pub mod api;
mod list;
mod machine;
mod rewards;
mod rewards_api;
mod storage;
mod task;

pub(crate) use list::{Due, TaskFacts, TaskListPage, kind_word, row_key};
pub(crate) use rewards::RewardsPage;
pub(crate) use task::{AttemptRow, TaskDetailPage};
