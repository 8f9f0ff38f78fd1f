// Lists and records as ops read them: found, paged, exported, in the reader's language and clock, exact whatever the text, with and
// without JavaScript, with and without a mouse.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { hydrated, tabTo } from '../lib/browser.mjs';
import { isLive, leaveStuck, shown, writeHistory } from '../lib/ops.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('ops_lists', {
    settings: { YICI_STUCK_AFTER_SECONDS: '1', YICI_LEASE_SECONDS: '3600', YICI_SCAN_INTERVAL_SECONDS: '3600' },
    prepare: stage => writeHistory(stage.database, 260),
});
const LIST = 'section[aria-labelledby=records] [data-record]';
/** Everything that keys may hold, and that pages take for something else; 255 characters, which is the most. */
const ODD_KEY = `<img src=x onerror="alert('k')">&amp;%00 '"; DROP TABLE x; -- `.padEnd(255, 'k');
/** What clients may call themselves: other directions, joined emoji, markup, and characters that nobody sees. */
const ODD_CLIENT = '\u202eزبون\u202c שלום 👩‍🚀 <script>alert(1)</script>\u200b 客户端';

scene('records are found by state, action, student, age and text, and the address holds the filter', async stage => {
    const { database } = stage;
    const id = await leaveStuck(database, 'student4', 'looked-for', { minutes: 90 });
    const operator = await stage.enterAs('ops1');
    const page = await operator.openLive('/records');
    await page.locator(`section[aria-labelledby=stuck-first] [data-record="${id}"]`).waitFor();
    const states = () => page.locator(`${LIST} .state`).allTextContents();
    const filter = async (fields, expected) => {
        await page.goto('/records');
        await hydrated(page);
        for (const [name, value] of Object.entries(fields)) {
            const field = page.locator(`.filter [name=${name}]`);
            if (await field.evaluate(field => field.tagName === 'SELECT')) await field.selectOption(value);
            else await field.fill(value);
        }
        await page.getByRole('button', { name: 'Filter' }).click();
        await page.waitForURL(url => Object.entries(fields).every(([name, value]) => url.searchParams.get(name) === value));
        const [{ n }] = await database.rows(`SELECT count(*)::int AS n FROM idempotency_record r WHERE ${expected}`);
        assert.ok(n > 0);
        assert.equal(await page.locator(LIST).count(), Math.min(n, 50), JSON.stringify(fields));
    };
    await filter({ state: 'FAILED_FINAL' }, `state = 'FAILED_FINAL'`);
    assert.deepEqual([...new Set(await states())].map(text => text.trim()), ['Failed, final']);
    await filter({ subject: 'student7', action: 'task_submit' }, `subject_id = (SELECT id FROM account WHERE name = 'student7')`);
    await filter({ min_age: '3600' }, `state = 'PROCESSING' AND claimed_at < now() - interval '1 hour'`);
    await filter({ q: 'task_submit:41:' }, `idem_key LIKE 'task\\_submit:41:%'`);
    const [{ trace_id: trace }] = await database.rows(`SELECT trace_id FROM request_arrival ORDER BY id LIMIT 1`);
    await filter({ q: trace }, `id IN (SELECT record_id FROM request_arrival WHERE trace_id = '${trace}')`);
    await filter({ q: 'looked-for', stuck: 'true' }, `idem_key = 'looked-for'`);
    await page.locator('.cell-key a').click();
    await page.waitForURL(`**/records/${id}`);
    await page.goBack();
    await page.locator(LIST).waitFor();
    assert.equal(await page.locator('.filter [name=q]').inputValue(), 'looked-for');
});

scene('pages lead on and back, and the export holds what the filter lists', async stage => {
    const operator = await stage.enterAs('ops1');
    const page = await operator.openLive('/records?state=SUCCEEDED');
    const [{ n }] = await stage.database.rows(`SELECT count(*)::int AS n FROM idempotency_record WHERE state = 'SUCCEEDED'`);
    const seen = [];
    for (;;) {
        seen.push(...(await page.locator(LIST).evaluateAll(rows => rows.map(row => row.dataset.record))));
        const next = page.locator('a[rel=next]');
        if (!(await next.count())) break;
        const before = page.url();
        await next.click();
        await page.waitForURL(url => url.href !== before);
        await until('the page is another one', async () => (await page.locator(LIST).first().getAttribute('data-record')) !== seen.at(-50));
    }
    assert.equal(seen.length, n);
    assert.equal(new Set(seen).size, n, 'no record twice');
    await page.locator('a[rel=prev]').click();
    await page.waitForURL('**before=*');
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export as CSV' }).click()]);
    assert.equal(file.suggestedFilename(), 'records.csv');
    const lines = (await readFile(await file.path(), 'utf8')).trim().split('\r\n');
    assert.match(lines[0], /^id,key,action,subject,subject_name,state,/);
    assert.deepEqual(lines.slice(1).map(line => line.split(',')[0]), seen, 'all of it, in the order of the list');
});

scene('long and odd text is shown exact and harmless, and is copied as it is', async stage => {
    const id = await leaveStuck(stage.database, 'student5', ODD_KEY, { client: ODD_CLIENT });
    const operator = await stage.enterAs('ops1');
    await operator.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    let spoke = false;
    for (const path of ['/panel', '/records?stuck=true', `/records/${id}`]) {
        const page = await operator.openLive(path);
        page.on('dialog', () => (spoke = true));
        assert.equal(await page.locator('main img, main script').count(), 0);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, path);
        if (path === '/panel') assert.equal(await page.locator(`[data-record="${id}"] .key`).getAttribute('title'), ODD_KEY);
    }
    const page = await operator.openLive(`/records/${id}`);
    assert.equal(await page.locator('.record-key .key').textContent(), ODD_KEY);
    await page.locator('.record-key .copy').click();
    await page.locator('.record-key .copy', { hasText: 'Copied' }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), ODD_KEY);
    const client = page.locator('.moment-arrival .odd');
    const named = ODD_CLIENT.replace(/[\u202e\u202c\u200b]/g, c => `U+${c.codePointAt(0).toString(16).toUpperCase()}`);
    assert.equal(await client.textContent(), named, 'what cannot be seen is named, the rest is as it was');
    assert.equal(await client.evaluate(element => getComputedStyle(element).unicodeBidi), 'isolate');
    assert.ok(!spoke);
});

scene('times are the reader\'s, with UTC on hover and focus, and numbers are grouped', async stage => {
    const [record] = await stage.database.rows(
        `SELECT id::text, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS utc,
                to_char(created_at AT TIME ZONE 'Asia/Shanghai', 'HH24:MI') AS local FROM idempotency_record ORDER BY id LIMIT 1`,
    );
    for (const [lang, day] of [['zh', /^\d+月\d+日/], ['en', /^[A-Z][a-z]{2} \d+/]]) {
        const operator = await stage.enterAs('ops1', { lang });
        const list = await operator.openLive('/records?state=SUCCEEDED&q=task_submit');
        await list.goto(`/records/${record.id}`);
        await hydrated(list);
        const first = list.locator('.moment time').first();
        assert.match(await first.textContent(), day);
        assert.ok((await first.textContent()).includes(record.local), 'the local time');
        assert.ok((await first.getAttribute('title')).endsWith(record.utc), 'and UTC');
        const ago = list.locator('.record-facts time');
        await ago.focus();
        assert.match(await ago.evaluate(time => getComputedStyle(time, '::after').content), new RegExp(record.utc));
        const panel = await operator.open('/panel?window=1h');
        await isLive(panel);
        const at = panel.locator('.chart-ends time').first();
        assert.match(await at.textContent(), day);
        assert.match(await at.getAttribute('title'), /GMT\+8.* · \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    }
});

scene('a chart tells its exact values on hover, on focus, and as a table', async stage => {
    const operator = await stage.enterAs('ops1');
    const page = await operator.open('/panel?window=1h');
    await isLive(page);
    await page.getByRole('button', { name: 'Pause' }).click();
    const chart = page.locator('svg.area');
    const counted = (await page.locator('.legend .number').allTextContents()).reduce((sum, n) => sum + Number(n.replaceAll(',', '')), 0);
    assert.match(await chart.getAttribute('aria-label'), new RegExp(`^${counted} arrivals in the window, at most \\d+ per 1 min\\.$`));
    const reading = page.locator('.chart-reading');
    await chart.locator('.column').nth(40).hover();
    const hovered = await reading.textContent();
    const tile = page.locator('[data-counter=new] .quiet').first();
    const value = await tile.locator('strong').textContent();
    assert.match(hovered, new RegExp(`new ${value}( |$)`), 'tiles tell the same step');
    await page.locator('.arrivals summary').click();
    const row = page.locator('.arrivals tbody tr').nth(40);
    assert.equal(await row.locator('td').first().textContent(), value, 'and the table');
    await page.locator('h2#others').hover();
    assert.equal(await reading.textContent(), '');
    await chart.focus();
    for (let i = 0; i < 41; i++) await page.keyboard.press('ArrowRight');
    assert.equal(await reading.textContent(), hovered);
    await page.locator('[data-counter=reused] .sparkline .column').nth(12).hover();
    const other = page.locator('.arrivals tbody tr').nth(12).locator('td').nth(1);
    assert.equal(await page.locator('[data-counter=reused] strong').textContent(), await other.textContent());
    assert.equal(await shown(page, 'new'), 260 - Math.floor(260 / 41));
});

scene('without JavaScript every page of ops is read, filtered, paged, and a record is mended', async stage => {
    const id = await leaveStuck(stage.database, 'student6', 'by-form');
    const admin = await stage.enterAs('admin1', { javaScriptEnabled: false });
    const page = await admin.open('/panel?window=1h');
    assert.ok((await shown(page, 'new')) > 200);
    assert.equal(await page.locator('.pulse-state').textContent(), 'As of loading');
    await page.locator(`[data-record="${id}"]`).waitFor();
    await page.locator('[data-counter=reused] a').click();
    await page.waitForURL('**/arrivals?outcome=reused&window=1h');
    assert.ok((await page.locator('[data-row]').count()) > 40);
    await page.goto('/records?limit=2');
    await page.locator('a[rel=next]').click();
    await page.waitForURL('**after=*');
    assert.equal(await page.locator(LIST).count(), 2);
    await page.locator('input[name=subject]').fill('student6');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.waitForURL('**subject=student6*');
    await page.locator(`${LIST} .cell-key a`, { hasText: 'by-form' }).click();
    await page.locator('.timeline').waitFor();
    await page.locator('#act-release summary').click();
    await page.locator('#reason-release').fill('By a form.');
    await page.locator('[data-act=release] button.primary').click();
    await page.locator('.notice-good').waitFor();
    for (const path of ['/approvals', '/audit', '/compensated?window=1h', '/failures?window=1h']) {
        await page.goto(path);
        await page.locator('h1').waitFor();
        assert.equal(await page.locator('.skeleton').count(), 0);
    }
    assert.equal(await page.locator('[data-row]').count(), 1, 'what was released had failed for now');
});

scene('with the keyboard alone: from the panel to a record that is mended, and ? tells how', async stage => {
    await leaveStuck(stage.database, 'student7', 'by-keys');
    const admin = await stage.enterAs('admin1');
    const page = await admin.open('/panel');
    await isLive(page);
    await page.keyboard.press('?');
    const help = page.locator('dialog.help[open]');
    await help.waitFor();
    assert.ok((await help.locator('kbd').count()) > 10);
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'detached' });
    await page.keyboard.press('p');
    await page.locator('.pulse button[aria-pressed=true]').waitFor();
    await page.keyboard.press('3');
    await page.waitForURL('**window=24h');
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForURL('**/records');
    await hydrated(page);
    await page.locator('.filter input').first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('by-keys');
    await page.keyboard.press('Enter');
    await page.waitForURL('**q=by-keys*');
    await page.locator(LIST).waitFor();
    await hydrated(page);
    await tabTo(page, '.cell-key a');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/records\/\d+$/);
    await page.locator('#act-re_execute').waitFor();
    await hydrated(page);
    await tabTo(page, '#act-re_execute summary');
    await page.keyboard.press('Enter');
    await tabTo(page, '#reason-re_execute');
    await page.keyboard.type('By keys? Yes: p, g, 1.');
    await tabTo(page, '[data-act=re_execute] button.primary');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/records/*?done=*');
    await page.locator('.notice-good').waitFor();
});
