// Every page of students, teachers and parents, in every phase, from 360 to 1440 pixels, in both themes and languages: nothing sticks
// out, nothing is cut off, and an audit of accessibility finds nothing. Each is drawn.
import assert from 'node:assert/strict';
import { DESKTOP, PHONE } from '../lib/browser.mjs';
import { pageFaults } from '../lib/page_faults.mjs';
import { RewardsPage } from '../lib/rewards_page.mjs';
import { artifact, setStage } from '../lib/stage.mjs';
import { SUBMIT } from '../lib/task_page.mjs';
import { gate } from '../lib/until.mjs';

const { scene } = setStage('school_pages');
const NARROW = { width: 360, height: 740 };
const VIEWS = [
    { lang: 'en', theme: 'light', viewport: PHONE },
    { lang: 'zh', theme: 'dark', viewport: PHONE },
    { lang: 'zh', theme: 'light', viewport: NARROW },
    { lang: 'en', theme: 'dark', viewport: NARROW },
    { lang: 'zh', theme: 'dark', viewport: DESKTOP },
    { lang: 'en', theme: 'light', viewport: DESKTOP },
];
const TEXT = '第 86 页：x = 3。\n1. 2x + 1 = 7';

let n = 0;
for (const view of VIEWS) {
    const named = `${view.lang}-${view.viewport.width}-${view.theme}`;
    scene(`the pages of a school are whole (${named})`, async stage => {
        const found = [];
        const look = async (page, what) => {
            await page.screenshot({ path: await artifact('school', `${what}-${named}.png`), fullPage: true });
            for (const fault of await pageFaults(page)) found.push(`${what}: ${fault}`);
        };
        const name = `student${++n}`;
        const api = await stage.api(name);
        const [first, second, third] = await api.openTasks();
        const practice = (await api.tasks()).find(task => task.kind === 'practice');
        await look(await (await stage.enter(view)).openLive('/'), 'sign-in');

        const student = await stage.enterAs(name, view);
        student.allow(/Failed to load resource/);
        await student.open('/tasks').then(page => look(page, 'tasks-new'));
        const task = await student.openTask(first);
        await look(task.page, 'task-idle');
        await task.write(TEXT);
        await look(task.page, 'task-draft');
        const [sending, asking] = [gate(), gate()];
        await task.page.route(SUBMIT, async route => {
            await sending.opened;
            await route.fetch();
            await route.abort('connectionreset');
        });
        await task.page.route('**/api/fn/request_status*', async route => {
            await asking.opened;
            await route.continue().catch(() => {});
        });
        await task.button.click();
        await task.reaches('submitting');
        await look(task.page, 'task-submitting');
        sending.open();
        await task.reaches('unknown');
        await look(task.page, 'task-unknown');
        asking.open();
        await task.isSubmitted(TEXT);
        await look(task.page, 'task-submitted');

        const other = await student.openTask(second);
        await other.write('My other words.');
        await api.submit(second, { content: 'The words of the phone.', client: 'web-android-chrome-1' });
        await other.button.click();
        await other.reaches('refused');
        await other.submitted.waitFor();
        await look(other.page, 'task-refused');
        for (const version of [1, 2, 3]) await api.submit({ ...practice, submit_version: version }, { content: `Attempt ${version}: ${'word '.repeat(40)}` });
        await look((await student.openTask(practice)).page, 'practice');
        const half = await student.openTask(third);
        await half.write('Half a thought');
        await look(await student.openLive('/tasks'), 'tasks');
        await student.context.clearCookies({ name: 'yici_session' });
        await half.button.click();
        await half.line.getByRole('link').waitFor();
        await look(half.page, 'task-signed-out');
        await student.signIn(name);

        const rewards = await RewardsPage.open(student);
        await look(rewards.page, 'rewards');
        await rewards.button.click();
        await rewards.reaches('submitted');
        await rewards.bought.first().waitFor();
        await look(rewards.page, 'rewards-done');

        const teacher = await stage.enterAs('teacher1', view);
        await look(await teacher.openLive('/progress'), 'progress');
        await look(await teacher.openLive('/progress?q=nobody'), 'progress-none');
        await look(await teacher.openLive('/progress/new?refused=closes-before-due'), 'new-task-refused');
        const pupil = `/progress/students/${api.account.id}`;
        await look(await teacher.openLive(pupil), 'pupil');
        const detail = await teacher.openLive(`${pupil}/tasks/${first.id}`);
        await detail.locator('.reopening summary').click();
        await look(detail, 'pupil-task');
        await look(await teacher.openLive(`${pupil}/tasks/${practice.id}`), 'pupil-practice');
        const parent = await stage.enterAs('parent1', view);
        await look(await parent.openLive('/report'), 'report');
        assert.deepEqual(found, []);
    });
}
