// A known mix of arrivals with a server killed in the middle: exactly those numbers are on the page, and each leads to exactly the rows
// that it counts.
import assert from 'node:assert/strict';
import { compensate, isLive, leaveStuck, shown } from '../lib/ops.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('ops_counters', {
    settings: { YICI_STUCK_AFTER_SECONDS: '1', YICI_LEASE_SECONDS: '3600', YICI_SCAN_INTERVAL_SECONDS: '3600' },
});

/** How many rows a list has, over all its pages. */
async function rowsBehind(page, href) {
    let n = 0;
    for (let next = href; next; ) {
        await page.goto(next);
        n += await page.locator('tr:is([data-record], [data-row])').count();
        const link = page.locator('a[rel=next]');
        next = (await link.count()) ? await link.getAttribute('href') : undefined;
    }
    return n;
}

scene('a known mix with a kill in the middle is on the panel, number by number, and each number leads to its rows', async stage => {
    stage.mayComplain = true;
    const operator = await stage.enterAs('ops1');
    operator.allow(/ERR_|Failed to load|503/);
    const panel = await operator.open('/panel?window=1h');
    await isLive(panel);
    const [one, two, three] = await Promise.all(['student1', 'student2', 'student3'].map(name => stage.api(name)));
    const [first, second] = await one.openTasks();
    const ops = await stage.api('ops1');
    const admin = await stage.api('admin1');

    // One executes, 3 repeat it.
    for (let i = 0; i < 4; i++) await one.submit(first, { content: 'One.' });
    // One executes long: 2 meet it executing, 1 brings something else under its key.
    const release = await stage.database.holdSubmissions();
    const [task] = await two.openTasks();
    const slow = two.submit(task, { content: 'Slow.' });
    await until('it executes', () => stage.database.isSubmissionAwaited());
    for (let i = 0; i < 2; i++) assert.equal((await two.submit(task, { content: 'Slow.' })).status, 202);
    assert.equal((await two.submit(task, { content: 'Other.' })).status, 422);
    await release();
    await slow;
    await until('the first half is counted', async () => (await ops.arrivals()) === 8);
    // One is in the middle of its execution when the server is killed.
    const held = await stage.database.holdSubmissions();
    const cut = three.submit((await three.openTasks())[0], { content: 'Cut.' }).catch(() => {});
    await until('it executes', () => stage.database.isSubmissionAwaited());
    await stage.server.kill();
    await held();
    await cut;
    await panel.locator('.dot-lost').waitFor();
    assert.equal(await panel.locator('.health-unsure').count(), 1, 'what is not known is not called clear');
    await stage.server.start();

    // What was cut is still executing for whoever asks again.
    assert.equal((await three.submit((await three.openTasks())[0], { content: 'Cut.' })).status, 202);
    // One executes, 1 repeats it, 1 brings something else under its key; 2 more keys meet the constraint, of which 1 is refused.
    for (let i = 0; i < 2; i++) await one.submit(second, { content: 'Two.' });
    await one.submit(second, { content: 'Another.' });
    assert.equal((await one.submit(second, { client: 'same', content: 'Two.' })).status, 200);
    assert.equal((await one.submit(second, { client: 'other', content: 'Third.' })).status, 409);
    // An admin releases one, which is a failure for now, and then ends it, which is a refusal.
    const left = await leaveStuck(stage.database, 'student4', 'left-alone');
    assert.equal((await compensate(stage.server, admin, left, 'release', 'Let it go.')).status, 200);
    const [{ version }] = await stage.database.rows('SELECT version::int FROM idempotency_record WHERE id = $1', [left]);
    assert.equal((await compensate(stage.server, admin, left, 'fail', 'It is over.', version)).status, 200);
    const stuck = await leaveStuck(stage.database, 'student5', 'left-stuck');

    // The arrival of what was ended by hand is the new one of its key.
    const mix = {
        new: 4,
        reused: 4,
        processing: 3,
        constraint_conflict: 2,
        mismatch: 2,
        unknown: 0,
        failed_final: 2,
        failed_retryable: 1,
        compensated: 2,
        stuck: 2,
        timeout_after_success: 0,
    };
    for (const [name, n] of Object.entries(mix)) {
        await until(`${name} is ${n}`, async () => (await shown(panel, name)) === n).catch(async error => {
            throw new Error(`${name}: ${await shown(panel, name)} instead of ${n}`, { cause: error });
        });
        if (name !== 'stuck') assert.equal(await shown(panel, name, 'total'), n, `${name} of all time`);
    }
    const table = panel.locator('.arrivals details');
    await table.locator('summary').click();
    const cells = await table.locator('tbody td').allTextContents();
    assert.equal(cells.reduce((sum, cell) => sum + Number(cell), 0), 15, 'the table holds what the chart shows');

    const reader = await operator.open('/records');
    for (const [name, n] of Object.entries(mix)) {
        const link = panel.locator(`[data-counter=${name}] a`);
        if (name === 'timeout_after_success') {
            assert.equal(await link.count(), 0, 'an event that has no row leads nowhere');
            continue;
        }
        assert.equal(await rowsBehind(reader, await link.getAttribute('href')), n, `rows behind ${name}`);
    }
    for (const window of ['24h', '7d']) {
        const other = await operator.open(`/panel?window=${window}`);
        await isLive(other);
        assert.equal(await shown(other, 'new'), mix.new, window);
        await other.close();
    }
    // What the findings tell leads to rows, too.
    const finding = panel.locator('[data-finding=stuck]');
    assert.match(await finding.textContent(), /^2 stuck\..*threshold 1/);
    assert.equal(await rowsBehind(reader, await finding.locator('a').getAttribute('href')), 2);
    assert.ok(await panel.locator(`[data-record="${stuck}"]`).count());
});

scene('counters are the same after one more restart, in a new tab', async stage => {
    const ops = await stage.api('ops1');
    const before = (await ops.panel('1h')).totals;
    await stage.server.stop();
    await stage.server.start();
    const operator = await stage.enterAs('ops1');
    const panel = await operator.open('/panel?window=1h');
    await isLive(panel);
    for (const [name, n] of Object.entries(before)) {
        assert.equal(await shown(panel, name, 'total'), n, name);
    }
});
