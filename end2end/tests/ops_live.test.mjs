// The panel while it lives: one stream per tab in sight, nothing lost or moved under the hands of whoever works on it.
import assert from 'node:assert/strict';
import { isLive, leaveStuck, shown } from '../lib/ops.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('ops_live', {
    settings: { YICI_STUCK_AFTER_SECONDS: '1', YICI_LEASE_SECONDS: '3600', YICI_SCAN_INTERVAL_SECONDS: '3600' },
});
const EVENTS = /\/panel\/events/;
const TABS = 8;

/** One more arrival of somebody who has none yet; gives how many there are in all. */
async function arrive(stage, student) {
    const api = await stage.api(student);
    await api.submit((await api.openTasks())[0]);
    return (await stage.api('ops1')).arrivals();
}

/** The arrivals of the window, as a panel shows them. */
async function sum(panel) {
    let sum = 0;
    for (const name of ['new', 'reused', 'processing', 'constraint_conflict', 'mismatch', 'unknown']) sum += await shown(panel, name);
    return sum;
}

/** Counts the streams that a page has open. */
function streams(page) {
    const open = new Set();
    page.on('request', request => EVENTS.test(request.url()) && open.add(request));
    for (const end of ['requestfinished', 'requestfailed']) page.on(end, request => open.delete(request));
    return open;
}

/** Puts a tab out of sight or back into it; the browser without a screen shows all of them at once. */
async function look(page, state) {
    await page.evaluate(state => {
        Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => state });
        document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
    }, state);
}

scene('eight tabs in sight at once over HTTP/1.1 all live, and every other page still loads', async stage => {
    const operator = await stage.enterAs('ops1');
    const open = [];
    const tabs = [];
    for (let i = 0; i < TABS; i++) {
        const page = await operator.context.newPage();
        open.push(streams(page));
        await page.goto(`/panel?window=${['5m', '1h', '24h', '7d'][i % 4]}`, { waitUntil: 'load' });
        await isLive(page);
        tabs.push(page);
    }
    const n = await arrive(stage, 'student1');
    for (const page of tabs) await until('each tab has the newest number', async () => (await sum(page)) === n);
    const count = () => open.reduce((sum, streams) => sum + streams.size, 0);
    assert.equal(count(), 4, 'a browser has six connections to a server; two are left');
    // Whoever leaves makes room for one that asks instead.
    const first = open.findIndex(streams => streams.size);
    await tabs[first].close();
    open[first].clear();
    await until('another tab takes the stream over', () => count() === 4);
    await operator.openLive('/records');
});

scene('the stream of a tab ends when it is out of sight, and begins anew with the right numbers', async stage => {
    const operator = await stage.enterAs('ops1');
    const page = await operator.context.newPage();
    const open = streams(page);
    await page.goto('/panel', { waitUntil: 'load' });
    await isLive(page);
    await until('it has a stream', () => open.size === 1);
    await look(page, 'hidden');
    await until('it has none', () => open.size === 0);
    const before = await sum(page);
    const n = await arrive(stage, 'student2');
    assert.equal(await sum(page), before);
    await look(page, 'visible');
    await until('the number is right again', async () => (await sum(page)) === n);
    assert.equal(open.size, 1);
});

scene('a paused panel stands still whatever happens, and goes on from where things are', async stage => {
    const operator = await stage.enterAs('ops1');
    const page = await operator.context.newPage();
    const open = streams(page);
    await page.goto('/panel', { waitUntil: 'load' });
    await isLive(page);
    const before = await sum(page);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.locator('.pulse-state', { hasText: 'Paused' }).waitFor();
    await until('the stream has ended', () => open.size === 0);
    const n = await arrive(stage, 'student3');
    await leaveStuck(stage.database, 'student4', 'while-paused');
    // Coming back to the tab is no reason to go on.
    await look(page, 'hidden');
    await look(page, 'visible');
    // The age of what is shown grows meanwhile, and is told.
    await page.locator('.pulse-age', { hasText: /[3-9] s old/ }).waitFor();
    assert.equal(await sum(page), before);
    assert.equal(await page.locator('[data-record]').count(), 0);
    assert.equal(open.size, 0);
    await page.getByRole('button', { name: 'Go on' }).click();
    await until('the number is right again', async () => (await sum(page)) === n);
    await page.locator('[data-record]').waitFor();
});

scene('a selection, an open dialog, typed text, the focus and the place on the page survive the updates', async stage => {
    const ids = [];
    for (let i = 0; i < 30; i++) ids.push(await leaveStuck(stage.database, 'student5', `many-${i}`, { minutes: 90 - i }));
    const admin = await stage.enterAs('admin1');
    const page = await admin.open('/panel');
    await isLive(page);
    await page.locator('.arrivals summary').click();
    for (const id of ids.slice(0, 2)) await page.locator(`[data-record="${id}"] input`).check();
    const typed = page.locator('.stuck input[name=q]');
    await typed.fill('many');
    await page.keyboard.press('ArrowLeft');
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight - innerHeight - 40));
    const place = await page.evaluate(() => scrollY);
    const again = async what => {
        const n = await arrive(stage, what);
        await until('an update came', async () => (await sum(page)) === n);
        // The list is read anew less often than the numbers.
        await page.waitForResponse(/list_stuck_records/);
    };
    await again('student6');
    for (const id of ids.slice(0, 2)) assert.ok(await page.locator(`[data-record="${id}"] input`).isChecked());
    assert.equal(await typed.inputValue(), 'many');
    assert.ok(await typed.evaluate(field => field === document.activeElement && field.selectionStart === 3), 'the cursor too');
    assert.equal(await page.evaluate(() => scrollY), place);
    assert.ok(await page.locator('.arrivals details').evaluate(details => details.open));
    await page.locator('h2#others').click();
    await page.keyboard.press('?');
    await page.locator('dialog.help[open]').waitFor();
    await again('student7');
    assert.ok(await page.locator('dialog.help[open] button').evaluate(button => button === document.activeElement));
});

scene('rows come, go and move only when nobody is at them, or when it is asked for', async stage => {
    for (let i = 0; i < 5; i++) await leaveStuck(stage.database, 'student8', `oldest-${i}`, { minutes: 200 - i });
    const admin = await stage.enterAs('admin1');
    const page = await admin.open('/panel');
    await isLive(page);
    const rows = () => page.locator('.stuck [data-record]').evaluateAll(rows => rows.map(row => row.dataset.record));
    const before = await rows();
    await page.locator(`[data-record="${before[3]}"] .cell-subject`).hover();
    const place = await page.locator(`[data-record="${before[3]}"]`).boundingBox();
    // One more, and the first one has ended.
    const added = await leaveStuck(stage.database, 'student8', 'the-newest', { minutes: 3 });
    await stage.database.rows(
        `UPDATE idempotency_record SET state = 'FAILED_RETRYABLE', lease_until = NULL, version = version + 1 WHERE id = $1`,
        [before[0]],
    );
    const news = page.getByRole('button', { name: '1 more stuck, 1 no longer: show' });
    await news.waitFor();
    assert.deepEqual(await rows(), before, 'no row came or went');
    assert.deepEqual(await page.locator(`[data-record="${before[3]}"]`).boundingBox(), place, 'nothing moved under the pointer');
    assert.match(await page.locator(`[data-record="${before[0]}"]`).textContent(), /no longer stuck/);
    await news.click();
    assert.deepEqual(await rows(), [...before.slice(1), added]);
    assert.equal(await news.count(), 0);
    // Nobody is at the rows now: they come by themselves.
    await page.mouse.move(5, 5);
    await page.evaluate(() => document.activeElement.blur());
    const last = await leaveStuck(stage.database, 'student8', 'the-very-newest', { minutes: 2 });
    await page.locator(`[data-record="${last}"]`).waitFor();
});

scene('after a server that was killed the stream is back by itself, with the right numbers', async stage => {
    stage.mayComplain = true;
    const operator = await stage.enterAs('ops1');
    operator.allow(/ERR_|Failed to load/);
    const page = await operator.open('/panel');
    await isLive(page);
    await stage.server.kill();
    await page.locator('.pulse-state', { hasText: 'Reconnecting' }).waitFor();
    await page.locator('.health-unsure').waitFor();
    await stage.server.start();
    const n = await arrive(stage, 'student9');
    await isLive(page);
    await until('the number is right', async () => (await sum(page)) === n);
    await page.locator('.health-stuck').waitFor();
});
