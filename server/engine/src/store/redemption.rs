//! Redemptions: holds of points, calls of the provider and what is known about them, and the business row.

use std::time::Duration;

use domain::view::{RedemptionView, RewardView};
use sqlx::{FromRow, PgConnection, PgPool, types::time::OffsetDateTime};

use super::{
    actions::{ClaimRef, Probe},
    rfc3339,
};
use crate::StoreError;

/// A row of `redemption`.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct RedemptionRow {
    pub(crate) id: i64,
    pub(crate) student_id: i64,
    pub(crate) reward_id: i64,
    pub(crate) sequence: i32,
    pub(crate) points: i32,
    pub(crate) created_at: OffsetDateTime,
    pub(crate) record_id: Option<i64>,
}

impl From<RedemptionRow> for RedemptionView {
    fn from(row: RedemptionRow) -> Self {
        Self {
            id: row.id.to_string(),
            reward_id: row.reward_id.to_string(),
            student_id: row.student_id.to_string(),
            sequence: row.sequence,
            points: row.points,
            created_at: rfc3339(row.created_at),
        }
    }
}

/// Serialises everything that holds or spends the points of a record's account.
///
/// RACE: a hold is taken by a statement that looks for a redemption and for another open hold. Without this lock its snapshot could be
/// older than a finish that has turned the one into the other, and it would see neither.
async fn lock_points(connection: &mut PgConnection, record_id: i64) -> Result<(), sqlx::Error> {
    sqlx::query(
        "SELECT FROM points_balance b JOIN idempotency_record r ON r.subject_id = b.account_id
         WHERE r.id = $1 FOR UPDATE OF b",
    )
    .bind(record_id)
    .execute(connection)
    .await
    .map(drop)
}

/// Takes the points for a claim, if the reward exists, the sequence is the next one, nobody else's hold is open, and there are
/// enough. Without a hold nothing is called, and the finish says why. In the claim's transaction.
pub(crate) async fn insert_hold(
    connection: &mut PgConnection,
    claim: ClaimRef,
) -> Result<(), StoreError> {
    lock_points(connection, claim.record_id).await?;
    let (held, paid): (i64, i64) = sqlx::query_as(
        "WITH intent AS (
             SELECT r.id, r.epoch, r.subject_id, w.id AS reward_id, w.price, (r.request ->> 'sequence')::integer AS sequence
             FROM idempotency_record r JOIN reward w ON w.id = (r.request ->> 'reward_id')::bigint
             WHERE r.id = $1 AND r.epoch = $2 AND r.claim_token = $3 AND r.state = 'PROCESSING'
         ), held AS (
             INSERT INTO redemption_hold (record_id, epoch, student_id, reward_id, sequence, points)
             SELECT i.id, i.epoch, i.subject_id, i.reward_id, i.sequence, i.price
             FROM intent i JOIN points_balance b ON b.account_id = i.subject_id AND b.balance >= i.price
             WHERE i.sequence = (SELECT coalesce(max(d.sequence), 0) + 1 FROM redemption d
                                 WHERE d.student_id = i.subject_id AND d.reward_id = i.reward_id)
             ON CONFLICT (student_id, reward_id, sequence) WHERE state = 'open' DO NOTHING
             RETURNING id, student_id, points
         ), paid AS (
             UPDATE points_balance b SET balance = b.balance - h.points FROM held h
             WHERE b.account_id = h.student_id AND b.balance >= h.points
             RETURNING b.account_id
         ), entered AS (
             INSERT INTO points_entry (account_id, amount, source_kind, source_id)
             SELECT student_id, -points, 'redemption_hold', id FROM held
         )
         SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM paid)",
    )
    .bind(claim.record_id)
    .bind(claim.epoch)
    .bind(claim.token)
    .fetch_one(connection)
    .await?;
    // INVARIANT: the balance is locked, so what was enough a moment ago still is.
    (held == paid)
        .then_some(())
        .ok_or_else(|| StoreError::Corrupt("a hold without its points".into()))
}

/// What the provider is to be told.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct CallRow {
    pub(crate) student_id: i64,
    pub(crate) reward_id: i64,
    pub(crate) points: i32,
    pub(crate) idem_key: String,
}

/// Writes down that the provider is about to be called under this claim; `None` when it must not be: the claim was taken over,
/// there is no hold, or an earlier call is not proven void.
pub(crate) async fn insert_call(
    connection: &mut PgConnection,
    claim: ClaimRef,
    timeout: Duration,
) -> Result<Option<CallRow>, sqlx::Error> {
    sqlx::query_as(
        "WITH guard AS MATERIALIZED (
             SELECT r.id, r.epoch, r.idem_key FROM idempotency_record r
             WHERE r.id = $1 AND r.epoch = $2 AND r.claim_token = $3 AND r.state = 'PROCESSING'
               AND r.lease_until > clock_timestamp()
             FOR UPDATE
         ), held AS (
             SELECT g.id, g.epoch, g.idem_key, h.student_id, h.reward_id, h.points
             FROM guard g JOIN redemption_hold h ON h.record_id = g.id AND h.epoch = g.epoch AND h.state = 'open'
             WHERE NOT EXISTS (SELECT FROM redemption_call c
                               -- A void call that turned out to have happened counts as well.
                               WHERE c.record_id = g.id AND (NOT c.is_void OR c.answer = 'done'))
         ), marked AS (
             INSERT INTO redemption_call (record_id, epoch, timeout_ms) SELECT id, epoch, $4 FROM held
             ON CONFLICT ON CONSTRAINT pk_redemption_call DO NOTHING
             RETURNING record_id
         )
         SELECT h.student_id, h.reward_id, h.points, h.idem_key FROM held h JOIN marked m ON m.record_id = h.id",
    )
    .bind(claim.record_id)
    .bind(claim.epoch)
    .bind(claim.token)
    .bind(milliseconds(timeout))
    .fetch_optional(connection)
    .await
}

/// Keeps what the provider answered to a call, whoever has the record by now: it is evidence.
pub(crate) async fn update_call_answer(
    pool: &PgPool,
    record_id: i64,
    epoch: i64,
    answer: &str,
    detail: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE redemption_call SET answer = $3, detail = $4, answered_at = clock_timestamp()
         WHERE record_id = $1 AND epoch = $2 AND answer IS NULL",
    )
    .bind(record_id)
    .bind(epoch)
    .bind(answer)
    .bind(detail)
    .execute(pool)
    .await
    .map(drop)
}

/// A call that somebody is to ask about.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct AskRow {
    pub(crate) epoch: i64,
    pub(crate) subject_id: i64,
    pub(crate) idem_key: String,
    pub(crate) trace_id: String,
}

/// Lets one asker ask about the last call of a record that nobody executes; `None` when there is nothing to ask, or somebody
/// asks already.
pub(crate) async fn claim_question(
    pool: &PgPool,
    record_id: i64,
    patience: Duration,
) -> Result<Option<AskRow>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE redemption_call c SET asking_until = clock_timestamp() + make_interval(secs => $2)
         FROM idempotency_record r
         WHERE r.id = $1 AND c.record_id = r.id AND NOT c.is_void
           AND (r.state = 'UNKNOWN' OR r.state = 'PROCESSING' AND r.lease_until <= clock_timestamp())
           AND c.epoch = (SELECT max(l.epoch) FROM redemption_call l WHERE l.record_id = r.id AND NOT l.is_void)
           AND (c.asking_until IS NULL OR c.asking_until <= clock_timestamp())
         RETURNING c.epoch, r.subject_id, r.idem_key, r.trace_id",
    )
    .bind(record_id)
    .bind(patience.as_secs_f64())
    .fetch_optional(pool)
    .await
}

/// Keeps what the status endpoint said, and lets the next one ask.
pub(crate) async fn insert_probe(
    pool: &PgPool,
    instance_id: i32,
    probe: &Probe,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH said AS (
             INSERT INTO redemption_probe (record_id, epoch, instance_id, asked_ms, answered_ms, asked_at, finding)
             VALUES ($1, $2, $3, $4, $5, clock_timestamp() - make_interval(secs => ($5 - $4)::double precision / 1000), $6)
         )
         UPDATE redemption_call SET asking_until = NULL WHERE record_id = $1 AND epoch = $2",
    )
    .bind(probe.record_id)
    .bind(probe.epoch)
    .bind(instance_id)
    .bind(probe.asked_ms)
    .bind(probe.answered_ms)
    .bind(probe.finding)
    .execute(pool)
    .await
    .map(drop)
}

/// What is known about the calls of a record.
#[derive(Debug, Clone, Copy, FromRow)]
pub(crate) struct CallsRow {
    /// The provider said that it happened.
    pub(crate) happened: bool,
    /// Some call may have happened.
    pub(crate) open: bool,
    /// The call of the record's present epoch was refused for good.
    pub(crate) refused: bool,
}

/// What is known about the calls of a record whose row is locked.
///
/// A call is proven void by two answers "not found" of one asker, at least two time-outs apart by its monotonic clock, the
/// first one asked at least two time-outs after the call was marked: it is sent within one of them, and the other one is the
/// provider's to take it in.
pub(crate) async fn find_calls(
    connection: &mut PgConnection,
    record_id: i64,
) -> Result<CallsRow, sqlx::Error> {
    sqlx::query_as(
        "SELECT coalesce(bool_or(k.happened), false) AS happened,
                coalesce(bool_or(NOT k.is_void AND NOT k.happened AND (k.answer IS NULL OR k.answer = 'unclear')
                                 AND NOT k.proven), false) AS open,
                coalesce(bool_or(k.answer = 'refused' AND k.epoch = k.now_epoch), false) AS refused
         FROM (
             SELECT c.epoch, r.epoch AS now_epoch, c.answer, c.is_void,
                    coalesce(c.answer = 'done', false)
                    OR EXISTS (SELECT FROM redemption_probe p
                               WHERE p.record_id = c.record_id AND p.epoch = c.epoch AND p.finding = 'happened') AS happened,
                    EXISTS (
                        SELECT FROM redemption_probe first JOIN redemption_probe later
                          ON later.record_id = first.record_id AND later.epoch = first.epoch
                         AND later.instance_id = first.instance_id AND later.finding = 'not_found'
                         AND later.asked_ms - first.answered_ms >= 2 * c.timeout_ms
                        WHERE first.record_id = c.record_id AND first.epoch = c.epoch AND first.finding = 'not_found'
                          AND first.asked_at >= c.called_at + 2 * make_interval(secs => c.timeout_ms::double precision / 1000)
                    ) AS proven
             FROM redemption_call c JOIN idempotency_record r ON r.id = c.record_id
             WHERE c.record_id = $1
         ) k",
    )
    .bind(record_id)
    .fetch_one(connection)
    .await
}

/// The intent of a record, behind the lock that the caller holds.
#[derive(Debug, Clone, Copy, FromRow)]
pub(crate) struct IntentRow {
    pub(crate) student_id: i64,
    pub(crate) reward_id: i64,
    pub(crate) sequence: i32,
}

/// Locks a claim's record as the guard of its effects; `None` when the claim was taken over.
pub(crate) async fn lock_guard(
    connection: &mut PgConnection,
    claim: ClaimRef,
) -> Result<Option<IntentRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT subject_id AS student_id, (request ->> 'reward_id')::bigint AS reward_id,
                (request ->> 'sequence')::integer AS sequence
         FROM idempotency_record
         WHERE id = $1 AND epoch = $2 AND claim_token = $3 AND state = 'PROCESSING'
         FOR UPDATE",
    )
    .bind(claim.record_id)
    .bind(claim.epoch)
    .bind(claim.token)
    .fetch_optional(connection)
    .await
}

/// The redemption of a record's intent, whichever key wrote it.
pub(crate) async fn find_redemption_of(
    connection: &mut PgConnection,
    record_id: i64,
) -> Result<Option<RedemptionRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT d.id, d.student_id, d.reward_id, d.sequence, d.points, d.created_at, d.record_id
         FROM idempotency_record r
         JOIN redemption d
           ON d.student_id = r.subject_id AND d.reward_id = (r.request ->> 'reward_id')::bigint
          AND d.sequence = (r.request ->> 'sequence')::integer
         WHERE r.id = $1",
    )
    .bind(record_id)
    .fetch_optional(connection)
    .await
}

/// Why there is no hold.
#[derive(Debug, Clone, Copy, FromRow)]
pub(crate) struct ObstacleRow {
    pub(crate) reward_exists: bool,
    /// Another key's redemption of the same sequence is undecided.
    pub(crate) in_progress: bool,
    pub(crate) is_next: bool,
    pub(crate) has_points: bool,
}

pub(crate) async fn find_obstacle(
    connection: &mut PgConnection,
    record_id: i64,
    intent: IntentRow,
) -> Result<ObstacleRow, sqlx::Error> {
    sqlx::query_as(
        "SELECT EXISTS (SELECT FROM reward w WHERE w.id = $3) AS reward_exists,
                EXISTS (SELECT FROM redemption_hold h
                        WHERE h.student_id = $2 AND h.reward_id = $3 AND h.sequence = $4 AND h.state = 'open'
                          AND h.record_id <> $1) AS in_progress,
                $4 = (SELECT coalesce(max(d.sequence), 0) + 1 FROM redemption d WHERE d.student_id = $2 AND d.reward_id = $3)
                    AS is_next,
                EXISTS (SELECT FROM reward w JOIN points_balance b ON b.account_id = $2 AND b.balance >= w.price
                        WHERE w.id = $3) AS has_points",
    )
    .bind(record_id)
    .bind(intent.student_id)
    .bind(intent.reward_id)
    .bind(intent.sequence)
    .fetch_one(connection)
    .await
}

/// Writes the redemption of a record whose row is locked, spends its hold, and adds the message. Without a hold (it was given
/// back on a proof that turned out wrong) the points become a debt. Doing it again adds nothing.
pub(crate) async fn insert_redemption(
    connection: &mut PgConnection,
    record_id: i64,
) -> Result<(), sqlx::Error> {
    lock_points(connection, record_id).await?;
    sqlx::query(
        "WITH intent AS (
             SELECT r.id, r.epoch, r.subject_id, w.id AS reward_id, (r.request ->> 'sequence')::integer AS sequence,
                    coalesce(h.points, w.price) AS points, h.id AS hold_id
             FROM idempotency_record r
             JOIN reward w ON w.id = (r.request ->> 'reward_id')::bigint
             LEFT JOIN redemption_hold h ON h.record_id = r.id AND h.state = 'open'
             WHERE r.id = $1
         ), written AS (
             INSERT INTO redemption (student_id, reward_id, sequence, points, record_id, epoch)
             SELECT subject_id, reward_id, sequence, points, id, epoch FROM intent
             ON CONFLICT ON CONSTRAINT uk_student_reward_sequence DO NOTHING
             RETURNING id, student_id, reward_id, sequence, points
         ), spent AS (
             UPDATE redemption_hold h SET state = 'spent', ended_at = clock_timestamp()
             FROM intent i, written w WHERE h.id = i.hold_id AND h.state = 'open'
             RETURNING h.id
         ), owed AS (
             INSERT INTO points_entry (account_id, amount, source_kind, source_id)
             SELECT w.student_id, -w.points, 'redemption_debt', w.id FROM written w, intent i WHERE i.hold_id IS NULL
             ON CONFLICT ON CONSTRAINT uk_points_entry_source DO NOTHING
             RETURNING account_id, amount
         ), balanced AS (
             INSERT INTO points_balance AS b (account_id, balance)
             SELECT account_id, amount FROM owed
             ON CONFLICT ON CONSTRAINT pk_points_balance DO UPDATE SET balance = b.balance + EXCLUDED.balance
         )
         INSERT INTO outbox (record_id, topic, payload)
         SELECT $1, 'redemption.created',
                jsonb_build_object('redemption_id', id::text, 'reward_id', reward_id::text, 'student_id', student_id::text,
                                   'sequence', sequence, 'points', points)
         FROM written
         ON CONFLICT ON CONSTRAINT uk_outbox_record_topic DO NOTHING",
    )
    .bind(record_id)
    .execute(connection)
    .await
    .map(drop)
}

/// Gives the points of a record's open hold back, once, and makes its calls void: they had no effect, by refusal, by proof, or by
/// the word of two people.
pub(crate) async fn return_hold(
    connection: &mut PgConnection,
    record_id: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH voided AS (
             UPDATE redemption_call SET is_void = true WHERE record_id = $1 AND NOT is_void
         ), returned AS (
             UPDATE redemption_hold SET state = 'returned', ended_at = clock_timestamp()
             WHERE record_id = $1 AND state = 'open'
             RETURNING id, student_id, points
         ), entered AS (
             INSERT INTO points_entry (account_id, amount, source_kind, source_id)
             SELECT student_id, points, 'redemption_return', id FROM returned
         )
         UPDATE points_balance b SET balance = b.balance + r.points
         FROM (SELECT student_id, sum(points) AS points FROM returned GROUP BY student_id) r
         WHERE b.account_id = r.student_id",
    )
    .bind(record_id)
    .execute(connection)
    .await
    .map(drop)
}

/// A reward as a student sees it.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct RewardRow {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) price: i32,
    pub(crate) next_sequence: i32,
}

impl From<RewardRow> for RewardView {
    fn from(row: RewardRow) -> Self {
        Self {
            id: row.id.to_string(),
            name: row.name,
            price: row.price,
            next_sequence: row.next_sequence,
        }
    }
}

pub(crate) async fn list_rewards(
    pool: &PgPool,
    student_id: i64,
) -> Result<Vec<RewardRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT w.id, w.name, w.price,
                (SELECT coalesce(max(d.sequence), 0) + 1 FROM redemption d
                 WHERE d.student_id = $1 AND d.reward_id = w.id) AS next_sequence
         FROM reward w ORDER BY w.price, w.id",
    )
    .bind(student_id)
    .fetch_all(pool)
    .await
}

/// The rewards whose redemption by a student is undecided, with the keys of the records that hold the points; oldest first.
pub(crate) async fn list_open_redemptions(
    pool: &PgPool,
    student_id: i64,
) -> Result<Vec<(i64, String)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT h.reward_id, r.idem_key FROM redemption_hold h JOIN idempotency_record r ON r.id = h.record_id
         WHERE h.student_id = $1 AND h.state = 'open' ORDER BY h.id",
    )
    .bind(student_id)
    .fetch_all(pool)
    .await
}

pub(crate) async fn find_redemption(
    pool: &PgPool,
    student_id: i64,
    id: i64,
) -> Result<Option<RedemptionRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, student_id, reward_id, sequence, points, created_at, record_id FROM redemption
         WHERE id = $1 AND student_id = $2",
    )
    .bind(id)
    .bind(student_id)
    .fetch_optional(pool)
    .await
}

/// The redemptions of a student, newest first.
pub(crate) async fn list_redemptions(
    pool: &PgPool,
    student_id: i64,
    limit: i64,
) -> Result<Vec<RedemptionRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, student_id, reward_id, sequence, points, created_at, record_id FROM redemption
         WHERE student_id = $1 ORDER BY id DESC LIMIT $2",
    )
    .bind(student_id)
    .bind(limit)
    .fetch_all(pool)
    .await
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
