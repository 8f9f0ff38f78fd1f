//! The list of records, by keyset: a page costs the same wherever it is, and a record that moves on breaks no cursor.

use std::time::Duration;

use domain::{
    RecordState,
    view::{RecordFilter, RecordSummary},
};
use sqlx::{
    FromRow, PgConnection, PgExecutor, Postgres, QueryBuilder, types::time::OffsetDateTime,
};

use super::rfc3339;
use crate::StoreError;

/// Up to so many rows are looked up by what was asked for and then ordered; of more, the list is walked in its order until the page
/// is full. The planner cannot tell which is better: it believes that what is asked for lies evenly in the list.
const FEW: i64 = 20_000;
/// So many records from the page's place on are tried first for an arrival of an outcome: what is sought is often near, and to find
/// all of few arrivals, everything that came in the window is read.
const NEAR: i64 = 10_000;

#[derive(FromRow)]
struct SummaryRow {
    id: i64,
    idem_key: String,
    action_type: String,
    subject_id: i64,
    subject_name: String,
    state: String,
    version: i64,
    attempt: i32,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    claimed_micros: i64,
    stuck_seconds: Option<i64>,
    arrivals: i64,
    error_code: Option<String>,
}

/// A line of the list, and where it stands in it.
pub(crate) struct Line {
    pub(crate) record: RecordSummary,
    id: i64,
    claimed_micros: i64,
}

impl TryFrom<SummaryRow> for Line {
    type Error = StoreError;

    fn try_from(row: SummaryRow) -> Result<Self, StoreError> {
        let record = RecordSummary {
            state: row
                .state
                .parse()
                .map_err(|_| StoreError::Corrupt(format!("state of record {}", row.id)))?,
            id: row.id.to_string(),
            key: row.idem_key,
            action: row.action_type,
            subject: row.subject_id.to_string(),
            subject_name: row.subject_name,
            version: row.version,
            attempt: row.attempt,
            created_at: rfc3339(row.created_at),
            updated_at: rfc3339(row.updated_at),
            stuck_seconds: row.stuck_seconds,
            arrivals: row.arrivals,
            error_code: row.error_code,
        };
        Ok(Self {
            record,
            id: row.id,
            claimed_micros: row.claimed_micros,
        })
    }
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By id, downwards.
    NewestFirst,
    /// By the time of the claim and the id, upwards: unfinished records.
    OldestClaimFirst,
}

/// A place in a list. It holds what the list is ordered by, so it stays a place when its record moves on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    claimed_micros: i64,
    id: i64,
}

impl Cursor {
    /// The place of a line.
    pub(crate) fn of(line: &Line) -> Self {
        Self {
            claimed_micros: line.claimed_micros,
            id: line.id,
        }
    }

    /// Its text, for this order.
    pub(crate) fn text(self, order: Order) -> String {
        match order {
            Order::NewestFirst => self.id.to_string(),
            Order::OldestClaimFirst => format!("{}-{}", self.claimed_micros, self.id),
        }
    }

    /// Reads a text of this order; `None` when it is none.
    pub(crate) fn read(text: &str, order: Order) -> Option<Self> {
        let (claimed_micros, id) = match order {
            Order::NewestFirst => (0, text.parse().ok()?),
            Order::OldestClaimFirst => {
                let (at, id) = text.split_once('-')?;
                (at.parse().ok()?, id.parse().ok()?)
            }
        };
        Some(Self { claimed_micros, id })
    }
}

/// From where, and in which direction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum From {
    Begin,
    After(Cursor),
    /// Lines before the cursor, the nearest first.
    Before(Cursor),
}

/// At most `limit` lines from a place on.
pub(crate) async fn list_records(
    connection: &mut PgConnection,
    filter: &RecordFilter,
    order: Order,
    from: From,
    limit: i64,
    stuck_after: Duration,
) -> Result<Vec<Line>, StoreError> {
    let subjects = match &filter.subject {
        None => None,
        Some(subject) => Some(find_subjects(connection, subject).await?),
    };
    if subjects.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let arrivals = match filter.outcome {
        None => None,
        Some(_) => Some(count_arrivals(connection, filter).await?),
    };
    let few_arrivals = arrivals.is_some_and(|n| n <= FEW);
    let few_keys = match &filter.q {
        None => false,
        Some(q) => count_keys(connection, q).await? <= FEW,
    };
    let list = List {
        filter,
        order,
        from,
        limit,
        stuck_after,
        subjects: subjects.as_deref(),
        few_arrivals,
        few_keys,
        near: false,
    };
    // Fewer arrivals than lines cannot fill the page.
    if few_arrivals && filter.q.is_none() && arrivals >= Some(limit) {
        let near = List {
            few_arrivals: false,
            near: true,
            ..list
        };
        let lines = find_lines(connection, &near).await?;
        // They are walked in the list's order, so a page that is full is the page.
        if i64::try_from(lines.len()).is_ok_and(|n| n == limit) {
            return Ok(lines);
        }
    }
    find_lines(connection, &list).await
}

async fn find_lines(
    connection: &mut PgConnection,
    list: &List<'_>,
) -> Result<Vec<Line>, StoreError> {
    let mut sql = QueryBuilder::new("SELECT ");
    sql.push(COLUMNS)
        .push_bind(list.stuck_after.as_secs_f64())
        .push(STUCK_SECONDS);
    sql.push(" FROM (");
    match &list.filter.q {
        None => list.push_ids(&mut sql, Search::None),
        // Two searches, each by its own index; one condition with OR could use neither.
        Some(q) => {
            sql.push("(");
            list.push_ids(&mut sql, Search::Key(q));
            sql.push(") UNION (");
            list.push_ids(&mut sql, Search::Trace(q));
            sql.push(")");
        }
    }
    sql.push(
        ") page JOIN idempotency_record r ON r.id = page.id JOIN account a ON a.id = r.subject_id",
    );
    list.push_order(&mut sql);
    // Planned for the values at hand: a plan for all filters would fit none.
    let rows: Vec<SummaryRow> = sql
        .build_query_as()
        .persistent(false)
        .fetch_all(connection)
        .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

const COLUMNS: &str = "r.id, r.idem_key, r.action_type, r.subject_id, a.name AS subject_name, r.state, r.version, r.attempt,
    r.created_at, r.updated_at, (extract(epoch FROM r.claimed_at) * 1000000)::bigint AS claimed_micros, r.error_code,
    (SELECT count(*) FROM request_arrival v WHERE v.record_id = r.id) AS arrivals,
    CASE WHEN r.state IN ('PROCESSING', 'UNKNOWN') AND r.claimed_at <= now() - make_interval(secs => ";
const STUCK_SECONDS: &str =
    ") THEN floor(extract(epoch FROM now() - r.claimed_at))::bigint END AS stuck_seconds";

/// What a text is looked for in.
#[derive(Clone, Copy)]
enum Search<'a> {
    None,
    Key(&'a str),
    Trace(&'a str),
}

#[derive(Clone, Copy)]
struct List<'a> {
    filter: &'a RecordFilter,
    order: Order,
    from: From,
    limit: i64,
    stuck_after: Duration,
    subjects: Option<&'a [i64]>,
    few_arrivals: bool,
    few_keys: bool,
    /// Only the nearest records are looked at.
    near: bool,
}

impl List<'_> {
    /// The ids of the page, as a query of its own: what is shown beside them is looked up for these only.
    fn push_ids(&self, sql: &mut QueryBuilder<Postgres>, search: Search<'_>) {
        sql.push(if self.near {
            "SELECT r.id FROM (SELECT r.id, r.claimed_at FROM idempotency_record r WHERE true"
        } else {
            "SELECT r.id FROM idempotency_record r WHERE true"
        });
        self.push_state(sql);
        if let Some(action) = &self.filter.action {
            sql.push(" AND r.action_type = ").push_bind(action.clone());
        }
        if let Some(subjects) = self.subjects {
            sql.push(" AND r.subject_id = ANY (")
                .push_bind(subjects.to_vec())
                .push(")");
        }
        match search {
            Search::None => {}
            Search::Key(q) if self.few_keys => {
                sql.push(
                    " AND r.id IN (SELECT k.id FROM idempotency_record k WHERE k.idem_key LIKE ",
                )
                .push_bind(starts_with(q))
                .push(" OFFSET 0)");
            }
            Search::Key(q) => {
                sql.push(" AND r.idem_key LIKE ").push_bind(starts_with(q));
            }
            Search::Trace(q) => {
                sql.push(
                    " AND r.id IN (SELECT v.record_id FROM request_arrival v WHERE v.trace_id = ",
                )
                .push_bind(q.to_owned())
                .push(")");
            }
        }
        if self.near {
            self.push_place(sql);
            self.push_order(sql);
            sql.push(" LIMIT ").push_bind(NEAR).push(") r WHERE true");
            self.push_arrivals(sql);
        } else {
            self.push_arrivals(sql);
            self.push_place(sql);
        }
        self.push_order(sql);
        sql.push(" LIMIT ").push_bind(self.limit);
    }

    fn push_state(&self, sql: &mut QueryBuilder<Postgres>) {
        // Written out, so that the planner sees which partial index holds them.
        if let Some(state) = self.filter.state {
            sql.push(match state {
                RecordState::Processing => " AND r.state = 'PROCESSING'",
                RecordState::Succeeded => " AND r.state = 'SUCCEEDED'",
                RecordState::FailedFinal => " AND r.state = 'FAILED_FINAL'",
                RecordState::FailedRetryable => " AND r.state = 'FAILED_RETRYABLE'",
                RecordState::Unknown => " AND r.state = 'UNKNOWN'",
            });
        }
        if let Some(stuck) = self.filter.stuck {
            let not = if stuck { "" } else { "NOT " };
            sql.push(" AND ")
                .push(not)
                .push("(r.state IN ('PROCESSING', 'UNKNOWN') AND r.claimed_at <= now() - make_interval(secs => ")
                .push_bind(self.stuck_after.as_secs_f64())
                .push("))");
        }
        if let Some(seconds) = self.filter.min_age {
            sql.push(" AND r.state IN ('PROCESSING', 'UNKNOWN', 'FAILED_RETRYABLE') AND r.claimed_at <= now() - make_interval(secs => ")
                .push_bind(f64::from(seconds))
                .push(")");
        }
        if let (None, Some(window)) = (self.filter.outcome, self.filter.window) {
            sql.push(" AND r.updated_at >= ");
            push_from(sql, window);
        }
    }

    fn push_arrivals(&self, sql: &mut QueryBuilder<Postgres>) {
        let Some(outcome) = self.filter.outcome else {
            return;
        };
        let window = self.filter.window.unwrap_or(super::arrival_list::LONGEST);
        if self.few_arrivals {
            sql.push(" AND r.id IN (SELECT v.record_id FROM ");
            super::arrival_list::push_busy_steps(
                sql,
                window,
                &[outcome],
                self.filter.action.as_deref(),
            );
            sql.push(
                " JOIN LATERAL (
                     SELECT w.record_id, w.outcome FROM request_arrival w
                     WHERE w.arrived_at >= busy.begins AND w.arrived_at < busy.ends OFFSET 0
                 ) v ON v.outcome = ",
            )
            .push_bind(outcome.to_string())
            .push(")");
        } else {
            sql.push(" AND EXISTS (SELECT FROM request_arrival v WHERE v.record_id = r.id AND v.outcome = ")
                .push_bind(outcome.to_string())
                .push(" AND v.arrived_at >= ");
            push_from(sql, window);
            sql.push(")");
        }
    }

    fn push_place(&self, sql: &mut QueryBuilder<Postgres>) {
        let (cursor, forwards) = match self.from {
            From::Begin => return,
            From::After(cursor) => (cursor, true),
            From::Before(cursor) => (cursor, false),
        };
        match self.order {
            Order::NewestFirst => {
                sql.push(if forwards {
                    " AND r.id < "
                } else {
                    " AND r.id > "
                })
                .push_bind(cursor.id);
            }
            Order::OldestClaimFirst => {
                sql.push(" AND (r.claimed_at, r.id) ")
                    .push(if forwards { ">" } else { "<" })
                    // Exact: a double has room for the microseconds of some centuries.
                    .push(" (TIMESTAMPTZ 'epoch' + make_interval(secs => ")
                    .push_bind(cursor.claimed_micros)
                    .push("::bigint / 1000000.0), ")
                    .push_bind(cursor.id)
                    .push(")");
            }
        }
    }

    fn push_order(&self, sql: &mut QueryBuilder<Postgres>) {
        let backwards = matches!(self.from, From::Before(_));
        sql.push(match (self.order, backwards) {
            (Order::NewestFirst, false) => " ORDER BY r.id DESC",
            (Order::NewestFirst, true) => " ORDER BY r.id",
            (Order::OldestClaimFirst, false) => " ORDER BY r.claimed_at, r.id",
            (Order::OldestClaimFirst, true) => " ORDER BY r.claimed_at DESC, r.id DESC",
        });
    }
}

/// When a window begins; see [`super::panel::find_span`].
pub(super) fn push_from(sql: &mut QueryBuilder<Postgres>, window: domain::view::Window) {
    sql.push("(date_bin(make_interval(mins => ")
        .push_bind(window.step_minutes())
        .push("), now(), TIMESTAMPTZ '2000-01-01 00:00Z') - make_interval(mins => ")
        .push_bind(window.minutes() - window.step_minutes())
        .push("))");
}

/// The accounts that a text names, by id or by name.
async fn find_subjects(
    connection: &mut PgConnection,
    subject: &str,
) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar("SELECT id FROM account WHERE name = $1 OR id = $2")
        .bind(subject)
        .bind(subject.parse::<i64>().ok())
        .fetch_all(connection)
        .await
}

/// How many arrivals the counters have for a filter.
async fn count_arrivals(
    connection: &mut PgConnection,
    filter: &RecordFilter,
) -> Result<i64, sqlx::Error> {
    let window = filter.window.unwrap_or(super::arrival_list::LONGEST);
    let mut sql = QueryBuilder::new("SELECT coalesce(sum(n), 0)::bigint FROM (");
    for (i, table) in [
        "SELECT n, minute AS at, name, action_type FROM outcome_counter",
        "SELECT n, slot, name, action_type FROM outcome_slot",
    ]
    .into_iter()
    .enumerate()
    {
        sql.push(if i == 0 { "" } else { " UNION ALL " })
            .push(table);
    }
    sql.push(") parts WHERE name = ")
        .push_bind(filter.outcome.map(|o| o.to_string()))
        .push(" AND at >= ");
    push_from(&mut sql, window);
    if let Some(action) = &filter.action {
        sql.push(" AND action_type = ").push_bind(action.clone());
    }
    sql.build_query_scalar()
        .persistent(false)
        .fetch_one(connection)
        .await
}

/// How many keys begin with a text; counted a little beyond [`FEW`] only.
async fn count_keys(connection: &mut PgConnection, q: &str) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT count(*) FROM (SELECT FROM idempotency_record WHERE idem_key LIKE $1 LIMIT $2) few",
    )
    .bind(starts_with(q))
    .bind(FEW + 1)
    .persistent(false)
    .fetch_one(connection)
    .await
}

/// One record as the list shows it.
pub(crate) async fn find_summary(
    executor: impl PgExecutor<'_>,
    record_id: i64,
    stuck_after: Duration,
) -> Result<Option<RecordSummary>, StoreError> {
    let mut sql = QueryBuilder::new("SELECT ");
    sql.push(COLUMNS)
        .push_bind(stuck_after.as_secs_f64())
        .push(STUCK_SECONDS)
        .push(" FROM idempotency_record r JOIN account a ON a.id = r.subject_id WHERE r.id = ")
        .push_bind(record_id);
    let row: Option<SummaryRow> = sql.build_query_as().fetch_optional(executor).await?;
    row.map(|row| Line::try_from(row).map(|line| line.record))
        .transpose()
}

/// A LIKE pattern for texts that begin with this one.
fn starts_with(text: &str) -> String {
    let mut pattern = text
        .replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_");
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_were_written_and_nothing_else_is() {
        let cursor = Cursor {
            claimed_micros: 1_764_000_000_123_456,
            id: 42,
        };
        let text = cursor.text(Order::OldestClaimFirst);
        assert_eq!(Cursor::read(&text, Order::OldestClaimFirst), Some(cursor));
        assert_eq!(cursor.text(Order::NewestFirst), "42");
        for bad in ["", "x", "1-", "-", "1-2-3"] {
            assert_eq!(Cursor::read(bad, Order::OldestClaimFirst), None, "{bad}");
        }
        assert_eq!(Cursor::read(&text, Order::NewestFirst), None);
    }

    #[test]
    fn patterns_match_their_own_text_only() {
        assert_eq!(starts_with(r"a%b_c\"), r"a\%b\_c\\%");
    }
}
