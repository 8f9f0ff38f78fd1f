// What nobody ended is seen on the panel, and ends without anybody's asking.
import assert from 'node:assert/strict';
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('stuck', {
    settings: { YICI_LEASE_SECONDS: '10', YICI_STUCK_AFTER_SECONDS: '1', YICI_SCAN_INTERVAL_SECONDS: '1' },
});

scene('a record of a killed server is shown as stuck, then ends by itself with one submission', async stage => {
    stage.mayComplain = true;
    const api = await stage.api('student1');
    const [task] = await api.openTasks();
    const release = await stage.database.holdSubmissions();
    const cut = api.submit(task).catch(() => {});
    try {
        await until('the server executes', () => stage.database.isSubmissionAwaited());
        await stage.server.kill();
    } finally {
        await release();
    }
    await cut;
    await stage.server.start();

    const operator = await stage.enterAs('ops1');
    const panel = await operator.open('/panel');
    await panel.locator('.health-stuck').waitFor();
    const row = panel.locator('.records tbody tr', { hasText: 'student1' });
    await row.waitFor();
    assert.match(await row.textContent(), /Processing/);
    assert.equal(await panel.locator('[data-counter=stuck] [data-value=window]').textContent(), '1');

    await panel.locator('.health-clear').waitFor();
    await row.waitFor({ state: 'detached' });
    const rows = await stage.database.submissions(api.account.id);
    assert.equal(rows.length, 1);
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);
    const answer = await api.submit(task);
    assert.equal(answer.status, 201);
    assert.equal(answer.headers.get('idempotency-status'), 'reused');
    assert.equal((await answer.json()).id, rows[0].id);
    assert.equal((await stage.database.submissions(api.account.id)).length, 1);
    const ops = await stage.api('ops1');
    const key = api.keyFor(task, 'e2e');
    await until('both arrivals are counted', async () => (await ops.arrivals()) === 2);
    assert.equal((await api.request(key)).arrivals, 2);
});
