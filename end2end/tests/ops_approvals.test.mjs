// What needs two people: one admin asks, another one decides, nobody decides on what they asked for, and each sees what the other did.
import assert from 'node:assert/strict';
import { leaveStuck } from '../lib/ops.mjs';
import { setStage } from '../lib/stage.mjs';

const { scene } = setStage('ops_approvals', {
    settings: {
        YICI_STUCK_AFTER_SECONDS: '1',
        YICI_LEASE_SECONDS: '3600',
        YICI_SCAN_INTERVAL_SECONDS: '3600',
        YICI_SECOND_PERSON: 'always',
    },
});

/** Asks, on a record's page, and gives the id of what was asked for. */
async function ask(stage, person, id, reason) {
    const page = await person.openLive(`/records/${id}`);
    await page.locator('#act-release summary').click();
    await page.locator('[data-act=release] textarea').fill(reason);
    await page.locator('[data-act=release] button.primary').click();
    await page.waitForURL('**/records/*?done=*');
    assert.match(await page.locator('.notice-good').textContent(), /another admin has to approve/);
    await page.close();
    const [row] = await stage.database.rows('SELECT id::text FROM compensation WHERE reason = $1', [reason]);
    return row.id;
}

const state = async (stage, id) =>
    (await stage.database.rows('SELECT state FROM idempotency_record WHERE id = $1', [id]))[0].state;

scene('one admin asks and cannot decide; another one approves, and the first one sees it', async stage => {
    const id = await leaveStuck(stage.database, 'student1', 'approved');
    const asking = await stage.enterAs('admin1');
    const asked = await ask(stage, asking, id, 'The lesson is over.');
    assert.equal(await state(stage, id), 'PROCESSING', 'nothing is changed by asking');
    const own = await asking.openLive('/approvals');
    const card = `[data-compensation="${asked}"]`;
    assert.match(await own.locator(card).textContent(), /You asked for this yourself/);
    assert.equal(await own.locator(`${card} button`).count(), 0);
    // A form that was made by hand does not help either.
    const forged = { compensation: asked, decision: 'approve', reason: 'Me too.' };
    const answer = await asking.context.request.post('/api/fn/decide', { form: forged, headers: { accept: 'text/html' } });
    assert.match(await answer.text(), /Another admin has to decide: nothing was changed/);
    assert.equal(await state(stage, id), 'PROCESSING');

    const panel = await asking.openLive('/panel');
    await panel.getByRole('link', { name: '1 awaiting approval' }).waitFor();
    assert.match(await panel.locator('[data-finding=approvals]').textContent(), /second admin: 1\./);

    const deciding = await stage.enterAs('admin2');
    const inbox = await deciding.openLive('/approvals');
    assert.match(await inbox.locator(card).innerText(), /Release · Record \d+\s+admin1 · .*The lesson is over\..*becomes “Failed, can run again”/s);
    await inbox.locator(`#reason-${asked}`).fill('I looked too.');
    await inbox.getByRole('button', { name: 'Approve' }).click();
    await inbox.waitForURL('**/approvals?done=*');
    assert.match(await inbox.locator('.notice-good').textContent(), /done/);
    assert.equal(await inbox.locator(card).count(), 0);
    assert.equal(await state(stage, id), 'FAILED_RETRYABLE');

    await own.getByRole('button', { name: 'This page has changed' }).click();
    assert.equal(await own.locator(card).count(), 0);
    await own.locator(`[data-row="${asked}"]`, { hasText: 'done' }).waitFor();
    await panel.getByRole('link', { name: '1 awaiting approval' }).waitFor({ state: 'detached' });
    const record = await asking.openLive(`/records/${id}`);
    const told = await record.locator('.timeline').innerText();
    assert.match(told, /admin1 wants: Release.*admin2 approved: Release.*Done by admin2: Release|admin1 wants: Release.*admin2 approved: Release/s);
});

scene('another admin rejects, and whoever comes second is told that it is decided', async stage => {
    const id = await leaveStuck(stage.database, 'student2', 'rejected');
    const asked = await ask(stage, await stage.enterAs('admin2'), id, 'Nobody needs it.');
    const deciding = await stage.enterAs('admin1');
    const [inbox, late] = [await deciding.openLive('/approvals'), await deciding.openLive('/approvals')];
    for (const page of [inbox, late]) await page.locator(`#reason-${asked}`).fill('It is needed.');
    await inbox.getByRole('button', { name: 'Reject' }).click();
    await inbox.waitForURL('**/approvals?done=*');
    assert.match(await inbox.locator('#done').textContent(), /rejected/);
    assert.equal(await state(stage, id), 'PROCESSING');
    await late.getByRole('button', { name: 'Approve' }).click();
    await late.waitForURL('**/approvals?error=*');
    assert.match(await late.locator('.notice-bad').textContent(), /decided already: nothing was changed/);
    assert.equal(await state(stage, id), 'PROCESSING');
});

scene('what is typed stays while something else comes in, and only news is told as news', async stage => {
    const first = await leaveStuck(stage.database, 'student3', 'first');
    const second = await leaveStuck(stage.database, 'student4', 'second');
    const other = await stage.enterAs('admin1');
    const asked = await ask(stage, other, first, 'One.');
    const deciding = await stage.enterAs('admin2');
    const inbox = await deciding.openLive('/approvals');
    const record = await deciding.openLive(`/records/${first}`);
    await record.locator('#act-release summary').click();
    await record.locator('#reason-release').fill('Not sent yet.');
    const field = inbox.locator(`#reason-${asked}`);
    await field.fill('Half a sen');
    // Looked at twice: ages have grown, and nothing is new.
    for (const page of [inbox, record]) {
        for (let i = 0; i < 2; i++) await page.waitForResponse(/load_sheet/);
        assert.equal(await page.locator('.newer button').count(), 0);
    }
    await ask(stage, other, second, 'Two.');
    const news = inbox.getByRole('button', { name: 'This page has changed' });
    await news.waitFor();
    assert.equal(await inbox.locator('[data-compensation]').count(), 1, 'nothing moves by itself');
    await news.click();
    await inbox.locator('[data-compensation]').nth(1).waitFor();
    assert.equal(await field.inputValue(), 'Half a sen');
    await field.press('End');
    await field.pressSequentially('tence.');
    await inbox.getByRole('button', { name: 'Approve' }).first().click();
    await inbox.waitForURL('**/approvals?done=*');
    const [row] = await stage.database.rows(`SELECT reason FROM compensation_log WHERE compensation_id = $1 AND event = 'approved'`, [
        asked,
    ]);
    assert.equal(row.reason, 'Half a sentence.');
    await record.getByRole('button', { name: 'This page has changed' }).click();
    await record.locator('.record-head .state-failed-retryable').waitFor();
    assert.equal(await record.locator('#reason-release').inputValue(), 'Not sent yet.');
    assert.ok(await record.locator('#act-release').evaluate(details => details.open));
});
