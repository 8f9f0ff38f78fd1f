-- Rewards that an external provider gives for points: an effect outside this database.

CREATE TABLE reward (
    id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    price integer NOT NULL,
    is_demo boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_reward PRIMARY KEY (id),
    CONSTRAINT ck_reward_price CHECK (price > 0)
);

-- The business row: the provider gave it. record_id says which record bought it; empty for other writers.
CREATE TABLE redemption (
    id bigint GENERATED ALWAYS AS IDENTITY,
    student_id bigint NOT NULL,
    reward_id bigint NOT NULL,
    sequence integer NOT NULL,
    points integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    record_id bigint,
    epoch bigint,
    CONSTRAINT pk_redemption PRIMARY KEY (id),
    CONSTRAINT uk_student_reward_sequence UNIQUE (student_id, reward_id, sequence),
    CONSTRAINT fk_redemption_student FOREIGN KEY (student_id) REFERENCES account (id),
    CONSTRAINT fk_redemption_reward FOREIGN KEY (reward_id) REFERENCES reward (id),
    CONSTRAINT ck_redemption_sequence CHECK (sequence >= 1)
);

-- Points taken while it is not decided whether the provider gives the reward. Given back at most once, by its own state.
CREATE TABLE redemption_hold (
    id bigint GENERATED ALWAYS AS IDENTITY,
    record_id bigint NOT NULL,
    epoch bigint NOT NULL,
    student_id bigint NOT NULL,
    reward_id bigint NOT NULL,
    sequence integer NOT NULL,
    points integer NOT NULL,
    state text NOT NULL DEFAULT 'open',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    CONSTRAINT pk_redemption_hold PRIMARY KEY (id),
    CONSTRAINT fk_redemption_hold_student FOREIGN KEY (student_id) REFERENCES account (id),
    CONSTRAINT fk_redemption_hold_reward FOREIGN KEY (reward_id) REFERENCES reward (id),
    CONSTRAINT ck_redemption_hold_state CHECK (state IN ('open', 'spent', 'returned')),
    CONSTRAINT ck_redemption_hold_ended CHECK ((state = 'open') = (ended_at IS NULL))
);
-- Two keys of one intent cannot both call.
CREATE UNIQUE INDEX uk_redemption_hold_open ON redemption_hold (student_id, reward_id, sequence) WHERE state = 'open';
CREATE INDEX ix_redemption_hold_record ON redemption_hold (record_id);

-- Each call of the provider, written before it is sent; the answer is kept whoever waits for it.
CREATE TABLE redemption_call (
    record_id bigint NOT NULL,
    epoch bigint NOT NULL,
    called_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    timeout_ms bigint NOT NULL,
    -- done, refused, unclear; not_sent when it was too late to send it; empty while nobody knows.
    answer text,
    detail text,
    answered_at timestamptz,
    -- Proven, or said by two people, that this call had no effect.
    is_void boolean NOT NULL DEFAULT false,
    -- Until when somebody asks the provider about it; nobody else does meanwhile.
    asking_until timestamptz,
    CONSTRAINT pk_redemption_call PRIMARY KEY (record_id, epoch),
    CONSTRAINT ck_redemption_call_answer CHECK (answer IN ('done', 'refused', 'unclear', 'not_sent'))
);

-- What the provider's status endpoint said. Times of one asker are by its own monotonic clock, so only those can be compared.
CREATE TABLE redemption_probe (
    id bigint GENERATED ALWAYS AS IDENTITY,
    record_id bigint NOT NULL,
    epoch bigint NOT NULL,
    instance_id integer NOT NULL,
    asked_ms bigint NOT NULL,
    answered_ms bigint NOT NULL,
    asked_at timestamptz NOT NULL,
    finding text NOT NULL,
    CONSTRAINT pk_redemption_probe PRIMARY KEY (id),
    CONSTRAINT ck_redemption_probe_finding CHECK (finding IN ('happened', 'not_found', 'unclear'))
);
CREATE INDEX ix_redemption_probe_record ON redemption_probe (record_id, epoch);

ALTER TABLE points_entry DROP CONSTRAINT ck_points_entry_source,
    ADD CONSTRAINT ck_points_entry_source
        CHECK (source_kind IN ('submission', 'redemption_hold', 'redemption_return', 'redemption_debt'));
-- A reward that turns out to have been given after its points came back is a debt; the ledger tells the truth.
ALTER TABLE points_balance DROP CONSTRAINT ck_points_balance_not_negative;
