//! Claims and finishes, always for a set; one request is a set of one.

use std::time::Duration;

use domain::RecordState;
use sqlx::{FromRow, PgConnection, PgPool};
use uuid::Uuid;

use super::actions::ClaimRef;
use crate::StoreError;

/// What is needed to claim one key.
#[derive(Debug, Clone)]
pub(crate) struct ClaimRow {
    /// Random; tells one's own claim whose commit answer was lost from somebody else's.
    pub(crate) token: Uuid,
    pub(crate) subject_id: i64,
    pub(crate) action_type: &'static str,
    pub(crate) key: String,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) request: serde_json::Value,
    pub(crate) lease: Duration,
    pub(crate) may_commit_late: bool,
    pub(crate) arrival_id: Uuid,
    pub(crate) client_id: String,
    pub(crate) trace_id: String,
    /// How long the arrival has been here already.
    pub(crate) age: Duration,
}

/// A record as a claim or a look-up finds it.
#[derive(Debug, Clone)]
pub(crate) struct FoundRecord {
    pub(crate) id: i64,
    pub(crate) state: RecordState,
    pub(crate) epoch: i64,
    pub(crate) fingerprint: Vec<u8>,
    /// The trace of the arrival that claimed it first.
    pub(crate) trace_id: String,
    /// By Postgres's clock; false when it is not PROCESSING.
    pub(crate) lease_is_live: bool,
    pub(crate) response: Option<StoredAnswer>,
}

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredAnswer {
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) location: Option<String>,
}

impl FoundRecord {
    /// The record as a finish has just left it.
    pub(crate) fn finished(
        row: FinishRow,
        fingerprint: &domain::Fingerprint,
        trace_id: &str,
    ) -> Self {
        Self {
            id: row.claim.record_id,
            state: row.state,
            epoch: row.claim.epoch,
            fingerprint: fingerprint.as_bytes().to_vec(),
            trace_id: trace_id.to_owned(),
            lease_is_live: false,
            response: row.response,
        }
    }

    /// Whether an arrival is answered by it as it is: it is finished, somebody runs it, or it is of another request.
    pub(crate) fn is_answer_to(&self, fingerprint: &domain::Fingerprint) -> bool {
        self.fingerprint != fingerprint.as_bytes() || self.lease_is_live || self.state.is_terminal()
    }
}

/// How one item of a claim came out.
#[derive(Debug, Clone)]
pub(crate) enum Claimed {
    /// This process is to execute it.
    Won { record_id: i64, epoch: i64 },
    /// There was a record already.
    Found(FoundRecord),
}

#[derive(FromRow)]
struct ClaimAnswer {
    token: Uuid,
    won: bool,
    #[sqlx(flatten)]
    record: RecordRow,
}

#[derive(FromRow)]
struct RecordRow {
    id: i64,
    state: String,
    epoch: i64,
    fingerprint: Vec<u8>,
    trace_id: String,
    lease_is_live: bool,
    response_status: Option<i16>,
    response_body: Option<String>,
    response_location: Option<String>,
}

impl TryFrom<RecordRow> for FoundRecord {
    type Error = StoreError;

    fn try_from(row: RecordRow) -> Result<Self, StoreError> {
        let corrupt = |what: &str| StoreError::Corrupt(format!("{what} of record {}", row.id));
        let response = match (row.response_status, row.response_body) {
            (Some(status), Some(body)) => Some(StoredAnswer {
                status: status.try_into().map_err(|_| corrupt("response_status"))?,
                body,
                location: row.response_location,
            }),
            _ => None,
        };
        Ok(Self {
            id: row.id,
            state: row.state.parse().map_err(|_| corrupt("state"))?,
            epoch: row.epoch,
            fingerprint: row.fingerprint,
            trace_id: row.trace_id,
            lease_is_live: row.lease_is_live,
            response,
        })
    }
}

/// Claims each key that has no record yet, and finds the record of each other: in the usual case one statement, one
/// implicit transaction, and for a set that only finds, no commit to wait for.
pub(crate) async fn claim_many(
    connection: &mut PgConnection,
    instance_id: i32,
    items: &[ClaimRow],
) -> Result<Vec<(Uuid, Claimed)>, StoreError> {
    let mut answers = insert_claims_or_find(connection, instance_id, items).await?;
    let lost: Vec<&ClaimRow> = items
        .iter()
        .filter(|i| !answers.iter().any(|a| a.token == i.token))
        .collect();
    if !lost.is_empty() {
        // RACE: somebody claimed between this statement's snapshot and its insert; only a newer snapshot shows the winner.
        answers.extend(find_many(connection, &lost).await?);
    }
    answers
        .into_iter()
        .map(|answer| {
            let claimed = if answer.won {
                Claimed::Won {
                    record_id: answer.record.id,
                    epoch: answer.record.epoch,
                }
            } else {
                Claimed::Found(answer.record.try_into()?)
            };
            Ok((answer.token, claimed))
        })
        .collect()
}

async fn insert_claims_or_find(
    connection: &mut PgConnection,
    instance_id: i32,
    items: &[ClaimRow],
) -> Result<Vec<ClaimAnswer>, sqlx::Error> {
    sqlx::query_as(
        "WITH input AS MATERIALIZED (
             SELECT * FROM unnest(
                 $1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::bytea[], $6::jsonb[], $7::double precision[],
                 $8::uuid[], $9::text[], $10::text[], $11::double precision[]
             ) AS input (token, subject_id, action_type, idem_key, fingerprint, request, lease_seconds,
                         arrival_id, client_id, trace_id, age_seconds)
         ), found AS MATERIALIZED (
             SELECT i.token, r.*
             FROM input i
             JOIN LATERAL (
                 SELECT * FROM idempotency_record r
                 WHERE r.subject_id = i.subject_id AND r.action_type = i.action_type AND r.idem_key = i.idem_key
             ) r ON true
         ), claimed AS (
             INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, fingerprint, request, trace_id,
                                             claim_token, owner_instance, lease_until)
             SELECT i.subject_id, i.action_type, i.idem_key, 'PROCESSING', i.fingerprint, i.request, i.trace_id,
                    i.token, $12, clock_timestamp() + make_interval(secs => i.lease_seconds)
             FROM input i
             WHERE NOT EXISTS (SELECT FROM found f WHERE f.token = i.token)
             -- In the order of the unique key, or crossed sets of two instances deadlock.
             ORDER BY i.subject_id, i.action_type, i.idem_key
             ON CONFLICT ON CONSTRAINT uk_idem_key DO NOTHING
             RETURNING *
         ), arrived AS (
             -- Undecided: whoever finishes the record decides and counts it. Its age is told as of the statement's beginning; taken off
             -- a later time, an arrival could come after its own claim.
             INSERT INTO request_arrival (id, record_id, action_type, arrived_at, client_id, trace_id, same_content)
             SELECT i.arrival_id, c.id, i.action_type, statement_timestamp() - make_interval(secs => i.age_seconds),
                    i.client_id, i.trace_id, true
             FROM claimed c JOIN input i ON i.token = c.claim_token
             -- A path that claims for the second time, after a purge, has its arrival already.
             ON CONFLICT ON CONSTRAINT pk_request_arrival DO NOTHING
         ), durability AS (
             -- The finish is flushed after this and covers it; a claim lost in a crash is simply made again.
             SELECT set_config('synchronous_commit', CASE WHEN $13 THEN 'off' ELSE 'on' END, true) AS setting
         )
         SELECT claim_token AS token, true AS won, id, state, epoch, fingerprint,
                trace_id, true AS lease_is_live, response_status, response_body, response_location
         FROM claimed, durability
         UNION ALL
         -- One's own token: one's own claim, whose commit answer was lost.
         SELECT token, state = 'PROCESSING' AND claim_token = token, id, state, epoch, fingerprint,
                trace_id, coalesce(lease_until > clock_timestamp(), false), response_status, response_body, response_location
         FROM found",
    )
    .bind(items.iter().map(|i| i.token).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.subject_id).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.action_type).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.key.as_str()).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.fingerprint.as_slice()).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.request.clone()).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.lease.as_secs_f64()).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.arrival_id).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.client_id.as_str()).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.trace_id.as_str()).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.age.as_secs_f64()).collect::<Vec<_>>())
    .bind(instance_id)
    .bind(items.iter().all(|i| i.may_commit_late))
    .fetch_all(connection)
    .await
}

async fn find_many(
    connection: &mut PgConnection,
    items: &[&ClaimRow],
) -> Result<Vec<ClaimAnswer>, sqlx::Error> {
    sqlx::query_as(
        "SELECT i.token, r.state = 'PROCESSING' AND r.claim_token = i.token AS won, r.id, r.state, r.epoch,
                r.fingerprint, r.trace_id, coalesce(r.lease_until > clock_timestamp(), false) AS lease_is_live,
                r.response_status, r.response_body, r.response_location
         FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[]) AS i (token, subject_id, action_type, idem_key)
         JOIN LATERAL (
             SELECT * FROM idempotency_record r
             WHERE r.subject_id = i.subject_id AND r.action_type = i.action_type AND r.idem_key = i.idem_key
         ) r ON true",
    )
    .bind(items.iter().map(|i| i.token).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.subject_id).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.action_type).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.key.as_str()).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
}

/// Reads the record of a key by its id; `None` when the number is another key's by now.
pub(crate) async fn find_record(
    pool: &PgPool,
    record_id: i64,
    subject_id: i64,
    key: &str,
) -> Result<Option<FoundRecord>, StoreError> {
    let row: Option<RecordRow> = sqlx::query_as(
        "SELECT id, state, epoch, fingerprint, trace_id,
                coalesce(lease_until > clock_timestamp(), false) AS lease_is_live,
                response_status, response_body, response_location
         FROM idempotency_record WHERE id = $1 AND subject_id = $2 AND idem_key = $3",
    )
    .bind(record_id)
    .bind(subject_id)
    .bind(key)
    .fetch_optional(pool)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// Reads the record of a key, if there is one.
pub(crate) async fn find_record_of_key(
    pool: &PgPool,
    subject_id: i64,
    action_type: &str,
    key: &str,
) -> Result<Option<FoundRecord>, StoreError> {
    let row: Option<RecordRow> = sqlx::query_as(
        "SELECT id, state, epoch, fingerprint, trace_id,
                coalesce(lease_until > clock_timestamp(), false) AS lease_is_live,
                response_status, response_body, response_location
         FROM idempotency_record WHERE subject_id = $1 AND action_type = $2 AND idem_key = $3",
    )
    .bind(subject_id)
    .bind(action_type)
    .bind(key)
    .fetch_optional(pool)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// Reads one record by its id behind its row lock: a commit that is still on its way is waited for, and the lock's own
/// commit is flushed, so that what is seen here is durable before anybody is told.
pub(crate) async fn find_record_settled(
    connection: &mut PgConnection,
    record_id: i64,
) -> Result<Option<FoundRecord>, StoreError> {
    let row: Option<RecordRow> = sqlx::query_as(
        "SELECT id, state, epoch, fingerprint, trace_id,
                coalesce(lease_until > clock_timestamp(), false) AS lease_is_live,
                response_status, response_body, response_location
         FROM idempotency_record WHERE id = $1 FOR UPDATE",
    )
    .bind(record_id)
    .fetch_optional(connection)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// On whose behalf a claim is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executor {
    /// An arrival, which it decides.
    Arrival(Uuid),
    /// The scanner; its end is a compensation.
    Scanner,
    /// A person, whose compensation was counted when the claim was made.
    Person,
}

impl Executor {
    pub(crate) const fn arrival_id(self) -> Option<Uuid> {
        match self {
            Self::Arrival(id) => Some(id),
            Self::Scanner | Self::Person => None,
        }
    }
}

/// How one claim is to end.
#[derive(Debug, Clone)]
pub(crate) struct FinishRow {
    pub(crate) claim: ClaimRef,
    pub(crate) state: RecordState,
    pub(crate) response: Option<StoredAnswer>,
    pub(crate) error_code: Option<&'static str>,
    pub(crate) bucket: domain::Bucket,
    pub(crate) defence: domain::Defence,
    pub(crate) executor: Executor,
}

/// Gives each record its final state, as its only update, decides and counts its undecided arrivals, and returns the
/// records that were really updated: an item whose claim was taken over is not among them.
pub(crate) async fn finish_many(
    connection: &mut PgConnection,
    instance_id: i32,
    retention: Duration,
    items: &[FinishRow],
) -> Result<Vec<i64>, sqlx::Error> {
    let response = |i: &FinishRow| i.response.clone();
    sqlx::query_scalar(
        "WITH input AS MATERIALIZED (
             SELECT * FROM unnest(
                 $1::bigint[], $2::bigint[], $3::text[], $4::smallint[], $5::text[], $6::text[], $7::text[],
                 $8::text[], $9::text[], $12::uuid[], $13::uuid[], $14::boolean[]
             ) AS input (record_id, epoch, state, status, body, location, error_code, bucket, defence, arrival_id, token,
                         by_scanner)
         ), finished AS (
             UPDATE idempotency_record r
             SET state = i.state, version = r.version + 1, error_code = i.error_code, lease_until = NULL,
                 response_status = i.status, response_body = i.body, response_location = i.location,
                 updated_at = clock_timestamp(),
                 -- FAILED_RETRYABLE too: once nobody tries it any more it may go like a terminal one.
                 expires_at = CASE WHEN i.state <> 'UNKNOWN' THEN clock_timestamp() + make_interval(secs => $10) END
             FROM input i
             WHERE r.id = i.record_id AND r.epoch = i.epoch AND r.claim_token = i.token AND r.state = 'PROCESSING'
             RETURNING r.id, r.action_type, r.state, i.bucket, i.defence, i.arrival_id, i.by_scanner
         ), decided AS (
             -- The arrival that executed, or for the scanner the oldest, has the bucket. What a fenced owner or a crash
             -- left undecided beside it met a finished record: one effect is new once.
             UPDATE request_arrival a
             SET outcome = CASE WHEN a.id = o.id THEN f.bucket ELSE 'reused' END,
                 defence = CASE WHEN a.id = o.id THEN f.defence ELSE 'record' END,
                 duration_ms = extract(epoch FROM clock_timestamp() - a.arrived_at) * 1000
             FROM finished f
             LEFT JOIN LATERAL (
                 SELECT u.id FROM request_arrival u
                 WHERE u.record_id = f.id AND u.outcome IS NULL AND (f.arrival_id IS NULL OR u.id = f.arrival_id)
                 ORDER BY u.arrived_at, u.id LIMIT 1
             ) o ON true
             WHERE a.record_id = f.id AND a.outcome IS NULL AND (a.id = o.id OR f.state IN ('SUCCEEDED', 'FAILED_FINAL'))
             RETURNING a.action_type, a.outcome, a.arrived_at
         ), logged AS (
             INSERT INTO compensation_log (record_id, event, action, reason)
             SELECT id, 'applied', 're_execute', 'its execution did not end, and nothing had happened' FROM finished
             WHERE by_scanner AND state IN ('SUCCEEDED', 'FAILED_FINAL') ORDER BY id
         ), counted AS (
             -- Touched last: a counter's row is shared by the whole instance until the commit.
             INSERT INTO outcome_counter AS c (minute, action_type, name, instance_id, n)
             SELECT date_trunc('minute', at), action_type, name, $11, count(*)
             FROM (
                 SELECT arrived_at AS at, action_type, outcome AS name FROM decided
                 UNION ALL
                 SELECT clock_timestamp(), action_type, lower(state) FROM finished
                 WHERE state IN ('FAILED_FINAL', 'FAILED_RETRYABLE')
                 UNION ALL
                 SELECT clock_timestamp(), action_type, 'compensated' FROM finished
                 WHERE by_scanner AND state IN ('SUCCEEDED', 'FAILED_FINAL')
             ) events
             GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
             ON CONFLICT ON CONSTRAINT pk_outcome_counter DO UPDATE SET n = c.n + EXCLUDED.n
         )
         SELECT id FROM finished",
    )
    .bind(items.iter().map(|i| i.claim.record_id).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.claim.epoch).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.state.to_string()).collect::<Vec<_>>())
    .bind(items.iter().map(|i| response(i).and_then(|r| i16::try_from(r.status).ok())).collect::<Vec<_>>())
    .bind(items.iter().map(|i| response(i).map(|r| r.body)).collect::<Vec<_>>())
    .bind(items.iter().map(|i| response(i).and_then(|r| r.location)).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.error_code).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.bucket.to_string()).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.defence.to_string()).collect::<Vec<_>>())
    .bind(retention.as_secs_f64())
    .bind(instance_id)
    .bind(items.iter().map(|i| i.executor.arrival_id()).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.claim.token).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.executor == Executor::Scanner).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
}
