-- How often a record became stuck. It is counted once for each claim that did, whichever instance notices it, and stays counted
-- when the record is gone.

-- The claim, by its claimed_at, that was counted as stuck last. The scanner's bookkeeping: it never touches version.
ALTER TABLE idempotency_record ADD COLUMN stuck_claim timestamptz;

-- Few events and only the scanner's, so that one row for all instances costs nobody anything.
CREATE TABLE stuck_counter (
    action_type text NOT NULL,
    n bigint NOT NULL,
    CONSTRAINT pk_stuck_counter PRIMARY KEY (action_type),
    CONSTRAINT ck_stuck_counter_n CHECK (n > 0)
);
