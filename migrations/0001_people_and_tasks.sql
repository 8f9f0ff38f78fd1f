-- Accounts, classes, tasks and what students hand in.

CREATE TABLE class (
    id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_class PRIMARY KEY (id),
    CONSTRAINT uk_class_name UNIQUE (name)
);

CREATE TABLE account (
    id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    role text NOT NULL,
    password_hash text NOT NULL,
    is_demo boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_account PRIMARY KEY (id),
    CONSTRAINT uk_account_name UNIQUE (name),
    CONSTRAINT ck_account_role CHECK (role IN ('student', 'teacher', 'parent', 'ops', 'admin'))
);

-- Students learn in a class, teachers teach it.
CREATE TABLE class_member (
    class_id bigint NOT NULL,
    account_id bigint NOT NULL,
    CONSTRAINT pk_class_member PRIMARY KEY (class_id, account_id),
    CONSTRAINT fk_class_member_class FOREIGN KEY (class_id) REFERENCES class (id),
    CONSTRAINT fk_class_member_account FOREIGN KEY (account_id) REFERENCES account (id)
);
CREATE INDEX ix_class_member_account ON class_member (account_id);

CREATE TABLE parent_child (
    parent_id bigint NOT NULL,
    child_id bigint NOT NULL,
    CONSTRAINT pk_parent_child PRIMARY KEY (parent_id, child_id),
    CONSTRAINT fk_parent_child_parent FOREIGN KEY (parent_id) REFERENCES account (id),
    CONSTRAINT fk_parent_child_child FOREIGN KEY (child_id) REFERENCES account (id)
);

-- Sessions of browsers and tokens of machine clients alike. Only the SHA-256 is kept: 256 random bits need no slow hash.
CREATE TABLE access_token (
    token_hash bytea NOT NULL,
    account_id bigint NOT NULL,
    kind text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    CONSTRAINT pk_access_token PRIMARY KEY (token_hash),
    CONSTRAINT fk_access_token_account FOREIGN KEY (account_id) REFERENCES account (id),
    CONSTRAINT ck_access_token_kind CHECK (kind IN ('session', 'machine')),
    CONSTRAINT ck_access_token_hash CHECK (octet_length(token_hash) = 32)
);
CREATE INDEX ix_access_token_account ON access_token (account_id);

CREATE TABLE task (
    id bigint GENERATED ALWAYS AS IDENTITY,
    class_id bigint NOT NULL,
    title text NOT NULL,
    instructions text NOT NULL,
    kind text NOT NULL,
    due_at timestamptz,
    closes_at timestamptz,
    is_demo boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_task PRIMARY KEY (id),
    CONSTRAINT fk_task_class FOREIGN KEY (class_id) REFERENCES class (id),
    CONSTRAINT ck_task_kind CHECK (kind IN ('assignment', 'practice'))
);
CREATE INDEX ix_task_class ON task (class_id);

-- Each row opens one more version of an assignment for one student; without a row the version is 1.
CREATE TABLE task_reopening (
    id bigint GENERATED ALWAYS AS IDENTITY,
    task_id bigint NOT NULL,
    student_id bigint NOT NULL,
    submit_version integer NOT NULL,
    reopened_by bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_task_reopening PRIMARY KEY (id),
    CONSTRAINT uk_task_reopening_version UNIQUE (task_id, student_id, submit_version),
    CONSTRAINT fk_task_reopening_task FOREIGN KEY (task_id) REFERENCES task (id),
    CONSTRAINT fk_task_reopening_student FOREIGN KEY (student_id) REFERENCES account (id),
    CONSTRAINT fk_task_reopening_by FOREIGN KEY (reopened_by) REFERENCES account (id),
    CONSTRAINT ck_task_reopening_version CHECK (submit_version >= 2)
);

-- The business row. record_id and epoch say which claim wrote it; they are empty for other writers.
CREATE TABLE submission (
    id bigint GENERATED ALWAYS AS IDENTITY,
    task_id bigint NOT NULL,
    student_id bigint NOT NULL,
    submit_version integer NOT NULL,
    content text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    record_id bigint,
    epoch bigint,
    CONSTRAINT pk_submission PRIMARY KEY (id),
    CONSTRAINT uk_task_student_version UNIQUE (task_id, student_id, submit_version),
    CONSTRAINT fk_submission_task FOREIGN KEY (task_id) REFERENCES task (id),
    CONSTRAINT fk_submission_student FOREIGN KEY (student_id) REFERENCES account (id),
    CONSTRAINT ck_submission_version CHECK (submit_version >= 1)
);
CREATE INDEX ix_submission_student ON submission (student_id);

-- The ledger: unique per source, so that a repair can add what is missing and never double it.
CREATE TABLE points_entry (
    id bigint GENERATED ALWAYS AS IDENTITY,
    account_id bigint NOT NULL,
    amount integer NOT NULL,
    source_kind text NOT NULL,
    source_id bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_points_entry PRIMARY KEY (id),
    CONSTRAINT uk_points_entry_source UNIQUE (source_kind, source_id),
    CONSTRAINT fk_points_entry_account FOREIGN KEY (account_id) REFERENCES account (id),
    CONSTRAINT ck_points_entry_source CHECK (source_kind IN ('submission'))
);
CREATE INDEX ix_points_entry_account ON points_entry (account_id);

-- The ledger's sum, kept beside it so that points can be spent under a guard.
CREATE TABLE points_balance (
    account_id bigint NOT NULL,
    balance bigint NOT NULL,
    CONSTRAINT pk_points_balance PRIMARY KEY (account_id),
    CONSTRAINT fk_points_balance_account FOREIGN KEY (account_id) REFERENCES account (id),
    CONSTRAINT ck_points_balance_not_negative CHECK (balance >= 0)
);

-- How each task of each student stands: the one definition that pages, reports and the rules of a submission share.
CREATE VIEW student_task AS
SELECT m.account_id AS student_id,
       t.id AS task_id,
       t.class_id,
       t.title,
       t.instructions,
       t.kind,
       t.due_at,
       t.closes_at,
       -- The version to hand in: an assignment's stays until it is reopened, a practice task's counts its attempts.
       CASE t.kind WHEN 'practice' THEN coalesce(latest.submit_version, 0) + 1
                   ELSE coalesce(reopened.submit_version, 1) END AS submit_version,
       CASE WHEN latest.id IS NULL THEN 'pending'
            WHEN t.kind = 'practice' OR latest.submit_version >= coalesce(reopened.submit_version, 1) THEN 'submitted'
            ELSE 'pending' END AS status,
       latest.id AS submission_id,
       latest.submit_version AS submission_version,
       latest.content AS submission_content,
       latest.created_at AS submitted_at
FROM class_member m
JOIN task t ON t.class_id = m.class_id
LEFT JOIN LATERAL (
    SELECT s.id, s.submit_version, s.content, s.created_at FROM submission s
    WHERE s.task_id = t.id AND s.student_id = m.account_id
    ORDER BY s.submit_version DESC LIMIT 1
) latest ON true
LEFT JOIN LATERAL (
    SELECT max(o.submit_version) AS submit_version FROM task_reopening o
    WHERE o.task_id = t.id AND o.student_id = m.account_id
) reopened ON true;
