// Students, teachers and parents are told in the same way how fresh what they see is, and when it is not.
import assert from 'node:assert/strict';
import { PHONE } from '../lib/browser.mjs';
import { setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('freshness', { settings: { YICI_DEMO_STUDENTS: '5' } });
const UNREACHABLE = /Failed to load resource: net::ERR_/;
const SAYS = {
    en: { live: /^Live\s+Data \d+ s old$/, lost: 'Reconnecting', loaded: 'As of loading' },
    zh: { live: /^实时\s+数据 \d+ 秒前$/, lost: '正在重连', loaded: '载入时的数据' },
};

/** Every page of a school that shows how something stands. */
async function pagesOf(stage) {
    const api = await stage.api('student1');
    const [task] = await api.tasks();
    const pupil = `/progress/students/${api.account.id}`;
    return [
        ['student1', ['/tasks', `/tasks/${task.id}`, '/rewards']],
        ['teacher1', ['/progress', pupil, `${pupil}/tasks/${task.id}`]],
        ['parent1', ['/report']],
    ].flatMap(([name, paths]) => paths.map(path => ({ name, path })));
}

for (const [lang, words] of Object.entries(SAYS)) {
    scene(`every page says how old it is, that it cannot look, and that it can again (${lang})`, async stage => {
        for (const { name, path } of await pagesOf(stage)) {
            const person = await stage.enterAs(name, { lang, viewport: PHONE });
            person.allow(UNREACHABLE);
            const page = await person.openLive(path);
            const line = page.locator('.freshness');
            const says = async what => (await line.innerText()).replaceAll('\n', ' ').match(what);
            await line.locator('.dot-live').waitFor();
            await until(`${path} says how old it is`, () => says(words.live));
            await page.waitForFunction(() => / [2-9]\d* /.test(document.querySelector('.pulse-age').textContent), undefined, { timeout: 9_000 });
            await person.context.setOffline(true);
            // It looks at once when somebody comes back to it, and does not wait for its turn.
            const wake = () => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange', { bubbles: true })));
            await wake();
            await line.locator('.dot-lost').waitFor();
            assert.ok((await line.innerText()).includes(words.lost), path);
            await person.context.setOffline(false);
            await line.locator('.dot-live').waitFor();
            await until(`${path} is fresh again`, () => says(words.live));
            await person.context.close();
        }
    });
}

scene('without JavaScript each page says that it is as it was loaded', async stage => {
    for (const { name, path } of await pagesOf(stage)) {
        const person = await stage.enterAs(name, { javaScriptEnabled: false });
        const page = await person.open(path);
        assert.ok((await page.locator('.freshness').innerText()).includes(SAYS.en.loaded), path);
        await person.context.close();
    }
});
