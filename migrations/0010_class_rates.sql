-- How far a class is with each of its tasks: the students whose line in student_task is 'submitted', counted task by task and not line
-- by line, since a class may have a hundred thousand of them. A test holds it to student_task.
CREATE VIEW class_task_rate AS
SELECT t.class_id,
       t.id AS task_id,
       (SELECT count(*)
        FROM (SELECT s.student_id, max(s.submit_version) AS submit_version FROM submission s
              WHERE s.task_id = t.id GROUP BY s.student_id) latest
        JOIN class_member m ON m.class_id = t.class_id AND m.account_id = latest.student_id
        JOIN account a ON a.id = m.account_id AND a.role = 'student'
        LEFT JOIN (SELECT o.student_id, max(o.submit_version) AS submit_version FROM task_reopening o
                   WHERE o.task_id = t.id GROUP BY o.student_id) reopened ON reopened.student_id = latest.student_id
        WHERE t.kind = 'practice' OR latest.submit_version >= coalesce(reopened.submit_version, 1)) AS submitted
FROM task t;
