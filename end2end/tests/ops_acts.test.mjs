// Admins mend records, alone and by two, one and many at a time, with a reason; whoever is late is told; all of it is in the audit.
import assert from 'node:assert/strict';
import { compensate, isLive, leaveStuck } from '../lib/ops.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('ops_acts', {
    settings: { YICI_STUCK_AFTER_SECONDS: '1', YICI_LEASE_SECONDS: '3600', YICI_SCAN_INTERVAL_SECONDS: '3600' },
});

/** Opens what can be done, gives a reason, and does it. */
async function act(page, action, reason = 'Looked at it.') {
    await page.locator(`#act-${action} summary`).click();
    const form = page.locator(`[data-act=${action}]`);
    await form.locator('textarea').fill(reason);
    if (await form.locator('input[type=checkbox]').count()) await form.locator('input[type=checkbox]').check();
    await form.locator('button.primary').click();
    await page.waitForURL('**/records/*?*');
}

const version = async (stage, id) =>
    (await stage.database.rows('SELECT version::int FROM idempotency_record WHERE id = $1', [id]))[0].version;

scene('an admin mends a record with a reason; whoever is late is told that it has moved on', async stage => {
    const id = await leaveStuck(stage.database, 'student2', 'one');
    const admin = await stage.enterAs('admin1');
    const page = await admin.openLive(`/records/${id}`);
    const late = await admin.openLive(`/records/${id}`);
    // What would happen, and why: the evidence stands beside it, and what it forbids cannot be chosen.
    assert.match(await page.locator('[aria-labelledby=evidence]').textContent(), /It did not happen/);
    assert.equal(await page.locator('#act-complete').count(), 0);
    assert.match(await page.locator('.act-not').textContent(), /Complete – the evidence forbids it/);
    await page.locator('#act-re_execute summary', { hasText: 'proposed' }).waitFor();
    await act(page, 're_execute');
    await page.locator('.notice-good').waitFor();
    await page.locator('.record-head .state-succeeded').waitFor();
    assert.equal((await stage.database.submissions((await stage.api('student2')).account.id)).length, 1);
    await act(late, 'release');
    assert.match(await late.locator('.notice-bad').textContent(), /has ended meanwhile: nothing was changed/);
    const audit = await admin.openLive(`/audit?object=record/${id}`);
    assert.equal(await audit.locator('tbody tr').count(), 2, 'the refused attempt too');
});

scene('what cannot be undone asks once more, and a record that was fenced meanwhile is not touched', async stage => {
    const id = await leaveStuck(stage.database, 'student7', 'two');
    const admin = await stage.enterAs('admin1');
    const page = await admin.openLive(`/records/${id}`);
    await page.locator('#act-fail summary').click();
    await page.locator('[data-act=fail] textarea').fill('It is over.');
    await page.locator('[data-act=fail] button.primary').click();
    assert.ok(await page.locator('#sure-fail').evaluate(box => box.validity.valueMissing), 'the browser asks for it');
    assert.equal(await version(stage, id), 1);
    const other = await stage.api('admin2');
    await compensate(stage.server, other, id, 'release', 'I was first.');
    await page.locator('#sure-fail').check();
    await page.locator('[data-act=fail] button.primary').click();
    await page.waitForURL('**/records/*?*');
    assert.match(await page.locator('.notice-bad').textContent(), /has moved on meanwhile.*nothing was changed/);
    await page.locator('.record-head .state-failed-retryable').waitFor();
});

scene('picked records are mended in one go, each with its own outcome', async stage => {
    const ids = [];
    for (let n = 0; n < 3; n++) ids.push(await leaveStuck(stage.database, 'student3', `bulk-${n}`));
    const admin = await stage.enterAs('admin1');
    const panel = await admin.open('/panel');
    await isLive(panel);
    assert.ok(!(await panel.locator('.action-bar').isVisible()));
    for (const id of ids) await panel.locator(`[data-record="${id}"] input`).check();
    assert.match(await panel.locator('.action-bar').innerText(), /picked/);
    await panel.locator('.action-bar button').click();
    await panel.waitForURL('**/bulks/new?*');
    assert.equal(await panel.locator('[data-row]').count(), 3, 'what would happen to each');
    await panel.locator('label', { hasText: 'Release · permitted for 3 of 3' }).waitFor();
    assert.ok(await panel.locator('input[value=complete]').isDisabled());
    await panel.locator('input[value=release]').check();
    await panel.locator('#reason').fill('Nothing happened.');
    await panel.locator('#sure').check();
    // One of them ends before the button is pressed.
    await compensate(stage.server, await stage.api('admin2'), ids[0], 'fail', 'I was first.');
    await panel.locator('.act-form button.primary').click();
    await panel.waitForURL(/\/bulks\/\d+$/);
    await until('all are done', async () => {
        await panel.reload();
        return /All done/.test(await panel.locator('[data-bulk]').textContent());
    });
    const outcomes = {};
    for (const id of ids) outcomes[id] = (await panel.locator(`[data-row="${id}"]`).innerText()).split(/[\t\n]+/).slice(1).filter(Boolean);
    assert.deepEqual(outcomes[ids[1]], ['done']);
    assert.deepEqual(outcomes[ids[2]], ['done']);
    assert.match(outcomes[ids[0]].join(' '), /^(skipped|refused) The record has ended meanwhile: nothing was changed\.$/);
});

scene('ops see and do not act', async stage => {
    const id = await leaveStuck(stage.database, 'student6', 'seen');
    const operator = await stage.enterAs('ops1');
    operator.allow(/status of 403/);
    const page = await operator.openLive(`/records/${id}`);
    assert.equal(await page.locator('.act').count(), 0);
    assert.match(await page.locator('[aria-labelledby=acts]').textContent(), /an admin acts/);
    for (const path of ['/records', '/panel']) {
        const list = await operator.openLive(path);
        assert.equal(await list.locator('input[type=checkbox]').count(), 0);
    }
    const preview = await operator.openLive(`/bulks/new?id=${id}`);
    assert.match(await preview.locator('h1').textContent(), /Not for this account/);
    const form = { record: id, action: 'release', reason: 'x', expected_version: '1', key: 'forged' };
    await operator.context.request.post('/api/fn/compensate', { form });
    assert.equal(await version(stage, id), 1);
});

scene('the audit is filtered by who, what and on what', async stage => {
    const admin = await stage.enterAs('ops1');
    const page = await admin.openLive('/audit');
    const all = await page.locator('[data-row]').count();
    await page.locator('input[name=actor]').fill('admin2');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.waitForURL('**actor=admin2*');
    const of = await page.locator('[data-row] td:nth-child(2)').allTextContents();
    assert.ok(of.length > 0 && of.length < all && of.every(name => name === 'admin2'), `${of}`);
    await page.locator('select[name=action]').selectOption({ label: 'Release' });
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.waitForURL('**action=compensation.release*');
    assert.equal(await page.locator('[data-row]').count(), 1);
    assert.match(await page.locator('[data-row]').innerText(), /admin2\s+Release\s+Record \d+\s+done\s+I was first\./);
    const object = await page.locator('[data-row] td:nth-child(4) a').getAttribute('href');
    await page.getByRole('link', { name: 'Clear' }).click();
    await page.waitForURL(url => !url.search);
    await page.getByRole('link', { name: 'Clear' }).waitFor({ state: 'detached' });
    await page.locator('input[name=object]').fill(object.replace('/records/', 'record/'));
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.waitForURL('**object=*');
    assert.equal(await page.locator('[data-row]').count(), 2);
});
