-- Teachers create tasks and reopen them; one view says how each task of each student stands.

-- Two clicks are one task: by the key of the request, and, for a page that was loaded anew, by what the task says.
ALTER TABLE task
    ADD COLUMN created_by bigint,
    ADD COLUMN creation_key text,
    ADD COLUMN fingerprint bytea,
    ADD CONSTRAINT fk_task_created_by FOREIGN KEY (created_by) REFERENCES account (id),
    ADD CONSTRAINT uk_task_creation_key UNIQUE (created_by, creation_key),
    ADD CONSTRAINT uk_task_class_fingerprint UNIQUE (class_id, fingerprint),
    ADD CONSTRAINT ck_task_creation CHECK (num_nulls(created_by, creation_key, fingerprint) IN (0, 3)),
    ADD CONSTRAINT ck_task_fingerprint CHECK (octet_length(fingerprint) = 32);

-- As before, and: a reopening after the closing lifts it for that student; attempts and points are what the ledgers hold.
CREATE OR REPLACE VIEW student_task AS
SELECT m.account_id AS student_id,
       t.id AS task_id,
       t.class_id,
       t.title,
       t.instructions,
       t.kind,
       t.due_at,
       CASE WHEN reopened.at >= t.closes_at THEN NULL ELSE t.closes_at END AS closes_at,
       -- The version to hand in: an assignment's stays until it is reopened, a practice task's counts its attempts.
       CASE t.kind WHEN 'practice' THEN coalesce(latest.submit_version, 0) + 1
                   ELSE coalesce(reopened.submit_version, 1) END AS submit_version,
       CASE WHEN latest.id IS NULL THEN 'pending'
            WHEN t.kind = 'practice' OR latest.submit_version >= coalesce(reopened.submit_version, 1) THEN 'submitted'
            ELSE 'pending' END AS status,
       latest.id AS submission_id,
       latest.submit_version AS submission_version,
       latest.content AS submission_content,
       latest.created_at AS submitted_at,
       -- Subqueries of the list, so that a reader who does not ask for them does not pay for them.
       (SELECT count(*) FROM submission s WHERE s.task_id = t.id AND s.student_id = m.account_id) AS attempts,
       (SELECT coalesce(sum(e.amount), 0)
        FROM submission s JOIN points_entry e ON e.source_kind = 'submission' AND e.source_id = s.id
        WHERE s.task_id = t.id AND s.student_id = m.account_id) AS points
FROM class_member m
JOIN task t ON t.class_id = m.class_id
LEFT JOIN LATERAL (
    SELECT s.id, s.submit_version, s.content, s.created_at FROM submission s
    WHERE s.task_id = t.id AND s.student_id = m.account_id
    ORDER BY s.submit_version DESC LIMIT 1
) latest ON true
LEFT JOIN LATERAL (
    SELECT max(o.submit_version) AS submit_version, max(o.created_at) AS at FROM task_reopening o
    WHERE o.task_id = t.id AND o.student_id = m.account_id
) reopened ON true;
