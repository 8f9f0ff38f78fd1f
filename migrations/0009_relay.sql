-- The relay of messages: who delivers one now, when it is tried again, and when nobody tries any more.

ALTER TABLE outbox
    ADD COLUMN next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN claim_token uuid,
    ADD COLUMN claimed_until timestamptz,
    -- A dead letter: tried too often; a person may let it be tried again.
    ADD COLUMN dead_at timestamptz,
    ADD COLUMN last_error text,
    ADD CONSTRAINT ck_outbox_claim CHECK ((claim_token IS NULL) = (claimed_until IS NULL)),
    ADD CONSTRAINT ck_outbox_end CHECK (delivered_at IS NULL OR dead_at IS NULL);
DROP INDEX ix_outbox_undelivered;
CREATE INDEX ix_outbox_due ON outbox (next_attempt_at, id) WHERE delivered_at IS NULL AND dead_at IS NULL;
CREATE INDEX ix_outbox_undelivered ON outbox (record_id) WHERE delivered_at IS NULL;
CREATE INDEX ix_outbox_delivered ON outbox (delivered_at) WHERE delivered_at IS NOT NULL;

-- What teachers and parents read: one line for each message and reader.
CREATE TABLE notification (
    id bigint GENERATED ALWAYS AS IDENTITY,
    account_id bigint NOT NULL,
    outbox_id bigint NOT NULL,
    topic text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_notification PRIMARY KEY (id),
    CONSTRAINT uk_notification_outbox_account UNIQUE (outbox_id, account_id),
    CONSTRAINT fk_notification_account FOREIGN KEY (account_id) REFERENCES account (id)
);
CREATE INDEX ix_notification_account ON notification (account_id, id);
