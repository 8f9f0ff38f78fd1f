-- Students who hand in, each with the same assignments, and somebody of the ops.
INSERT INTO account (name, role, password_hash, is_demo)
SELECT 'crowd' || n, 'student', 'none', true FROM generate_series(1, 2000) n
UNION ALL SELECT 'crowd-ops', 'ops', 'none', true;
INSERT INTO class (name) VALUES ('Crowd');
INSERT INTO class_member (class_id, account_id)
SELECT c.id, a.id FROM class c, account a WHERE c.name = 'Crowd' AND a.role = 'student' AND a.name LIKE 'crowd%';
INSERT INTO task (class_id, title, instructions, kind)
SELECT c.id, 'Crowd ' || n, '-', 'assignment' FROM class c, generate_series(1, 1000) n WHERE c.name = 'Crowd';
ANALYZE account, class_member, task;
