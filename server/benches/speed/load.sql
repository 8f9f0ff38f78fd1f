-- Records of the last day (a million, or what bench.records says), one in 2,000 of them stuck, with their arrivals, submissions and
-- counters, in sets.
INSERT INTO account (name, role, password_hash, is_demo)
SELECT 'bench' || n, 'student', 'none', true FROM generate_series(1, 100000) n;
INSERT INTO class (name) VALUES ('Bench');
INSERT INTO class_member (class_id, account_id)
SELECT c.id, a.id FROM class c, account a WHERE c.name = 'Bench' AND a.name LIKE 'bench%';
INSERT INTO task (class_id, title, instructions, kind)
SELECT c.id, 'Bench ' || n, '-', 'practice'
FROM class c, generate_series(0, (current_setting('bench.records')::integer - 1) / 100000) n WHERE c.name = 'Bench';
INSERT INTO instance (name) VALUES ('bench');

INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, attempt, epoch, version, error_code, fingerprint,
    request, trace_id, claim_token, owner_instance, claimed_at, lease_until, response_status, response_body,
    response_location, created_at, updated_at, expires_at, scan_after)
SELECT s.student, 'task_submit', format('task_submit:%s:%s:1:web-%s', s.task, s.student, n),
       s.state, 1, 1, CASE WHEN s.state = 'PROCESSING' THEN 1 ELSE 2 END,
       CASE WHEN s.state = 'FAILED_FINAL' THEN 'already-submitted' END,
       sha256(n::text::bytea), jsonb_build_object('task_id', s.task::text, 'submit_version', 1, 'content', 'work'),
       lpad(to_hex(n), 32, '0'), gen_random_uuid(), i.id, s.at,
       CASE WHEN s.state = 'PROCESSING' THEN s.at + interval '30 seconds' END,
       CASE s.state WHEN 'SUCCEEDED' THEN 201 WHEN 'FAILED_FINAL' THEN 409 END,
       CASE WHEN s.state IN ('SUCCEEDED', 'FAILED_FINAL') THEN '{"id":"' || n || '","content":"work"}' END,
       NULL, s.at, s.at + interval '20 ms',
       CASE WHEN s.state IN ('SUCCEEDED', 'FAILED_FINAL') THEN s.at + interval '30 hours' END,
       -- Stuck they shall stay while they are looked at.
       now() + interval '1 day'
FROM generate_series(0, current_setting('bench.records')::integer - 1) n
CROSS JOIN (SELECT min(id) AS id FROM instance WHERE name = 'bench') i
CROSS JOIN (SELECT min(id) AS first FROM account WHERE name LIKE 'bench%') a
CROSS JOIN (SELECT min(id) AS first FROM task WHERE title LIKE 'Bench %') t
CROSS JOIN LATERAL (
    SELECT a.first + n % 100000 AS student, t.first + n / 100000 AS task,
           now() - interval '24 hours' + n * (interval '86000 seconds' / current_setting('bench.records')::integer) AS at,
           CASE WHEN n % 2000 = 7 THEN 'PROCESSING' WHEN n % 100 = 3 THEN 'FAILED_FINAL' ELSE 'SUCCEEDED' END AS state
) s;

INSERT INTO submission (task_id, student_id, submit_version, content, created_at, record_id, epoch)
SELECT (request ->> 'task_id')::bigint, subject_id, 1, 'work', updated_at, id, epoch FROM idempotency_record
WHERE state = 'SUCCEEDED' ORDER BY id;

INSERT INTO request_arrival (id, record_id, action_type, arrived_at, outcome, defence, client_id, trace_id, same_content,
    duration_ms)
SELECT (lpad(to_hex((extract(epoch FROM v.at) * 1000)::bigint), 12, '0') || '7000' || '8000' || lpad(to_hex(v.n), 12, '0'))::uuid,
       r.id, r.action_type, v.at, v.outcome, v.defence, 'bench', r.trace_id, v.outcome IS DISTINCT FROM 'mismatch',
       CASE WHEN v.outcome IS NOT NULL THEN 2 + v.n % 50 END
FROM idempotency_record r
CROSS JOIN LATERAL (
    SELECT r.id * 2 AS n, r.created_at AS at,
           CASE r.state WHEN 'SUCCEEDED' THEN 'new' WHEN 'FAILED_FINAL' THEN 'constraint_conflict' END AS outcome,
           CASE r.state WHEN 'SUCCEEDED' THEN 'none' WHEN 'FAILED_FINAL' THEN 'constraint' END AS defence
    UNION ALL
    SELECT r.id * 2 + 1, r.created_at + interval '1 second', 'reused', 'record' WHERE r.id % 8 = 0 AND r.state = 'SUCCEEDED'
    UNION ALL
    SELECT r.id * 2 + 1, r.created_at + interval '1 second', 'mismatch', 'record' WHERE r.id % 100000 = 1
) v
ORDER BY v.at;

INSERT INTO outcome_counter (minute, action_type, name, instance_id, n)
SELECT date_trunc('minute', a.arrived_at), a.action_type, a.outcome, i.id, count(*)
FROM request_arrival a CROSS JOIN (SELECT min(id) AS id FROM instance WHERE name = 'bench') i
WHERE a.outcome IS NOT NULL GROUP BY 1, 2, 3, 4;
INSERT INTO outcome_counter (minute, action_type, name, instance_id, n)
SELECT date_trunc('minute', r.updated_at), r.action_type, 'failed_final', r.owner_instance, count(*)
FROM idempotency_record r WHERE r.state = 'FAILED_FINAL' GROUP BY 1, 2, 4;
