-- What people do about records that did not end, and the log of it that nobody can rewrite.

-- One intent of one person, under a key of its own: it is no arrival.
CREATE TABLE compensation (
    id bigint GENERATED ALWAYS AS IDENTITY,
    record_id bigint NOT NULL,
    action text NOT NULL,
    status text NOT NULL,
    reason text NOT NULL,
    expected_version bigint NOT NULL,
    evidence jsonb,
    -- The problem's code, when it was refused.
    refusal text,
    -- Empty for the command line without a name.
    actor_id bigint,
    idem_key text,
    fingerprint bytea NOT NULL,
    -- Where the request came from.
    origin text NOT NULL,
    bulk_id bigint,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    -- Who decided, when a second person was needed.
    decided_by bigint,
    CONSTRAINT pk_compensation PRIMARY KEY (id),
    CONSTRAINT fk_compensation_actor FOREIGN KEY (actor_id) REFERENCES account (id),
    CONSTRAINT ck_compensation_action CHECK (action IN ('verify', 'complete', 'release', 're_execute', 'fail')),
    CONSTRAINT ck_compensation_status
        CHECK (status IN ('proposed', 'applied', 'awaiting_approval', 'rejected', 'expired', 'refused')),
    CONSTRAINT ck_compensation_refusal CHECK ((status = 'refused') = (refusal IS NOT NULL)),
    CONSTRAINT ck_compensation_expiry CHECK (status <> 'awaiting_approval' OR expires_at IS NOT NULL)
);
-- The command line without a name has one scope of keys; records of a bulk have no keys.
CREATE UNIQUE INDEX uk_compensation_key ON compensation (coalesce(actor_id, 0), idem_key) WHERE idem_key IS NOT NULL;
CREATE INDEX ix_compensation_record ON compensation (record_id, id);
CREATE INDEX ix_compensation_awaiting ON compensation (expires_at, id) WHERE status = 'awaiting_approval';

-- One action on many records, frozen as (record, version) when it was asked for.
CREATE TABLE bulk (
    id bigint GENERATED ALWAYS AS IDENTITY,
    action text NOT NULL,
    reason text NOT NULL,
    actor_id bigint NOT NULL,
    idem_key text NOT NULL,
    fingerprint bytea NOT NULL,
    origin text NOT NULL,
    total integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    -- Who runs it now, and until when that one is presumed alive.
    claim_token uuid,
    claimed_until timestamptz,
    CONSTRAINT pk_bulk PRIMARY KEY (id),
    CONSTRAINT uk_bulk_key UNIQUE (actor_id, idem_key),
    CONSTRAINT fk_bulk_actor FOREIGN KEY (actor_id) REFERENCES account (id),
    CONSTRAINT ck_bulk_action CHECK (action IN ('verify', 'complete', 'release', 're_execute', 'fail')),
    CONSTRAINT ck_bulk_claim CHECK ((claim_token IS NULL) = (claimed_until IS NULL))
);
CREATE INDEX ix_bulk_running ON bulk (id) WHERE finished_at IS NULL;

CREATE TABLE bulk_item (
    bulk_id bigint NOT NULL,
    record_id bigint NOT NULL,
    version bigint NOT NULL,
    outcome text,
    detail text,
    CONSTRAINT pk_bulk_item PRIMARY KEY (bulk_id, record_id),
    CONSTRAINT fk_bulk_item_bulk FOREIGN KEY (bulk_id) REFERENCES bulk (id),
    CONSTRAINT ck_bulk_item_outcome CHECK (outcome IN ('applied', 'skipped', 'refused', 'failed', 'awaiting_approval'))
);
CREATE INDEX ix_bulk_item_open ON bulk_item (record_id) WHERE outcome IS NULL;

-- What happened to each compensation, the scanner's included; no foreign key: it outlives the record.
CREATE TABLE compensation_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    -- Empty for the scanner's.
    compensation_id bigint,
    record_id bigint NOT NULL,
    event text NOT NULL,
    action text NOT NULL,
    actor_id bigint,
    reason text NOT NULL,
    evidence jsonb,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_compensation_log PRIMARY KEY (id),
    CONSTRAINT ck_compensation_log_event
        CHECK (event IN ('proposed', 'requested', 'approved', 'rejected', 'expired', 'applied', 'refused'))
);
CREATE INDEX ix_compensation_log_record ON compensation_log (record_id, id);
CREATE INDEX ix_compensation_log_applied ON compensation_log (at) WHERE event = 'applied';

-- Who did what, when, from where, why, with what before and after; refused attempts too.
CREATE TABLE audit_entry (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor_id bigint,
    action text NOT NULL,
    object text NOT NULL,
    detail jsonb NOT NULL,
    CONSTRAINT pk_audit_entry PRIMARY KEY (id)
);
CREATE INDEX ix_audit_entry_object ON audit_entry (object, id);
CREATE INDEX ix_audit_entry_actor ON audit_entry (actor_id, id);

CREATE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER tg_compensation_log_append_only BEFORE UPDATE OR DELETE ON compensation_log
    FOR EACH ROW EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER tg_compensation_log_no_truncate BEFORE TRUNCATE ON compensation_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER tg_audit_entry_append_only BEFORE UPDATE OR DELETE ON audit_entry
    FOR EACH ROW EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER tg_audit_entry_no_truncate BEFORE TRUNCATE ON audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
