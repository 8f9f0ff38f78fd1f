// Messages that their receiver does not take: dead letters stand on the record's page, and an admin lets them be tried again.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { PHONE } from '../lib/browser.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';
import { Webhook } from '../lib/webhook.mjs';

const hook = await Webhook.start();
after(() => hook.stop());
const { scene } = setStage('messages', { settings: { YICI_WEBHOOK_URL: hook.url } });

/** A submission whose message nobody takes any more. */
async function leaveDeadLetter(stage, name) {
    hook.status = 500;
    const api = await stage.api(name);
    const [task] = await api.openTasks();
    await api.submit(task);
    const of = `record_id = (SELECT id FROM idempotency_record WHERE subject_id = ${Number(api.account.id)})`;
    await until('it was tried', async () => (await stage.database.rows(`SELECT FROM outbox WHERE ${of} AND attempts > 0`)).length === 1);
    // As many failures as it takes, but for the last one.
    await stage.database.rows(`UPDATE outbox SET attempts = 15, next_attempt_at = now() WHERE ${of}`);
    const dead = await until('it is a dead letter', async () => {
        const rows = await stage.database.rows(`SELECT id::text, record_id::text FROM outbox WHERE ${of} AND dead_at IS NOT NULL`);
        return rows[0];
    });
    return { ...dead, name };
}

const delivered = (stage, { id }) => stage.database.rows('SELECT FROM outbox WHERE id = $1 AND delivered_at IS NOT NULL', [id]);
const told = (stage, { record_id: id }) =>
    stage.database.rows('SELECT FROM notification n JOIN outbox o ON o.id = n.outbox_id WHERE o.record_id = $1', [id]);

for (const [lang, words] of Object.entries({
    en: { title: 'Dead letters', done: 'The message is tried again', late: 'no dead letter any more' },
    zh: { title: '死信', done: '消息正在重新投递', late: '已不是死信' },
})) {
    for (const script of [true, false]) {
        scene(`an admin lets a dead letter be delivered again, with a reason, once (${lang}, ${script ? 'with' : 'without'} JavaScript)`, async stage => {
            const letter = await leaveDeadLetter(stage, `student${(lang === 'en' ? 1 : 3) + (script ? 0 : 1)}`);
            assert.equal((await delivered(stage, letter)).length, 0);
            const options = { lang, viewport: PHONE, javaScriptEnabled: script };
            const operator = await stage.enterAs('ops1', options);
            const seen = await operator.open(`/records/${letter.record_id}`);
            const shown = seen.locator(`[data-letter="${letter.id}"]`);
            await seen.getByRole('heading', { name: words.title }).waitFor();
            assert.match(await shown.textContent(), /500/, 'why the last attempt failed');
            assert.equal(await shown.locator('form').count(), 0, 'ops see and do not act');

            const admin = await stage.enterAs('admin1', options);
            const [page, late] = [await admin.open(`/records/${letter.record_id}`), await admin.open(`/records/${letter.record_id}`)];
            const replay = async (tab, reason) => {
                await tab.locator('.letter summary').click();
                await tab.locator('[data-act=replay] textarea').fill(reason);
                await tab.locator('[data-act=replay] button.primary').click();
                await tab.waitForURL('**/records/*?*');
            };
            await page.locator('.letter summary').click();
            await stage.draw(page, `dead-letter-${lang}`);
            await page.locator('.letter summary').click();
            await page.locator('.letter summary').waitFor();
            hook.status = 204;
            await replay(page, 'The receiver is back.');
            await page.locator('.notice-good', { hasText: words.done }).waitFor();
            await replay(late, 'Me too.');
            await late.locator('.notice-bad', { hasText: words.late }).waitFor();
            await until('it is delivered', async () => (await delivered(stage, letter)).length === 1);
            assert.equal(await page.locator('.letter').count(), 0);

            const of = hook.deliveries.filter(one => one.body.id === letter.id);
            assert.deepEqual([...new Set(of.map(one => one.key))], [`outbox:${letter.id}`], 'always the same key');
            assert.ok(of.every(one => /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/.test(one.traceparent)));
            // The teacher, and for student1 the parent: once each, however often it was sent.
            assert.equal((await told(stage, letter)).length, letter.name === 'student1' ? 2 : 1);
            const audit = await admin.open(`/audit?object=outbox/${letter.id}`);
            const lines = await audit.locator('tbody tr').allTextContents();
            assert.equal(lines.length, 2, 'the refused attempt too');
            for (const reason of ['The receiver is back.', 'Me too.']) assert.ok(lines.some(line => line.includes(reason)), reason);
        });
    }
}
