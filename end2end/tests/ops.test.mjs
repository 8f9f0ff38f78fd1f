// The pages of ops and admins: numbers that lead to their rows, records that are mended, and nothing that an audit of
// accessibility finds.
import assert from 'node:assert/strict';
import { readFile, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DESKTOP, PHONE, hydrated } from '../lib/browser.mjs';
import { environment } from '../lib/environment.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('ops', {
    settings: { YICI_STUCK_AFTER_SECONDS: '1', YICI_LEASE_SECONDS: '3600', YICI_SCAN_INTERVAL_SECONDS: '3600' },
});
/** What a browser loads before a page is alive, compressed: the styles, and one of the two halves of the pages. */
const MOST_BYTES = 350 * 1024;

test('the first load is at most 350 kB', async () => {
    const folder = path.join(environment.site, 'pkg');
    const names = (await readdir(folder)).filter(file => file.endsWith('.br'));
    const size = async wanted => {
        const sizes = names.filter(wanted).map(async file => (await stat(path.join(folder, file))).size);
        return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    };
    const styles = await size(file => file.endsWith('.css.br'));
    assert.ok(styles > 0);
    for (const half of ['yici', 'ops']) {
        const scripts = await size(file => file.startsWith(`${half}.`) && !file.endsWith('.css.br'));
        assert.ok(scripts > 0 && styles + scripts <= MOST_BYTES, `${half}: ${styles + scripts} bytes`);
    }
});

/** A record that nobody executes any more: claimed long ago, its lease over. */
async function leaveStuck(stage, student, n) {
    const [row] = await stage.database.rows(
        `INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, fingerprint, request, trace_id, claim_token,
                                         owner_instance, claimed_at, lease_until, scan_after)
         SELECT id, 'task_submit', $2, 'PROCESSING', sha256('x'), '{"task_id":"3","submit_version":1,"content":"<b>odd</b>"}',
                md5($2), gen_random_uuid(), 1, now() - interval '10 minutes', now() - interval '9 minutes', now() + interval '1 day'
         FROM account WHERE name = $1 RETURNING id::text`,
        [student, `stuck-${n}`],
    );
    await stage.database.rows(
        `INSERT INTO request_arrival (id, record_id, action_type, arrived_at, client_id, trace_id, same_content)
         SELECT gen_random_uuid(), id, action_type, claimed_at, '<script>alert(1)</script>', trace_id, true
         FROM idempotency_record WHERE id = $1`,
        [row.id],
    );
    return row.id;
}

const shown = async (page, counter) =>
    Number((await page.locator(`[data-counter=${counter}] [data-value=window]`).textContent()).replaceAll(',', ''));

scene('a known mix with a restart in the middle is on the panel, number by number, and each number leads to its rows', async stage => {
    stage.mayComplain = true;
    const operator = await stage.enterAs('ops1');
    operator.allow(/ERR_|Failed to load|503/);
    const panel = await operator.open('/panel?window=1h');
    await panel.locator('.dot-live').waitFor();
    const api = await stage.api('student1');
    const [first, second] = await api.openTasks();
    for (let i = 0; i < 4; i++) await api.submit(first, { content: 'One.' });
    const ops = await stage.api('ops1');
    await until('the first half is counted', async () => (await ops.arrivals()) === 4);
    await stage.server.kill();
    await stage.server.start();
    for (let i = 0; i < 3; i++) await api.submit(second, { content: 'Two.' });
    await api.submit(second, { content: 'Another.' });
    await api.submit(second, { client: 'other', content: 'Third.' });
    const mix = { new: 2, reused: 5, processing: 0, constraint_conflict: 1, mismatch: 1, unknown: 0, failed_final: 1 };
    for (const [name, n] of Object.entries(mix)) {
        await until(`${name} is ${n}`, async () => (await shown(panel, name)) === n);
    }
    for (const name of ['new', 'reused', 'constraint_conflict', 'mismatch']) {
        const link = panel.locator(`[data-counter=${name}] a`).first();
        const rows = await operator.openLive(await link.getAttribute('href'));
        assert.equal(await rows.locator('[data-arrival]').count(), mix[name], name);
        await rows.close();
    }
    const refused = await operator.openLive(await panel.locator('[data-counter=failed_final] a').getAttribute('href'));
    assert.equal(await refused.locator('[data-record]').count(), 1);
});

scene('an admin mends a record with a reason; whoever is late is told that it has moved on', async stage => {
    const id = await leaveStuck(stage, 'student2', 1);
    const admin = await stage.enterAs('admin1');
    const page = await admin.openLive(`/records/${id}`);
    assert.match(await page.locator('.timeline').textContent(), /<script>alert\(1\)<\/script>/);
    const late = await admin.openLive(`/records/${id}`);
    const act = async (tab, name) => {
        await tab.locator(`.act:has([data-act=${name}]) summary`).click();
        await tab.locator(`[data-act=${name}] textarea`).fill('Looked at it.');
        await tab.locator(`[data-act=${name}] button.primary`).click();
        await tab.waitForURL('**/records/*?*');
    };
    await act(page, 're_execute');
    await page.locator('.notice-good').waitFor();
    await page.locator('.record-head .state-succeeded').waitFor();
    assert.equal((await stage.database.submissions((await stage.api('student2')).account.id)).length, 1);
    await act(late, 'release');
    await late.locator('.notice-bad').waitFor();
    const audit = await admin.openLive(`/audit?object=record/${id}`);
    assert.equal(await audit.locator('tbody tr').count(), 2, 'the refused attempt too');
});

scene('picked records are mended in one go, each with its outcome, and the selection survives the live updates', async stage => {
    const ids = [await leaveStuck(stage, 'student3', 2), await leaveStuck(stage, 'student4', 3)];
    const admin = await stage.enterAs('admin1');
    const panel = await admin.open('/panel');
    await panel.locator('.dot-live').waitFor();
    for (const id of ids) await panel.locator(`[data-record="${id}"] input`).check();
    const added = await leaveStuck(stage, 'student5', 4);
    await panel.locator(`[data-record="${added}"]`).waitFor();
    for (const id of ids) assert.ok(await panel.locator(`[data-record="${id}"] input`).isChecked());
    await panel.locator('.action-bar button').click();
    await panel.waitForURL('**/bulks/new?*');
    await panel.locator('input[value=release]').check();
    await panel.locator('#reason').fill('Nothing happened.');
    await panel.locator('.act-form input[type=checkbox]').check();
    await panel.locator('.act-form button.primary').click();
    await panel.waitForURL(/\/bulks\/\d+$/);
    await until('all are done', async () => {
        await panel.reload();
        return /All done/.test(await panel.locator('[data-bulk]').textContent());
    });
    assert.equal(await panel.locator('tbody tr').count(), 2);
});

scene('ops see and do not act', async stage => {
    const id = await leaveStuck(stage, 'student6', 5);
    const operator = await stage.enterAs('ops1');
    const page = await operator.openLive(`/records/${id}`);
    assert.equal(await page.locator('.act').count(), 0);
    const list = await operator.openLive('/records');
    assert.equal(await list.locator('input[type=checkbox]').count(), 0);
});

scene('without JavaScript lists are filtered and paged, and a record is read', async stage => {
    const operator = await stage.enterAs('ops1', { javaScriptEnabled: false });
    const page = await operator.open('/records?limit=2');
    await page.locator('a[rel=next]').click();
    await page.waitForURL('**after=*');
    assert.equal(await page.locator('section[aria-labelledby=records] [data-record]').count(), 2);
    await page.locator('input[name=subject]').fill('student1');
    await page.locator('.filter button').click();
    await page.waitForURL('**subject=student1*');
    await page.locator('.cell-key a').first().click();
    await page.locator('.timeline').waitFor();
});

scene('what is newer is announced and shown when it is asked for', async stage => {
    const operator = await stage.enterAs('ops1');
    const page = await operator.openLive('/records?subject=student7');
    await leaveStuck(stage, 'student7', 6);
    await page.locator('.newer button').waitFor();
    assert.equal(await page.locator('[data-record]').count(), 0, 'nothing moves by itself');
    await page.locator('.newer button').click();
    await page.locator('[data-record]').waitFor();
});

scene('the keyboard leads everywhere, and ? tells how', async stage => {
    const operator = await stage.enterAs('ops1');
    const page = await operator.open('/panel');
    await page.locator('.dot-live').waitFor();
    await page.keyboard.press('?');
    await page.locator('dialog.help[open]').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('p');
    await page.locator('.pulse button[aria-pressed=true]').waitFor();
    await page.locator('svg.area').focus();
    await page.keyboard.press('End');
    await page.waitForFunction(() => document.querySelector('.chart-reading').textContent.length > 3);
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForURL('**/records');
    await hydrated(page);
    await page.locator('.filter input').first().waitFor();
    await page.keyboard.press('/');
    assert.ok(await page.evaluate(() => document.activeElement.name === 'q'));
});

scene('axe finds nothing on any page of ops', async stage => {
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
    const [{ id }] = await stage.database.rows('SELECT id::text FROM idempotency_record ORDER BY id DESC LIMIT 1');
    const found = [];
    for (const view of [{ theme: 'light', viewport: DESKTOP }, { theme: 'dark', viewport: PHONE, lang: 'zh' }]) {
        const admin = await stage.enterAs('admin1', view);
        for (const address of ['/panel', '/records', `/records/${id}`, '/arrivals', '/approvals', '/audit', `/bulks/new?id=${id}`]) {
            const page = await admin.openLive(address);
            // Evaluated by the test's own channel: the page's policy forbids any other script, as it should.
            await page.evaluate(axe);
            const result = await page.evaluate(() => axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'] }));
            for (const one of result.violations) found.push(`${address} ${view.theme}: ${one.id} ${one.nodes[0].html.slice(0, 160)}`);
            await page.close();
        }
    }
    assert.deepEqual(found, []);
});
