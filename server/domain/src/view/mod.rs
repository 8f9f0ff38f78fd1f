//! Read models: what the API answers and what the pages show, in the same words.
//!
//! Ids and times are strings: ids so that no number is rounded, times (RFC 3339, UTC) so that no date library reaches the browser.

pub mod account;
pub mod arrival;
pub mod compensation;
pub mod detail;
pub mod ends;
pub mod message;
pub mod panel;
pub mod progress;
pub mod record;
pub mod request;
pub mod reward;
pub mod task;

pub use account::Account;
pub use arrival::{ArrivalFilter, ArrivalPage, ArrivalView};
pub use compensation::{
    AuditEntry, AuditFilter, AuditPage, BulkAnswer, BulkResult, BulkStatus, BulkView,
    CompensationAnswer, CompensationEvent, CompensationPage, CompensationView, EvidenceView,
};
pub use detail::{AnswerView, ClaimView, RecordDetail};
pub use ends::{AppliedView, FailureView};
pub use message::{MessageView, NotificationView};
pub use panel::{
    ActionCounters, Counters, FrontLockHealth, Gauges, Latency, PanelView, SeriesPoint, Window,
};
pub use progress::{
    ChildReport, ClassOverview, ClassProgress, ClassView, PupilTask, StudentFilter,
    StudentProgress, StudentView, TaskProgress, TaskRate,
};
pub use record::{RecordFilter, RecordPage, RecordSummary};
pub use request::{RequestView, StoredResponse};
pub use reward::{OpenRedemptionView, RedemptionView, RewardView};
pub use task::{AssignedTask, AttemptView, SubmissionView, TaskStatus, TaskView};
