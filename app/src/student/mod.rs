//! The student's pages: the tasks, one task, and the submission with its phases.

pub mod api;
mod handed_in;
mod list;
mod machine;
mod redeeming;
mod rewards;
mod rewards_api;
mod status;
mod storage;
mod task;

pub(crate) use handed_in::AttemptRow;
pub(crate) use list::{Due, TaskFacts, TaskListPage, kind_word, row_key};
pub(crate) use rewards::RewardsPage;
pub(crate) use task::TaskDetailPage;
