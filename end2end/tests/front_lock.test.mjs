// A Redis that dies: the panel says what holds meanwhile, and a student notices a delay at most.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { PHONE } from '../lib/browser.mjs';
import { Redis } from '../lib/redis.mjs';
import { setStage } from '../lib/stage.mjs';
import { WORDS } from '../lib/words.mjs';

const redis = await Redis.start();
after(() => redis.kill());
const stages = Object.fromEntries(
    ['degrade', 'refuse'].map(choice => [
        choice,
        setStage(`front_lock_${choice}`, { settings: { REDIS_URL: redis.url, YICI_FRONT_LOCK_ON_FAILURE: choice } }),
    ]),
);
const SAYS = {
    en: { ok: 'Front lock up', degrade: 'submissions go on with Postgres alone', refuse: 'new keys are refused until it is back' },
    zh: { ok: '前置锁正常', degrade: '提交继续，仅由 Postgres 保证', refuse: '恢复之前拒绝新的幂等键' },
};
const TEXT = 'Handed in without Redis.';

for (const [choice, { scene }] of Object.entries(stages)) {
    for (const [lang, says] of Object.entries(SAYS)) {
        scene(`${choice}: the panel says so while Redis is away, and the student's text goes in once (${lang})`, async stage => {
            const operator = await stage.enterAs('ops1', { lang, viewport: PHONE });
            const panel = await operator.open('/panel');
            const glance = panel.locator('.glance-health');
            await glance.filter({ hasText: says.ok }).waitFor();
            const name = lang === 'en' ? 'student1' : 'student2';
            const api = await stage.api(name);
            const [task] = await api.openTasks();
            const page = await (await stage.enterAs(name, { lang, viewport: PHONE })).openTask(task);
            await page.write(TEXT);
            await redis.kill();
            try {
                await page.button.click();
                if (choice === 'refuse') {
                    await page.reaches('unknown');
                    assert.ok((await page.line.textContent()).includes(WORDS[lang].unknown));
                    assert.deepEqual(await stage.database.keys(api.account.id), [], 'nothing was accepted');
                } else {
                    await page.isSubmitted(TEXT);
                }
                await glance.filter({ hasText: says[choice] }).waitFor();
                // Nothing is clear while somebody is refused.
                assert.equal(await glance.locator('.health-clear').count(), choice === 'refuse' ? 0 : 1);
                const wide = await panel.evaluate(() => document.documentElement.scrollWidth - innerWidth);
                assert.ok(wide <= 0, `${wide} pixels stick out`);
                await stage.draw(panel, `front-lock-${choice}-${lang}`);
            } finally {
                await redis.start();
            }
            await page.isSubmitted(TEXT);
            await glance.filter({ hasText: says.ok }).waitFor();
            assert.equal((await stage.database.submissions(api.account.id, task.id)).length, 1);
            assert.equal((await stage.database.keys(api.account.id)).length, 1);
        });
    }
}
