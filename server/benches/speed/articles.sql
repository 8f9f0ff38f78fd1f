-- What the two articles keep: the key's record and the business row, each with its unique constraint, and points, once for each row.
CREATE TABLE article_idempotency_key (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    idem_key varchar(255) NOT NULL,
    biz_type varchar(64) NOT NULL,
    biz_id varchar(64) NOT NULL,
    status varchar(32) NOT NULL,
    result_json text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT uk_article_idem_key UNIQUE (idem_key)
);
CREATE TABLE article_submission (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id bigint NOT NULL,
    student_id bigint NOT NULL,
    submit_version integer NOT NULL,
    content text NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT uk_article_task_student_version UNIQUE (task_id, student_id, submit_version)
);
CREATE TABLE article_points (
    submission_id bigint NOT NULL,
    student_id bigint NOT NULL,
    amount integer NOT NULL,
    CONSTRAINT pk_article_points PRIMARY KEY (submission_id)
);
