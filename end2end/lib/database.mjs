// A database of its own for each test file, and the rows that count.
import pg from 'pg';
import { environment } from './environment.mjs';

export class Database {
    #name;
    #pool;

    constructor(name, url) {
        this.#name = name;
        this.url = url;
        this.#pool = new pg.Pool({ connectionString: url, max: 4 });
        // A cluster that goes away under an idle connection is told by the next query.
        this.#pool.on('error', () => {});
    }

    static async create(label) {
        const name = `e2e_${label}_${process.pid}`;
        await administer(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`);
        await administer(`CREATE DATABASE "${name}"`);
        const url = new URL(environment.databaseUrl);
        url.pathname = `/${name}`;
        return new Database(name, url.href);
    }

    async drop() {
        await this.#pool.end();
        await administer(`DROP DATABASE IF EXISTS "${this.#name}" WITH (FORCE)`);
    }

    async rows(text, values) {
        return (await this.#pool.query(text, values)).rows;
    }

    /** The submissions of a student, for one task or for all of them. */
    submissions(studentId, taskId) {
        return this.rows(
            `SELECT id::text, task_id::text, submit_version, content FROM submission
             WHERE student_id = $1 AND ($2::bigint IS NULL OR task_id = $2) ORDER BY id`,
            [studentId, taskId ?? null],
        );
    }

    /** The keys that a student has used. */
    async keys(studentId) {
        const rows = await this.rows('SELECT idem_key FROM idempotency_record WHERE subject_id = $1 ORDER BY id', [
            studentId,
        ]);
        return rows.map(row => row.idem_key);
    }

    /** Gives somebody points, with their line in the ledger. */
    grantPoints(accountId, points) {
        return this.rows(
            `WITH earned AS (
                 INSERT INTO points_entry (account_id, amount, source_kind, source_id) VALUES ($1, $2, 'submission', -$1::bigint)
                 RETURNING account_id, amount
             )
             INSERT INTO points_balance (account_id, balance) SELECT account_id, amount FROM earned`,
            [accountId, points],
        );
    }

    /** Keeps everybody from writing submissions until the function that it gives is called. */
    async holdSubmissions() {
        const client = await this.#pool.connect();
        await client.query('BEGIN');
        await client.query('LOCK TABLE submission IN SHARE MODE');
        return async () => {
            await client.query('ROLLBACK');
            client.release();
        };
    }

    /** Whether somebody waits for a lock on submissions. */
    async isSubmissionAwaited() {
        const rows = await this.rows(
            `SELECT FROM pg_locks WHERE NOT granted AND relation = 'submission'::regclass
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        );
        return rows.length > 0;
    }
}

async function administer(statement) {
    const client = new pg.Client({ connectionString: environment.databaseUrl });
    await client.connect();
    try {
        await client.query(statement);
    } finally {
        await client.end();
    }
}
