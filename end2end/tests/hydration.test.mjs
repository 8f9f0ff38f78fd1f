// Every page is taken over by its script without a word on the console, in both languages, sizes and themes; each is drawn.
import assert from 'node:assert/strict';
import { Api } from '../lib/api.mjs';
import { DESKTOP, PHONE, hydrated } from '../lib/browser.mjs';
import { artifact, setStage } from '../lib/stage.mjs';
import { until } from '../lib/until.mjs';

const { scene } = setStage('hydration', { settings: { YICI_STUCK_AFTER_SECONDS: '1', YICI_LEASE_SECONDS: '3600' }, prepare });
const PAGES = [
    ['sign-in', undefined, () => '/'],
    ['tasks', 'student1', () => '/tasks'],
    ['task', 'student1', tasks => `/tasks/${tasks[0].id}`],
    ['task-submitted', 'student1', tasks => `/tasks/${tasks[1].id}`],
    ['panel', 'ops1', () => '/panel'],
    ['practice', 'student1', tasks => `/tasks/${tasks.at(-1).id}`],
    ['rewards', 'student1', () => '/rewards'],
    ['records', 'admin1', () => '/records'],
    ['record', 'admin1', () => `/records/${stuck}`],
    ['arrivals', 'ops1', () => '/arrivals?outcome=reused&window=1h'],
    ['approvals', 'ops1', () => '/approvals'],
    ['bulk', 'admin1', () => `/bulks/new?id=${stuck}`],
    ['audit', 'ops1', () => '/audit'],
    ['progress', 'teacher1', () => '/progress'],
    ['new-task', 'teacher1', () => '/progress/new'],
    ['pupil', 'teacher1', () => '/progress/students/1'],
    ['pupil-task', 'teacher1', tasks => `/progress/students/1/tasks/${tasks[1].id}`],
    ['report', 'parent1', () => '/report'],
    ['forbidden', 'student1', () => '/panel'],
];
let tasks;
let stuck;
/** Each page is seen in both themes at both sizes and in both languages, in four views. */
const VIEWS = [
    { lang: 'zh', theme: 'light', viewport: DESKTOP },
    { lang: 'zh', theme: 'dark', viewport: PHONE },
    { lang: 'en', theme: 'dark', viewport: DESKTOP },
    { lang: 'en', theme: 'light', viewport: PHONE },
];

for (const [name, account, path] of PAGES) {
    scene(`${name} hydrates without a message in both languages, sizes and themes`, async stage => {
        for (const view of VIEWS) {
            const person = await stage.enter(view);
            if (name === 'forbidden') person.allow(/the server responded with a status of 403/);
            if (account) await person.signIn(account);
            const page = await person.open(path(tasks));
            await hydrated(page);
            if (name === 'panel') await page.locator('.dot-live').waitFor();
            if (name.startsWith('task')) await page.locator('main h1').waitFor();
            assert.equal(await page.locator('html').getAttribute('lang'), view.lang === 'zh' ? 'zh-CN' : 'en');
            assert.equal(await page.locator('.skeleton').count(), 0, 'the first HTML is complete');
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
            assert.ok(wide <= 0, `nothing sticks out sideways, but ${wide} pixels do at ${view.viewport.width}`);
            const file = `${name}-${view.lang}-${view.viewport.width}-${view.theme}.png`;
            await page.screenshot({ path: await artifact('pages', file), fullPage: true });
        }
    });
}

/** Puts something on the pages: submissions, duplicates, a conflict, records that are stuck. */
async function prepare(stage) {
    const api = await Api.signIn(stage.server.url, 'student1');
    tasks = await api.openTasks();
    for (let i = 0; i < 3; i++) await api.submit(tasks[1], { content: '第 86 页：x = 3。\n1. 2x + 1 = 7\n2. x = 3' });
    for (let n = 2; n < 12; n++) {
        const other = await Api.signIn(stage.server.url, `student${n}`);
        const [task] = await other.openTasks();
        await other.submit(task);
        if (n % 3 === 0) await other.submit(task);
        if (n % 5 === 0) await other.submit(task, { client: 'other', content: 'Other words.' });
    }
    const release = await stage.database.holdSubmissions();
    const late = [];
    for (let n = 12; n < 15; n++) {
        const other = await Api.signIn(stage.server.url, `student${n}`);
        late.push(other.submit((await other.openTasks())[0]).catch(() => {}));
    }
    await until('the server executes', () => stage.database.isSubmissionAwaited());
    await stage.server.kill();
    await release();
    await Promise.all(late);
    await stage.server.start();
    const [row] = await stage.database.rows(`SELECT id::text FROM idempotency_record WHERE state = 'PROCESSING' LIMIT 1`);
    stuck = row.id;
}
