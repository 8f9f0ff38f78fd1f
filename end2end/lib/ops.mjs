// What ops have in front of them: an hour of traffic, records that are stuck, compensations that wait.
import { randomUUID } from 'node:crypto';
import { until } from './until.mjs';

/** The line of one number on the panel. */
export const shown = async (page, counter, which = 'window') => {
    const text = await page.locator(`[data-counter=${counter}] [data-value=${which}]`).textContent();
    return Number(text.replace(/[^0-9]/g, ''));
};

/** Waits until the panel's stream runs. */
export async function isLive(page) {
    await page.locator('.dot-live').waitFor();
}

/**
 * A record that nobody executes any more: claimed some minutes ago, its lease over. `key` and `client` may be as odd as keys and
 * clients can be.
 */
export async function leaveStuck(database, student, key, { client = 'web', minutes = 10 } = {}) {
    const [row] = await database.rows(
        `INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, fingerprint, request, trace_id, claim_token,
                                         owner_instance, claimed_at, created_at, lease_until, scan_after)
         SELECT a.id, 'task_submit', $2, 'PROCESSING', sha256(convert_to($2, 'UTF8')),
                jsonb_build_object('task_id', t.id::text, 'submit_version', 1, 'content', '<b>odd</b>'),
                md5($2), gen_random_uuid(), 1, at, at, at + interval '30 seconds', now() + interval '1 day'
         FROM account a, (SELECT min(id) AS id FROM task) t, (SELECT now() - make_interval(mins => $3) AS at) moment
         WHERE a.name = $1 RETURNING id::text`,
        [student, key, minutes],
    );
    await database.rows(
        `INSERT INTO request_arrival (id, record_id, action_type, arrived_at, client_id, trace_id, same_content)
         SELECT gen_random_uuid(), id, action_type, claimed_at, $2, trace_id, true FROM idempotency_record WHERE id = $1`,
        [row.id, client],
    );
    return row.id;
}

/**
 * An hour of traffic, written as the engine would have: records, their arrivals, and the counters summed from just these. The same
 * each time.
 */
export async function writeHistory(database, records = 1_400) {
    await database.rows(
        `INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, error_code, fingerprint, request, trace_id,
                                         claim_token, owner_instance, claimed_at, created_at, updated_at, version,
                                         response_status, response_body, response_location, expires_at)
         SELECT s.id, 'task_submit', format('task_submit:%s:%s:1:web-%s', 40 + n % 7, s.id, left(md5(n::text), 12)),
                CASE WHEN n % 41 = 0 THEN 'FAILED_FINAL' ELSE 'SUCCEEDED' END, CASE WHEN n % 41 = 0 THEN 'already-submitted' END,
                sha256(convert_to(n::text, 'UTF8')), '{}', md5(n::text), gen_random_uuid(), 1, at, at,
                at + interval '40 milliseconds', 2, CASE WHEN n % 41 = 0 THEN 409 ELSE 201 END, '{}', NULL, now() + interval '1 day'
         FROM generate_series(1, $1) n
         JOIN account s ON s.name = 'student' || 1 + n % 30
         -- A third comes at any time, the others around the end of a lesson.
         CROSS JOIN LATERAL (
             SELECT ('x' || substr(h, 1, 4))::bit(16)::int / 65536.0 AS a, ('x' || substr(h, 5, 4))::bit(16)::int / 65536.0 AS b,
                    ('x' || substr(h, 9, 4))::bit(16)::int / 65536.0 AS c
             FROM (SELECT md5('chance ' || n) AS h) hash
         ) chance
         CROSS JOIN LATERAL (
             SELECT now() - interval '1 minute' * CASE WHEN n % 3 = 0 THEN 1 + 49 * a ELSE 22 + 14 * (a + b + c - 1.5) END AS at
         ) moment`,
        [records],
    );
    await database.rows(
        `INSERT INTO request_arrival (id, record_id, action_type, arrived_at, outcome, defence, client_id, trace_id, same_content,
                                      duration_ms)
         SELECT gen_random_uuid(), r.id, r.action_type, r.created_at + make_interval(secs => 2.5 * k), o.outcome, o.defence,
                split_part(r.idem_key, ':', 5), CASE WHEN k = 0 THEN r.trace_id ELSE md5(r.id || '-' || k) END,
                o.outcome <> 'mismatch', CASE WHEN k = 0 THEN 18 + r.id % 60 ELSE 0.4 + r.id % 9 END
         FROM idempotency_record r CROSS JOIN generate_series(0, 2) k
         CROSS JOIN LATERAL (
             SELECT CASE WHEN k = 0 AND r.state = 'FAILED_FINAL' THEN 'constraint_conflict' WHEN k = 0 THEN 'new'
                         WHEN r.id % 97 = 0 THEN 'mismatch' WHEN r.id % 53 = 0 THEN 'processing' ELSE 'reused' END AS outcome,
                    CASE WHEN k = 0 AND r.state = 'FAILED_FINAL' THEN 'constraint' WHEN k = 0 THEN 'none'
                         WHEN r.id % 53 = 0 THEN 'in_flight' WHEN r.id % 3 = 0 THEN 'record' ELSE 'cache' END AS defence
         ) o
         WHERE r.request = '{}' AND (k = 0 OR k = 1 AND r.id % 4 = 0 OR k = 2 AND r.id % 12 = 0)
           AND r.created_at + make_interval(secs => 2.5 * k) < now()`,
    );
    await database.rows(
        `INSERT INTO outcome_counter (minute, action_type, name, instance_id, n)
         SELECT date_trunc('minute', at), action_type, name, 1, count(*)
         FROM (
             SELECT v.arrived_at AS at, v.action_type, v.outcome AS name
             FROM request_arrival v JOIN idempotency_record r ON r.id = v.record_id WHERE r.request = '{}'
             UNION ALL
             SELECT updated_at, action_type, 'failed_final' FROM idempotency_record WHERE request = '{}' AND state = 'FAILED_FINAL'
         ) events GROUP BY 1, 2, 3
         ON CONFLICT ON CONSTRAINT pk_outcome_counter DO UPDATE SET n = outcome_counter.n + EXCLUDED.n`,
    );
}

/** Does something about a record, as an admin's program does. */
export async function compensate(server, admin, record, action, reason, version = 1) {
    const answer = await fetch(`${server.url}/api/v1/records/${record}/compensations`, {
        method: 'POST',
        headers: {
            authorization: `Bearer ${admin.token}`,
            'content-type': 'application/json',
            'idempotency-key': randomUUID(),
        },
        body: JSON.stringify({ action, reason, expected_version: version }),
    });
    return { status: answer.status, body: await answer.json() };
}

/**
 * A record with much to tell: its server was killed within the work, while duplicates waited and another request used its key. It is
 * some minutes old, and nobody looks after it before tomorrow. Gives its id.
 */
export async function leaveRichRecord(stage, student) {
    const release = await stage.database.holdSubmissions();
    const [task] = await student.openTasks();
    const cut = student.submit(task, { client: 'web-7f31c2', content: '2x + 1 = 7, x = 3' }).catch(() => {});
    const key = student.keyFor(task, 'web-7f31c2');
    let id;
    try {
        await until('the server executes', () => stage.database.isSubmissionAwaited());
        const again = { key, client: 'phone-<b>a</b>-٣', content: '2x + 1 = 7, x = 3' };
        for (let i = 0; i < 2; i++) await student.submit(task, again);
        await student.submit(task, { ...again, content: 'x = 4' });
        // What only repeats is written behind the answers.
        id = await until('the duplicates are written', async () => {
            const rows = await stage.database.rows(
                `SELECT r.id::text FROM request_arrival v JOIN idempotency_record r ON r.id = v.record_id
                 WHERE r.idem_key = $1 GROUP BY r.id HAVING count(*) = 4`,
                [key],
            );
            return rows[0]?.id;
        });
        await stage.server.kill();
        await stage.database.rows(
            `UPDATE idempotency_record SET claimed_at = claimed_at - interval '9 minutes', created_at = created_at - interval '9 minutes',
                    lease_until = claimed_at - interval '8 minutes', scan_after = now() + interval '1 day'
             WHERE id = $1`,
            [id],
        );
        await stage.database.rows(
            `UPDATE request_arrival v SET arrived_at = v.arrived_at - CASE n WHEN 1 THEN interval '9 minutes' WHEN 4 THEN interval '5 minutes'
                    ELSE interval '535 seconds' END
             FROM (SELECT id, row_number() OVER (ORDER BY arrived_at) AS n FROM request_arrival WHERE record_id = $1) o WHERE o.id = v.id`,
            [id],
        );
    } finally {
        await release();
        await cut;
    }
    await stage.server.start();
    return id;
}
