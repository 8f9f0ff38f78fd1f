//! Records and arrivals as ops look for them: the lists, and one record with everything that is known about it.

use domain::view::{ArrivalFilter, ArrivalPage, ClaimView, RecordDetail, RecordFilter, RecordPage};

use crate::{
    Engine, StoreError,
    compensate::evidence_view,
    reading::{DEFAULT_PAGE, MAX_PAGE},
    store::{
        actions::REGISTRY,
        arrival_list::{self, list_arrivals, list_record_arrivals},
        compensation::list_events,
        outbox::list_messages,
        record_detail::{find_detail, list_past_claims},
        record_list::{self, Cursor, From, Order, find_summary},
        rfc3339,
        transaction::begin_reading,
    },
};

/// How many arrivals, and how many lines of the log, a record's page shows.
const MAX_LINES: i64 = 500;

impl Engine {
    /// A page of the list of records; `None` when the cursor is none of ours.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_records(
        &self,
        filter: &RecordFilter,
    ) -> Result<Option<RecordPage>, StoreError> {
        let order = if filter.is_oldest_first() {
            Order::OldestClaimFirst
        } else {
            Order::NewestFirst
        };
        let Some(from) = place(filter, order) else {
            return Ok(None);
        };
        let limit = page_length(filter.limit);
        // One more than asked for tells whether there is another page.
        let mut snapshot = begin_reading(&self.0.pools.reading).await?;
        let stuck_after = self.0.config.stuck_after;
        let mut lines =
            record_list::list_records(&mut snapshot, filter, order, from, limit + 1, stuck_after)
                .await?;
        snapshot.commit().await?;
        let more = lines.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        if more {
            lines.pop();
        }
        let is_back = matches!(from, From::Before(_));
        if is_back {
            lines.reverse();
        }
        let cursor = |line: Option<&record_list::Line>| line.map(|l| Cursor::of(l).text(order));
        let (first, last) = (cursor(lines.first()), cursor(lines.last()));
        // Where a page was asked for from, there is a page on that side.
        let next = if is_back || more { last } else { None };
        let prev = match from {
            From::Begin => None,
            From::After(_) => first,
            From::Before(_) => first.filter(|_| more),
        };
        Ok(Some(RecordPage {
            records: lines.into_iter().map(|line| line.record).collect(),
            next,
            prev,
        }))
    }

    /// A page of the list of decided arrivals; `None` when the cursor is none of ours.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_arrivals(
        &self,
        filter: &ArrivalFilter,
    ) -> Result<Option<ArrivalPage>, StoreError> {
        let after = filter.after.as_deref().map(arrival_list::Cursor::read);
        if after == Some(None) {
            return Ok(None);
        }
        let limit = page_length(filter.limit);
        let mut snapshot = begin_reading(&self.0.pools.reading).await?;
        let mut lines = list_arrivals(&mut snapshot, filter, after.flatten(), limit + 1).await?;
        snapshot.commit().await?;
        let more = lines.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        if more {
            lines.pop();
        }
        let next = lines.last().filter(|_| more).map(|line| line.cursor.text());
        Ok(Some(ArrivalPage {
            arrivals: lines.into_iter().map(|line| line.arrival).collect(),
            next,
        }))
    }

    /// One record with everything that is known about it, all of one moment; `None` when there is none of this id.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find_record(&self, id: &str) -> Result<Option<RecordDetail>, StoreError> {
        let Ok(id) = id.parse::<i64>() else {
            return Ok(None);
        };
        let mut snapshot = begin_reading(&self.0.pools.reading).await?;
        let summary = find_summary(&mut *snapshot, id, self.0.config.stuck_after).await?;
        let detail = find_detail(&mut snapshot, id).await?;
        let Some((summary, mut row)) = summary.zip(detail) else {
            return Ok(None);
        };
        let arrivals = list_record_arrivals(&mut *snapshot, id, MAX_LINES).await?;
        let mut claims = list_past_claims(&mut snapshot, id).await?;
        let compensations = list_events(&mut *snapshot, id, MAX_LINES).await?;
        let outbox = list_messages(&mut *snapshot, id).await?;
        let action = REGISTRY.of_stored(&summary.action)?;
        // Looked at, not acted on: whoever acts looks again behind the record's lock.
        let evidence = action.find_evidence(&mut snapshot, id).await?;
        snapshot.commit().await?;
        // The last one is kept already when somebody moved on what it had left.
        if claims
            .last()
            .is_none_or(|last| last.attempt < summary.attempt)
        {
            claims.push(ClaimView {
                attempt: summary.attempt,
                epoch: row.epoch,
                instance: row.instance.clone(),
                claimed_at: rfc3339(row.claimed_at),
                ended_at: None,
            });
        }
        Ok(Some(RecordDetail {
            id: summary.id,
            key: summary.key,
            action: summary.action,
            subject: summary.subject,
            subject_name: summary.subject_name,
            state: summary.state,
            version: summary.version,
            attempt: summary.attempt,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            stuck_seconds: summary.stuck_seconds,
            error_code: summary.error_code,
            arrival_count: summary.arrivals,
            epoch: row.epoch,
            claimed_at: rfc3339(row.claimed_at),
            lease_until: row.lease_until.map(rfc3339),
            lease_is_live: row.lease_is_live,
            expires_at: row.expires_at.map(rfc3339),
            answer: row.answer(),
            trace_id: row.trace_id,
            fingerprint: row.fingerprint,
            scan_attempts: row.scan_attempts,
            scanned_at: row.scanned_at.map(rfc3339),
            scan_note: row.scan_note,
            arrivals,
            claims,
            compensations,
            outbox: outbox.into_iter().map(Into::into).collect(),
            evidence: Some(evidence_view(&evidence, row.now)?),
        }))
    }
}

/// Where a page begins; `None` when its cursor is none of ours.
fn place(filter: &RecordFilter, order: Order) -> Option<From> {
    match (&filter.after, &filter.before) {
        (None, None) => Some(From::Begin),
        (Some(after), None) => Cursor::read(after, order).map(From::After),
        (None, Some(before)) => Cursor::read(before, order).map(From::Before),
        (Some(_), Some(_)) => None,
    }
}

fn page_length(limit: Option<u32>) -> i64 {
    i64::from(limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE))
}
