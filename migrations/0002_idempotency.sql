-- The durable truth about each intent, and about each request that came in for it.

-- One start of one server process: the owner of claims and of a column of counters.
CREATE TABLE instance (
    id integer GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_instance PRIMARY KEY (id)
);

CREATE TABLE idempotency_record (
    id bigint GENERATED ALWAYS AS IDENTITY,
    subject_id bigint NOT NULL,
    action_type text NOT NULL,
    idem_key text NOT NULL,
    state text NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    epoch bigint NOT NULL DEFAULT 1,
    version bigint NOT NULL DEFAULT 1,
    error_code text,
    fingerprint bytea NOT NULL,
    -- The checked command, so that an interrupted execution can be repeated without its caller.
    request jsonb NOT NULL,
    trace_id text NOT NULL,
    claim_token uuid NOT NULL,
    owner_instance integer NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz,
    response_status smallint,
    response_body text,
    response_location text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    -- The scanner's bookkeeping; it never touches version, so it makes nobody's page stale.
    scan_after timestamptz NOT NULL DEFAULT clock_timestamp(),
    scan_attempts integer NOT NULL DEFAULT 0,
    scanned_at timestamptz,
    scan_note text,
    CONSTRAINT pk_idempotency_record PRIMARY KEY (id),
    CONSTRAINT uk_idem_key UNIQUE (subject_id, action_type, idem_key),
    CONSTRAINT ck_idempotency_record_state
        CHECK (state IN ('PROCESSING', 'SUCCEEDED', 'FAILED_FINAL', 'FAILED_RETRYABLE', 'UNKNOWN')),
    CONSTRAINT ck_idempotency_record_key CHECK (idem_key ~ '^[!-~]([ -~]{0,253}[!-~])?$'),
    CONSTRAINT ck_idempotency_record_fingerprint CHECK (octet_length(fingerprint) = 32),
    CONSTRAINT ck_idempotency_record_counts CHECK (attempt >= 1 AND epoch >= attempt AND version >= epoch),
    CONSTRAINT ck_idempotency_record_lease CHECK ((state = 'PROCESSING') = (lease_until IS NOT NULL)),
    -- A terminal record has its answer, any other has none.
    CONSTRAINT ck_idempotency_record_answer CHECK (
        (state IN ('SUCCEEDED', 'FAILED_FINAL')) = (response_status IS NOT NULL)
        AND (response_status IS NULL) = (response_body IS NULL)
    ),
    -- What is unfinished never expires; FAILED_RETRYABLE may, once nobody tries it any more.
    CONSTRAINT ck_idempotency_record_expiry CHECK (
        CASE WHEN state IN ('SUCCEEDED', 'FAILED_FINAL') THEN expires_at IS NOT NULL
             WHEN state IN ('PROCESSING', 'UNKNOWN') THEN expires_at IS NULL
             ELSE true END
    )
);
-- What is unfinished is looked at by the panel, the stuck table and the scanner; it is always few.
CREATE INDEX ix_idempotency_record_unfinished ON idempotency_record (claimed_at, id)
    WHERE state IN ('PROCESSING', 'UNKNOWN', 'FAILED_RETRYABLE');
-- The scanner takes what is due first, so that hopeless records do not starve the others.
CREATE INDEX ix_idempotency_record_scan ON idempotency_record (scan_after, id)
    WHERE state IN ('PROCESSING', 'UNKNOWN', 'FAILED_RETRYABLE');
CREATE INDEX ix_idempotency_record_expires ON idempotency_record (expires_at) WHERE expires_at IS NOT NULL;
-- The beginning of a key is searched for.
CREATE INDEX ix_idempotency_record_key ON idempotency_record (idem_key text_pattern_ops);

-- One row for each request that came in for a key. It outlives its record, so there is no foreign key.
CREATE TABLE request_arrival (
    id uuid NOT NULL,
    record_id bigint NOT NULL,
    action_type text NOT NULL,
    arrived_at timestamptz NOT NULL,
    -- Empty until whoever finishes the record decides it.
    outcome text,
    defence text,
    client_id text NOT NULL,
    trace_id text NOT NULL,
    same_content boolean NOT NULL,
    duration_ms double precision,
    CONSTRAINT pk_request_arrival PRIMARY KEY (id),
    CONSTRAINT ck_request_arrival_outcome
        CHECK (outcome IN ('new', 'reused', 'processing', 'unknown', 'mismatch', 'constraint_conflict')),
    CONSTRAINT ck_request_arrival_defence
        CHECK (defence IN ('none', 'cache', 'in_flight', 'record', 'constraint', 'front_lock')),
    CONSTRAINT ck_request_arrival_decided
        CHECK ((outcome IS NULL) = (defence IS NULL) AND (outcome IS NULL) = (duration_ms IS NULL))
);
CREATE INDEX ix_request_arrival_record ON request_arrival (record_id, arrived_at);
CREATE INDEX ix_request_arrival_trace ON request_arrival (trace_id);
CREATE INDEX ix_request_arrival_arrived ON request_arrival USING brin (arrived_at);

-- Events per minute and instance: one row shared by all instances would halve the throughput. What is shown is the sum.
CREATE TABLE outcome_counter (
    minute timestamptz NOT NULL,
    action_type text NOT NULL,
    name text NOT NULL,
    instance_id integer NOT NULL,
    n bigint NOT NULL,
    CONSTRAINT pk_outcome_counter PRIMARY KEY (minute, action_type, name, instance_id),
    CONSTRAINT ck_outcome_counter_name CHECK (name IN (
        'new', 'reused', 'processing', 'unknown', 'mismatch', 'constraint_conflict',
        'failed_final', 'failed_retryable', 'front_lock_expired_suspected', 'front_lock_release_mismatch',
        'timeout_after_success', 'compensated'
    )),
    CONSTRAINT ck_outcome_counter_n CHECK (n > 0)
) WITH (fillfactor = 50);

-- Messages to the outside, written with the effect; unique per record and topic, so that a repair never doubles one.
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY,
    record_id bigint NOT NULL,
    topic text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    delivered_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    CONSTRAINT pk_outbox PRIMARY KEY (id),
    CONSTRAINT uk_outbox_record_topic UNIQUE (record_id, topic)
);
CREATE INDEX ix_outbox_undelivered ON outbox (id) WHERE delivered_at IS NULL;
