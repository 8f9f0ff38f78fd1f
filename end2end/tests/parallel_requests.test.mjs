// Twenty programs with one intent, at one server and at two.
import assert from 'node:assert/strict';
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('parallel_requests', { servers: 2, browser: false });
const MANY = 20;

/** Sends the same request many times at once, in turn to each address, and looks at everything that must hold. */
async function sendAtOnce(stage, name, urls) {
    const api = await stage.api(name);
    const operator = await stage.api('ops1');
    const [task] = await api.openTasks();
    const key = api.keyFor(task, 'e2e');
    const before = await operator.arrivals();
    const answers = await Promise.all(
        Array.from({ length: MANY }, async (_, i) => {
            const response = await api.at(urls[i % urls.length]).submit(task, { key });
            const { status, headers } = response;
            return { status, bucket: headers.get('idempotency-status'), location: headers.get('location'), body: await response.text() };
        }),
    );

    const statuses = answers.map(answer => answer.status);
    assert.deepEqual(statuses.filter(status => ![200, 201, 202].includes(status)), []);
    assert.equal(answers.filter(answer => answer.bucket === 'new').length, 1, 'one executed');
    for (const { status, bucket } of answers) {
        assert.ok({ 201: ['new', 'reused'], 202: ['processing'] }[status]?.includes(bucket), `${status} ${bucket}`);
    }
    const done = answers.filter(answer => answer.status === 201);
    assert.equal(new Set(done.map(answer => answer.body)).size, 1, 'the same bytes for everybody');
    assert.equal(new Set(done.map(answer => answer.location)).size, 1);

    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.equal(rows.length, 1);
    assert.equal(JSON.parse(done[0].body).id, rows[0].id);
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);

    // Duplicates are recorded behind the answers, at most a second late.
    await until('every arrival is counted', async () => (await operator.arrivals()) >= before + MANY);
    assert.equal(await operator.arrivals(), before + MANY);
    for (const url of urls) {
        const request = await api.at(url).request(key);
        assert.equal(request.arrivals, MANY);
        assert.equal(request.state, 'SUCCEEDED');
        assert.deepEqual(await operator.at(url).panel().then(panel => panel.totals), (await operator.panel()).totals);
    }
    const recorded = await stage.database.rows(
        `SELECT outcome, count(*)::int AS n FROM request_arrival a JOIN idempotency_record r ON r.id = a.record_id
         WHERE r.subject_id = $1 GROUP BY outcome`,
        [api.account.id],
    );
    for (const { outcome, n } of recorded) {
        const answered = answers.filter(answer => answer.bucket === outcome).length;
        assert.equal(n, answered, `arrivals recorded as ${outcome}`);
    }
}

scene('20 identical requests at once are one submission, no failure, and 20 counted arrivals', async stage => {
    await sendAtOnce(stage, 'student1', [stage.server.url]);
});

scene('the same over two server processes on one database', async stage => {
    await sendAtOnce(stage, 'student2', stage.servers.map(server => server.url));
});

scene('20 devices with a key of their own and the same words get the one submission', async stage => {
    const api = await stage.api('student3');
    const operator = await stage.api('ops1');
    const [task] = await api.openTasks();
    const before = await operator.arrivals();
    const answers = await Promise.all(
        Array.from({ length: MANY }, async (_, i) => {
            const at = api.at(stage.servers[i % 2].url);
            const response = await at.submit(task, { client: `device-${i}` });
            return { status: response.status, body: await response.json() };
        }),
    );
    assert.deepEqual(answers.filter(answer => ![200, 201].includes(answer.status)), []);
    assert.equal(answers.filter(answer => answer.status === 201).length, 1);
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(new Set(answers.map(answer => answer.body.id)), new Set([rows[0].id]));
    assert.equal(rows.length, 1);
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);
    await until('every arrival is counted', async () => (await operator.arrivals()) >= before + MANY);
    assert.equal(await operator.arrivals(), before + MANY);
});
