// Phones that sleep, tabs that are brought back, networks that return: every page looks at once, and what is unknown is asked at once.
import assert from 'node:assert/strict';
import { PHONE } from '../lib/browser.mjs';
import { setStage } from '../lib/stage.mjs';
import { SUBMIT } from '../lib/task_page.mjs';
import { gate } from '../lib/until.mjs';

const { scene } = setStage('waking');
const UNREACHABLE = /Failed to load resource: net::ERR_/;
const ASK = '**/api/fn/request_status*';
/** Sooner than any page looks by itself in the state that it is in. */
const AT_ONCE_MS = 1_500;

/** What a browser tells a page that comes back; tests cannot put a machine to sleep. */
const WAYS = {
    'it is in sight again': () => document.dispatchEvent(new Event('visibilitychange', { bubbles: true })),
    'the browser brings it back': () => window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })),
    'the network is back': () => window.dispatchEvent(new Event('online')),
};

for (const [way, wake] of Object.entries(WAYS)) {
    scene(`${way}: every page looks at once`, async stage => {
        const api = await stage.api('student1');
        const [task] = await api.tasks();
        const pupil = `/progress/students/${api.account.id}`;
        for (const [name, path, look] of [
            ['student1', '/tasks', 'list_tasks'],
            ['student1', `/tasks/${task.id}`, 'load_task'],
            ['student1', '/rewards', 'load_rewards'],
            ['teacher1', '/progress', 'load_progress'],
            ['teacher1', '/progress', 'list_notifications'],
            ['teacher1', pupil, 'load_pupil'],
            ['teacher1', `${pupil}/tasks/${task.id}`, 'load_pupil_task'],
            ['parent1', '/report', 'load_report'],
        ]) {
            const person = await stage.enterAs(name, { viewport: PHONE });
            const page = await person.openLive(path);
            await page.locator('.freshness .dot-live').waitFor();
            // It was loaded just now: there are seconds until it looks by itself.
            const looked = page.waitForRequest(`**/api/fn/${look}*`, { timeout: AT_ONCE_MS });
            await page.evaluate(wake);
            await looked.catch(error => assert.fail(`${path} did not ${look}: ${error}`));
            await person.context.close();
        }
    });

    scene(`${way}: what is unknown is asked at once and not after the rest of the pause`, async stage => {
        const name = `student${2 + Object.keys(WAYS).indexOf(way)}`;
        const api = await stage.api(name);
        const [task] = await api.openTasks();
        const person = await stage.enterAs(name, { viewport: PHONE });
        person.allow(UNREACHABLE);
        const page = await person.openTask(task);
        const tired = gate();
        let asked = 0;
        await page.page.route(SUBMIT, route => route.abort('connectionreset'));
        await page.page.route(ASK, route => {
            asked += 1;
            // After the third question the pause is four seconds or more.
            if (asked === 3) tired.open();
            return asked <= 3 ? route.abort('connectionreset') : route.continue();
        });
        await page.write('Awake.');
        await page.button.click();
        await tired.opened;
        await page.reaches('unknown');
        await page.page.unroute(SUBMIT);
        await page.page.waitForTimeout(300); // the third question's end is the beginning of the pause
        assert.equal(asked, 3);
        const again = page.page.waitForRequest(ASK, { timeout: AT_ONCE_MS });
        await page.page.evaluate(wake);
        await again;
        await page.isSubmitted('Awake.');
        assert.equal((await stage.database.keys(api.account.id)).length, 1);
    });
}

scene('a look that is never answered, as of a phone that fell asleep, holds up none after it', async stage => {
    const parent = await stage.enterAs('parent1', { viewport: PHONE });
    parent.allow(UNREACHABLE);
    const page = await parent.openLive('/report');
    const [asleep, over] = [gate(), gate()];
    await page.route(
        '**/api/fn/load_report*',
        async route => {
            asleep.open();
            await over.opened;
            await route.abort().catch(() => {});
        },
        { times: 1 },
    );
    await page.evaluate(WAYS['it is in sight again']);
    await asleep.opened;
    const api = await stage.api('student1');
    const [task] = await api.openTasks();
    await api.submit(task);
    const looked = page.waitForRequest('**/api/fn/load_report*', { timeout: AT_ONCE_MS });
    await page.evaluate(WAYS['the browser brings it back']);
    await looked;
    await page.locator('.task-row').filter({ hasText: task.title }).locator('.state-succeeded').waitFor();
    over.open();
});
