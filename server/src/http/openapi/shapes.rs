//! The forms of bodies and queries, taken from their types.

use std::{borrow::Cow, collections::BTreeMap};

use domain::{
    Bucket, Defence, RecordState,
    command::{RedemptionBody, SubmissionBody},
    compensation::CompensationStatus,
    problem::Problem,
    teaching::{NewTask, ReopeningBody},
    view::{
        Account, ArrivalFilter, ArrivalPage, AssignedTask, AuditFilter, AuditPage, BulkAnswer,
        ChildReport, ClassProgress, CompensationAnswer, CompensationPage, PanelView, RecordDetail,
        RecordFilter, RecordPage, RedemptionView, RequestView, SubmissionView, TaskView, Window,
    },
};
use serde_json::Value;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{RefOr, path::ParameterIn, schema::Schema},
};

use crate::http::{compensations, messages, reports, rewards, session, tasks};

type Named = Vec<(String, RefOr<Schema>)>;

/// The form of a body.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    name: fn() -> Cow<'static, str>,
    schema: fn() -> RefOr<Schema>,
    parts: fn(&mut Named),
}

impl Shape {
    const fn of<T: ToSchema>() -> Self {
        Self {
            name: T::name,
            schema: T::schema,
            parts: T::schemas,
        }
    }

    /// Where the document has it.
    pub(super) fn reference(self) -> String {
        format!("#/components/schemas/{}", (self.name)())
    }
}

macro_rules! shapes {
    ($($name:ident = $type:ty;)*) => {
        $(pub(super) const $name: Shape = Shape::of::<$type>();)*
        const ALL: &[Shape] = &[$($name,)*];
    };
}

shapes! {
    ACCOUNT = Account;
    ARRIVALS = ArrivalPage;
    AUDIT = AuditPage;
    ASSIGNED_TASK = AssignedTask;
    BULK = BulkAnswer;
    BULK_BODY = compensations::BulkBody;
    CHILD_REPORT = ChildReport;
    CHILDREN = reports::Children;
    CLASS_PROGRESS = ClassProgress;
    CLASSES = reports::Classes;
    COMPENSATION = CompensationAnswer;
    COMPENSATION_BODY = compensations::CompensationBody;
    COMPENSATIONS = CompensationPage;
    CREDENTIALS = session::Credentials;
    DECISION_BODY = compensations::DecisionBody;
    NEW_TASK = NewTask;
    NOTIFICATIONS = messages::Notifications;
    PANEL = PanelView;
    POINTS = tasks::Points;
    PROBLEM = Problem;
    RECORD = RecordDetail;
    RECORDS = RecordPage;
    REDEMPTION = RedemptionView;
    REDEMPTION_BODY = RedemptionBody;
    REDEMPTIONS = rewards::Redemptions;
    REOPENING_BODY = ReopeningBody;
    REPLAY_BODY = messages::ReplayBody;
    REQUEST = RequestView;
    REWARDS = rewards::Rewards;
    SIGNED_IN = session::SignedIn;
    SUBMISSION = SubmissionView;
    SUBMISSION_BODY = SubmissionBody;
    SUBMISSIONS = tasks::Submissions;
    TASK = TaskView;
    TASKS = tasks::Tasks;
    // Words of queries.
    BUCKET = Bucket;
    COMPENSATION_STATUS = CompensationStatus;
    DEFENCE = Defence;
    STATE = RecordState;
    WINDOW = Window;
}

/// The parameters of a query.
pub(super) type Query = fn() -> Value;

pub(super) fn of_query<T: IntoParams>() -> Value {
    let parameters = T::into_params(|| Some(ParameterIn::Query));
    serde_json::to_value(parameters).unwrap_or_default()
}

pub(super) const ARRIVAL_FILTER: Query = of_query::<ArrivalFilter>;
pub(super) const AUDIT_FILTER: Query = of_query::<AuditFilter>;
pub(super) const COMPENSATION_QUERY: Query = of_query::<compensations::ListQuery>;
pub(super) const PANEL_QUERY: Query = of_query::<crate::http::panel::PanelQuery>;
pub(super) const RECORD_FILTER: Query = of_query::<RecordFilter>;
pub(super) const REQUEST_QUERY: Query = of_query::<tasks::RequestQuery>;

/// All forms, and the forms that they are made of, by name.
pub(super) fn components() -> BTreeMap<String, Value> {
    let mut named = Named::new();
    for shape in ALL {
        named.push(((shape.name)().into_owned(), (shape.schema)()));
        (shape.parts)(&mut named);
    }
    named
        .into_iter()
        .map(|(name, schema)| (name, serde_json::to_value(schema).unwrap_or_default()))
        .collect()
}
