-- What the panel reads when there is much: counters rolled up, lists by index, and the claims that were taken over.

-- Half an hour of counters of all instances. Minutes that no short window shows any more are moved here, and into the total, by
-- one statement: whoever sums all three inside one snapshot has every event exactly once, whatever moves meanwhile.
CREATE TABLE outcome_slot (
    slot timestamptz NOT NULL,
    action_type text NOT NULL,
    name text NOT NULL,
    n bigint NOT NULL,
    CONSTRAINT pk_outcome_slot PRIMARY KEY (slot, action_type, name),
    CONSTRAINT ck_outcome_slot_n CHECK (n > 0)
);

-- Everything that was moved out of the minutes, ever.
CREATE TABLE outcome_total (
    action_type text NOT NULL,
    name text NOT NULL,
    n bigint NOT NULL,
    CONSTRAINT pk_outcome_total PRIMARY KEY (action_type, name),
    CONSTRAINT ck_outcome_total_n CHECK (n > 0)
);

-- The counters of all time.
CREATE VIEW counter_total AS
SELECT action_type, name, sum(n)::bigint AS n
FROM (
    SELECT action_type, name, n FROM outcome_total
    UNION ALL
    SELECT action_type, name, n FROM outcome_counter
) parts
GROUP BY action_type, name;

-- A claim that somebody took over; the present one stands in the record itself, so a claim of its own costs nothing.
CREATE TABLE past_claim (
    record_id bigint NOT NULL,
    attempt integer NOT NULL,
    instance_id integer NOT NULL,
    claimed_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    -- With what the claim ended, fenced or not.
    epoch bigint NOT NULL,
    CONSTRAINT pk_past_claim PRIMARY KEY (record_id, attempt)
);

-- The records of an action, and those that were refused, newest first. Neither blocks an update in place: the state stands in
-- the predicate of other indexes already.
CREATE INDEX ix_idempotency_record_action ON idempotency_record (action_type, id);
CREATE INDEX ix_idempotency_record_refused ON idempotency_record (id) WHERE state = 'FAILED_FINAL';

-- Finer, and kept up to date as the table grows: what is not summarised is read by every look-up.
DROP INDEX ix_request_arrival_arrived;
CREATE INDEX ix_request_arrival_arrived ON request_arrival USING brin (arrived_at)
    WITH (pages_per_range = 16, autosummarize = on);
