// What must be true afterwards, whatever happened: rows against rows, and against what people and the provider were told.
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';

const UNFINISHED = `SELECT count(*)::int AS n FROM idempotency_record WHERE state NOT IN ('SUCCEEDED', 'FAILED_FINAL')`;

/** Each gives rows that must not be; the sentence says what they are. */
const NEVER = {
    'records that are not finished': `SELECT id, state, idem_key FROM idempotency_record WHERE state NOT IN ('SUCCEEDED', 'FAILED_FINAL')`,
    'arrivals that nobody decided': 'SELECT id FROM request_arrival WHERE outcome IS NULL',
    'records with more than one new arrival': `SELECT record_id FROM request_arrival WHERE outcome = 'new' GROUP BY 1
        HAVING count(*) > (SELECT attempt FROM idempotency_record r WHERE r.id = record_id)`,
    'submissions without their points, or with others': `SELECT s.id FROM submission s
        LEFT JOIN points_entry p ON p.source_kind = 'submission' AND p.source_id = s.id WHERE p.amount IS DISTINCT FROM ${POINTS_PER_SUBMISSION}`,
    'points of no submission': `SELECT p.id FROM points_entry p LEFT JOIN submission s ON s.id = p.source_id
        WHERE p.source_kind = 'submission' AND s.id IS NULL`,
    'balances that are not the sum of the ledger': `SELECT account_id FROM points_balance b WHERE balance <>
        (SELECT coalesce(sum(amount), 0) FROM points_entry p WHERE p.account_id = b.account_id)`,
    'ledgers without a balance': 'SELECT account_id FROM points_entry EXCEPT SELECT account_id FROM points_balance',
    'submissions without their message': `SELECT s.id FROM submission s LEFT JOIN outbox o ON o.record_id = s.record_id WHERE o.id IS NULL`,
    'effects whose record did not succeed': `SELECT s.id FROM submission s LEFT JOIN idempotency_record r ON r.id = s.record_id
        WHERE r.state IS DISTINCT FROM 'SUCCEEDED'`,
    'holds that are still open': `SELECT id FROM redemption_hold WHERE state = 'open'`,
    'spent holds without a redemption': `SELECT h.id FROM redemption_hold h LEFT JOIN redemption r USING (student_id, reward_id, sequence)
        WHERE h.state = 'spent' AND r.id IS NULL`,
    'counters that are not the arrivals': `SELECT outcome, n, c.total FROM
        (SELECT outcome, count(*) AS n FROM request_arrival GROUP BY 1) a
        FULL JOIN (SELECT name AS outcome, sum(n) AS total FROM outcome_counter
                   WHERE name IN (SELECT DISTINCT outcome FROM request_arrival) GROUP BY 1) c USING (outcome)
        WHERE n IS DISTINCT FROM c.total`,
};

export const isQuiet = async database => (await database.rows(UNFINISHED))[0].n === 0;

/** Every sentence that is not true; none when all is well. */
export async function audit(database, provider, notes) {
    const wrong = [...notes.violations];
    for (const [what, sql] of Object.entries(NEVER)) {
        const rows = await database.rows(sql);
        if (rows.length > 0) wrong.push(`${what}: ${JSON.stringify(rows.slice(0, 5))}${rows.length > 5 ? ` and ${rows.length - 5} more` : ''}`);
    }
    const submissions = new Map((await database.rows('SELECT id::text, content FROM submission')).map(row => [row.id, row.content]));
    const told = notes.successes.filter(({ action }) => action === 'task_submit');
    for (const { key, id, content } of told)
        if (submissions.get(id) !== content) wrong.push(`${key} was told that submission ${id} is there, with its content`);
    const ids = new Set(told.map(({ id }) => id));
    for (const id of submissions.keys()) if (!ids.has(id)) wrong.push(`submission ${id} is there, and nobody was told`);

    const bought = await database.rows('SELECT id::text, student_id::text FROM redemption');
    const toldBought = new Set(notes.successes.filter(({ action }) => action === 'points_redeem').map(({ id }) => id));
    const rows = new Set(bought.map(({ id }) => id));
    for (const id of toldBought) if (!rows.has(id)) wrong.push(`redemption ${id} was told and is not there`);
    for (const id of rows) if (!toldBought.has(id)) wrong.push(`redemption ${id} is there, and nobody was told`);
    const gifts = (await provider.log()).filter(({ given }) => given);
    const keys = new Set(gifts.map(({ key }) => key));
    if (keys.size !== gifts.length) wrong.push(`the provider gave ${gifts.length} times for ${keys.size} keys`);
    if (gifts.length !== bought.length) wrong.push(`the provider gave ${gifts.length} rewards, and ${bought.length} are bought`);
    return { wrong, submissions: submissions.size, redemptions: bought.length };
}
