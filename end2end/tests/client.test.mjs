// The client for other front ends: its reducer by the table, itself against the real server through every fault.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import {
    YiciClient,
    applyEvent,
    idleIntent,
    memoryStorage,
    readRetryAfter,
    taskSubmitKey,
} from '../client/yici-client.mjs';
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';
import { FAULTS, FaultProxy } from '../lib/fault_proxy.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('client', { browser: false, settings: { YICI_DEMO_STUDENTS: '60', YICI_LEASE_SECONDS: '2' } });
const SUBMIT = /\/submissions$/;
const ASK = /\/requests\//;
/** Quicker than people, so that the tests are. */
const QUICK = { answerTimeoutMs: 400, backOffMs: [50, 100, 200] };

test('the reducer does what the table says, which the server tests itself by too', async () => {
    const table = JSON.parse(await readFile(new URL('../client/phases.json', import.meta.url), 'utf8'));
    for (const row of table) {
        const intent = { ...idleIntent({ taskId: 7, studentId: 12, submitVersion: 3, clientId: 'c' }), phase: row.phase };
        Object.assign(intent, { ordinal: 2, content: 'old' });
        const before = structuredClone(intent);
        const { intent: after, todo } = applyEvent(intent, { type: row.event, content: 'new', code: 'x' });
        const seen = { to: after.phase, todo, key: taskSubmitKey(after), content: after.content };
        assert.deepEqual(seen, { to: row.to, todo: row.todo, key: row.key, content: row.content }, `${row.phase} ${row.event}`);
        assert.deepEqual(intent, before, 'it changes nothing that it is given');
    }
});

test('Retry-After is read in both of its forms', () => {
    const now = Date.parse('2026-12-01T00:00:00Z');
    for (const [value, ms] of [
        [null, 0],
        ['3', 3_000],
        ['Tue, 01 Dec 2026 00:00:05 GMT', 5_000],
        ['Mon, 30 Nov 2026 00:00:00 GMT', 0],
        ['soon', 0],
    ]) {
        assert.equal(readRetryAfter(value, now), ms, value);
    }
});

/** A student with an open task, and a way to start the program of one installation, as often as wanted. */
async function arrange(stage, n, baseUrl) {
    const api = await stage.api(`student${n}`);
    const [task] = await api.openTasks();
    const storage = memoryStorage();
    const at = { api, task, text: `Handed in once, case${n}end.`, storage, open: [] };
    at.start = async (more = {}) => {
        const client = new YiciClient({ baseUrl, token: api.token, clientId: `app-${n}`, storage, ...QUICK, ...more });
        const submission = await client.open({ taskId: task.id, studentId: api.account.id, submitVersion: task.submit_version });
        const phases = [];
        submission.subscribe(({ phase }) => phases.at(-1) === phase || phases.push(phase));
        at.open.push(submission);
        return Object.assign(submission, { client, phases });
    };
    return at;
}

async function reaches(submission, phase) {
    await until(`it is ${phase} (${submission.phases})`, () => submission.state.phase === phase);
}

async function isOnce(stage, { api, task, text, open }, keys = 1) {
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(rows.map(row => row.content), [text], 'one row');
    assert.equal((await stage.database.keys(api.account.id)).length, keys);
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);
    for (const submission of open) submission.close();
}

/** What happens to the program while the result is not known; each gives the one that goes on. */
const MOVES = {
    'it waits': async submission => submission,
    'it is pressed again with another text': async submission => {
        await Promise.all([submission.press('Other words.'), submission.press('Other words.')]);
        return submission;
    },
    'it is killed and started again': async (submission, at) => {
        submission.close();
        return at.start();
    },
    'a second program shares its storage': async (submission, at) => {
        const other = await at.start();
        await other.press('Other words.');
        return other;
    },
    'it comes to the front': async submission => {
        await submission.wake();
        return submission;
    },
    'another installation hands in the same': async (submission, at) => {
        const other = await at.start({ clientId: 'tablet', storage: memoryStorage() });
        await other.press(at.text);
        await reaches(other, 'submitted');
        return submission;
    },
};

let n = 0;
for (const fault of Object.keys(FAULTS)) {
    scene(`${fault}: the client ends submitted, with one row, whatever happens to it`, async stage => {
        const proxy = await FaultProxy.start(stage.server.url);
        const play = async (move, n) => {
            const at = await arrange(stage, n, proxy.url);
            const submission = await at.start();
            const injected = proxy.inject(fault, { path: SUBMIT, holds: `case${n}end` });
            const key = encodeURIComponent(`task_submit:${at.task.id}:${at.api.account.id}:`);
            const asking = proxy.inject('swallow', { path: ASK, holds: key, times: Infinity });
            await submission.press(at.text);
            assert.ok(await at.storage.get(`yici:intent:${at.api.account.id}:${at.task.id}`), 'kept before it was sent');
            await injected.struck;
            await reaches(submission, 'unknown');
            const last = await MOVES[move](submission, at);
            assert.equal(last.state.content, at.text, 'what was sent is what is kept');
            asking.stop();
            await reaches(last, 'submitted');
            assert.equal(last.state.submission?.content ?? at.text, at.text);
            await injected.end();
            await asking.end();
            await isOnce(stage, at, move.startsWith('another installation') ? 2 : 1);
        };
        try {
            const cases = Object.keys(MOVES).map(move => [move, ++n]);
            const ends = await Promise.allSettled(cases.map(([move, n]) => play(move, n)));
            const failed = ends.flatMap((end, i) =>
                end.status === 'rejected' ? [`${cases[i][0]} (student${cases[i][1]}): ${end.reason.stack}`] : [],
            );
            assert.deepEqual(failed, []);
        } finally {
            await proxy.stop();
        }
    });
}

scene('a press after a refusal that nobody has seen changes nothing, one after it was seen is a new intent', async stage => {
    const at = await arrange(stage, 55, stage.server.url);
    await at.api.submit(at.task, { client: 'laptop', content: at.text });
    const submission = await at.start();
    await submission.press('Other words.');
    await reaches(submission, 'refused');
    assert.equal(submission.state.code, 'already-submitted');
    await submission.press('Third words.');
    assert.equal(submission.state.phase, 'refused');
    submission.seen();
    await submission.press(at.text);
    await reaches(submission, 'submitted');
    assert.match(submission.key, /:app-55:2$/);
    await isOnce(stage, at, 3);
});

scene('a server that is killed while it executes: the client repeats as soon as the lease has run out', async stage => {
    const at = await arrange(stage, 56, stage.server.url);
    stage.mayComplain = true;
    const submission = await at.start({ backOffMs: [50, 100, 60_000] });
    const release = await stage.database.holdSubmissions();
    try {
        await submission.press(at.text);
        await until('the server executes', () => stage.database.isSubmissionAwaited());
        await stage.server.kill();
    } finally {
        await release();
    }
    await stage.server.start();
    await submission.wake();
    await reaches(submission, 'submitted');
    await isOnce(stage, at);
});

scene('a client that was signed out rests, and goes on with the same key after the next sign-in', async stage => {
    const at = await arrange(stage, 57, stage.server.url);
    const submission = await at.start();
    const token = submission.client.token;
    submission.client.token = 'none';
    await submission.press(at.text);
    await until('it rests', () => submission.state.hurdle === 'signed-out');
    assert.equal(submission.state.phase, 'unknown');
    submission.client.token = token;
    await submission.wake();
    await reaches(submission, 'submitted');
    await isOnce(stage, at);
});

scene('an error page of something in between is no refusal', async stage => {
    const at = await arrange(stage, 58, stage.server.url);
    let spoilt = 0;
    const submission = await at.start({
        fetch: (url, options) => {
            if (options.method === 'POST' && spoilt++ === 0) return Promise.resolve(new Response('<h1>Blocked</h1>', { status: 403 }));
            return fetch(url, options);
        },
    });
    await submission.press(at.text);
    await reaches(submission, 'submitted');
    assert.ok(submission.phases.includes('unknown'), submission.phases.join());
    await isOnce(stage, at);
});
