//! Every route of the API, in the order of its documentation.

use domain::Role;

use super::shapes::{self, Query, Shape};

/// Who may ask.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    /// Anybody.
    Anybody,
    /// Whoever is signed in; of other people's things only what they may see.
    Signed,
    /// Accounts of these roles.
    Roles(&'static [Role]),
}

/// What an answer holds.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    Nothing,
    Json(Shape),
    /// Text of this media type.
    Text(&'static str),
}

/// One route.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) who: Who,
    pub(super) query: Option<Query>,
    pub(super) body: Option<Shape>,
    /// Whether it is an intent with an `Idempotency-Key`.
    pub(super) keyed: bool,
    /// Whether it is an arrival, with `Idempotency-Status`.
    pub(super) arrival: bool,
    /// Statuses of success and what they hold.
    pub(super) answers: &'static [(u16, &'static str, Holds)],
    /// Statuses of refusal, beside those that every route has.
    pub(super) refusals: &'static [u16],
}

const STUDENT: Who = Who::Roles(&[Role::Student]);
const TEACHER: Who = Who::Roles(&[Role::Teacher]);
const PARENT: Who = Who::Roles(&[Role::Parent]);
const READERS: Who = Who::Roles(&[Role::Teacher, Role::Parent]);
const OPS: Who = Who::Roles(&[Role::Ops, Role::Admin]);
const ADMIN: Who = Who::Roles(&[Role::Admin]);

const fn get(
    path: &'static str,
    tag: &'static str,
    who: Who,
    summary: &'static str,
    answers: &'static [(u16, &'static str, Holds)],
) -> Route {
    Route {
        method: "GET",
        path,
        tag,
        summary,
        who,
        query: None,
        body: None,
        keyed: false,
        arrival: false,
        answers,
        refusals: &[],
    }
}

const fn post(
    path: &'static str,
    tag: &'static str,
    who: Who,
    summary: &'static str,
    body: Shape,
    answers: &'static [(u16, &'static str, Holds)],
    refusals: &'static [u16],
) -> Route {
    Route {
        method: "POST",
        body: Some(body),
        refusals,
        ..get(path, tag, who, summary, answers)
    }
}

impl Route {
    const fn asks(self, query: Query) -> Self {
        Self {
            query: Some(query),
            refusals: &[400],
            ..self
        }
    }

    const fn one(self) -> Self {
        Self {
            refusals: &[404],
            ..self
        }
    }

    const fn keyed(self) -> Self {
        Self {
            keyed: true,
            ..self
        }
    }

    const fn arrival(self) -> Self {
        Self {
            keyed: true,
            arrival: true,
            ..self
        }
    }
}

macro_rules! json {
    ($words:literal, $shape:ident) => {
        &[(200, $words, Holds::Json(shapes::$shape))]
    };
}

const SUBMITTED: &[(u16, &str, Holds)] = &[
    (
        201,
        "Executed now (`new`), or the first answer again (`reused`).",
        Holds::Json(shapes::SUBMISSION),
    ),
    (
        200,
        "Another key had handed in the same content (`constraint-conflict`).",
        Holds::Json(shapes::SUBMISSION),
    ),
    (
        202,
        "Still executing (`processing`), or not known yet (`unknown`): ask at `Location` after `Retry-After`.",
        Holds::Text("application/json"),
    ),
];
const REDEEMED: &[(u16, &str, Holds)] = &[
    (
        201,
        "Executed now (`new`), or the first answer again (`reused`).",
        Holds::Json(shapes::REDEMPTION),
    ),
    (
        200,
        "Another key had bought the same (`constraint-conflict`).",
        Holds::Json(shapes::REDEMPTION),
    ),
    (
        202,
        "Still executing (`processing`), or not known yet (`unknown`): ask at `Location` after `Retry-After`.",
        Holds::Text("application/json"),
    ),
];

/// All of them.
pub(super) const ROUTES: &[Route] = &[
    post(
        "/api/v1/session",
        "session",
        Who::Anybody,
        "Sign in; the answer also sets a cookie",
        shapes::CREDENTIALS,
        json!("The token and whose it is.", SIGNED_IN),
        &[400, 401],
    ),
    get(
        "/api/v1/session",
        "session",
        Who::Signed,
        "Who is signed in",
        json!("The account.", ACCOUNT),
    ),
    Route {
        method: "DELETE",
        ..get(
            "/api/v1/session",
            "session",
            Who::Anybody,
            "Sign out",
            &[(204, "The token is void.", Holds::Nothing)],
        )
    },
    get(
        "/api/v1/tasks",
        "tasks",
        STUDENT,
        "The own tasks",
        json!("The tasks.", TASKS),
    ),
    get(
        "/api/v1/tasks/{task_id}",
        "tasks",
        STUDENT,
        "One task, with the `submit_version` to send back",
        json!("The task.", TASK),
    )
    .one(),
    post(
        "/api/v1/tasks/{task_id}/submissions",
        "tasks",
        STUDENT,
        "Hand a task in, once",
        shapes::SUBMISSION_BODY,
        SUBMITTED,
        &[400, 404, 409, 413, 415, 422],
    )
    .arrival(),
    get(
        "/api/v1/submissions/{id}",
        "tasks",
        Who::Signed,
        "One submission: the own, a pupil's or a child's",
        json!("The submission.", SUBMISSION),
    )
    .one(),
    Route {
        refusals: &[400, 404],
        ..get(
            "/api/v1/requests/{key}",
            "tasks",
            Who::Signed,
            "What became of a key",
            json!("The request.", REQUEST),
        )
        .asks(shapes::REQUEST_QUERY)
    },
    get(
        "/api/v1/points",
        "rewards",
        STUDENT,
        "The own points",
        json!("The balance.", POINTS),
    ),
    get(
        "/api/v1/rewards",
        "rewards",
        STUDENT,
        "What points buy",
        json!("The rewards.", REWARDS),
    ),
    post(
        "/api/v1/rewards/{reward_id}/redemptions",
        "rewards",
        STUDENT,
        "Redeem points for a reward, once",
        shapes::REDEMPTION_BODY,
        REDEEMED,
        &[400, 404, 409, 413, 415, 422],
    )
    .arrival(),
    get(
        "/api/v1/redemptions",
        "rewards",
        STUDENT,
        "What was redeemed",
        json!("The redemptions.", REDEMPTIONS),
    ),
    get(
        "/api/v1/redemptions/{id}",
        "rewards",
        STUDENT,
        "One redemption",
        json!("The redemption.", REDEMPTION),
    )
    .one(),
    get(
        "/api/v1/tasks/{task_id}/submissions",
        "tasks",
        STUDENT,
        "The own submissions of one task",
        json!("The submissions, newest first.", SUBMISSIONS),
    )
    .one(),
    post(
        "/api/v1/tasks",
        "reports",
        TEACHER,
        "Assign a new task to a class, once",
        shapes::NEW_TASK,
        &[
            (
                201,
                "The task, new or as it was made under this key.",
                Holds::Json(shapes::ASSIGNED_TASK),
            ),
            (
                200,
                "The same task was there already.",
                Holds::Json(shapes::ASSIGNED_TASK),
            ),
        ],
        &[400, 404, 413, 415, 422],
    )
    .keyed(),
    post(
        "/api/v1/tasks/{task_id}/reopening",
        "reports",
        TEACHER,
        "Open the next version of a task for one student; without a submission of this one nothing changes",
        shapes::REOPENING_BODY,
        json!("The task as the student has it now.", TASK),
        &[400, 404, 413, 415],
    ),
    get(
        "/api/v1/classes",
        "reports",
        TEACHER,
        "The own classes",
        json!("The classes.", CLASSES),
    ),
    get(
        "/api/v1/classes/{id}/progress",
        "reports",
        TEACHER,
        "How a class stands",
        json!("Students and their tasks.", CLASS_PROGRESS),
    )
    .one(),
    get(
        "/api/v1/children",
        "reports",
        PARENT,
        "The own children",
        json!("The children.", CHILDREN),
    ),
    get(
        "/api/v1/children/{id}/report",
        "reports",
        PARENT,
        "How a child stands: what the student sees",
        json!("The child and its tasks.", CHILD_REPORT),
    )
    .one(),
    get(
        "/api/v1/notifications",
        "reports",
        READERS,
        "The newest messages",
        json!("The messages.", NOTIFICATIONS),
    ),
    get(
        "/api/v1/panel",
        "panel",
        OPS,
        "The panel's numbers, all of one moment",
        json!("The numbers.", PANEL),
    )
    .asks(shapes::PANEL_QUERY),
    get(
        "/api/v1/panel/events",
        "panel",
        OPS,
        "The same as an event `panel` each second",
        &[(
            200,
            "A stream that never ends by itself.",
            Holds::Text("text/event-stream"),
        )],
    )
    .asks(shapes::PANEL_QUERY),
    get(
        "/api/v1/records",
        "panel",
        OPS,
        "Records by page",
        json!("A page.", RECORDS),
    )
    .asks(shapes::RECORD_FILTER),
    get(
        "/api/v1/records.csv",
        "panel",
        OPS,
        "The same rows as a table",
        &[(200, "All rows that fit.", Holds::Text("text/csv"))],
    )
    .asks(shapes::RECORD_FILTER),
    get(
        "/api/v1/records/{id}",
        "panel",
        OPS,
        "One record with everything that is known about it",
        json!("The record.", RECORD),
    )
    .one(),
    get(
        "/api/v1/arrivals",
        "panel",
        OPS,
        "Arrivals one by one: the rows that the counters count",
        json!("A page.", ARRIVALS),
    )
    .asks(shapes::ARRIVAL_FILTER),
    post(
        "/api/v1/records/{id}/compensations",
        "compensations",
        ADMIN,
        "Do something about a record that did not end",
        shapes::COMPENSATION_BODY,
        &[
            (
                200,
                "Done, or for `verify` looked at.",
                Holds::Json(shapes::COMPENSATION),
            ),
            (
                202,
                "It waits for a second admin.",
                Holds::Json(shapes::COMPENSATION),
            ),
        ],
        &[400, 404, 409, 422],
    )
    .keyed(),
    post(
        "/api/v1/compensations/{id}/approval",
        "compensations",
        ADMIN,
        "Approve or reject what another admin asked for",
        shapes::DECISION_BODY,
        json!("What became of it.", COMPENSATION),
        &[400, 404, 409, 422],
    ),
    get(
        "/api/v1/compensations",
        "compensations",
        OPS,
        "Compensations by page",
        json!("A page.", COMPENSATIONS),
    )
    .asks(shapes::COMPENSATION_QUERY),
    post(
        "/api/v1/compensations",
        "compensations",
        ADMIN,
        "One action on many records",
        shapes::BULK_BODY,
        &[(202, "It runs.", Holds::Json(shapes::BULK))],
        &[400, 422],
    )
    .keyed(),
    get(
        "/api/v1/compensations/bulk/{id}",
        "compensations",
        OPS,
        "How a bulk stands, record by record",
        json!("The bulk.", BULK),
    )
    .one(),
    get(
        "/api/v1/audit",
        "compensations",
        OPS,
        "Who did what",
        json!("A page.", AUDIT),
    )
    .asks(shapes::AUDIT_FILTER),
    post(
        "/api/v1/outbox/{id}/replay",
        "compensations",
        ADMIN,
        "Let a dead letter be tried again",
        shapes::REPLAY_BODY,
        &[(204, "It will be tried again.", Holds::Nothing)],
        &[400, 404, 409],
    ),
    get(
        "/api/openapi.json",
        "watching",
        Who::Anybody,
        "This document",
        &[(200, "OpenAPI 3.1.", Holds::Text("application/json"))],
    ),
    get(
        "/api/docs",
        "watching",
        Who::Anybody,
        "This document for people",
        &[(200, "A page.", Holds::Text("text/html"))],
    ),
    get(
        "/metrics",
        "watching",
        Who::Anybody,
        "Metrics in Prometheus' text format",
        &[(200, "All series.", Holds::Text("text/plain"))],
    ),
    get(
        "/healthz",
        "watching",
        Who::Anybody,
        "Whether the process answers",
        &[(200, "It does.", Holds::Text("text/plain"))],
    ),
    get(
        "/readyz",
        "watching",
        Who::Anybody,
        "Whether it should be sent requests",
        &[(200, "It should.", Holds::Text("application/json"))],
    ),
];
