// Everything that matters works without JavaScript.
import assert from 'node:assert/strict';
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';
import { signInByHand } from '../lib/browser.mjs';
import { setStage } from '../lib/stage.mjs';
import { TaskPage } from '../lib/task_page.mjs';

const { scene } = setStage('no_script');
const TEXT = '第一行\nSecond line.';

scene('without JavaScript a student signs in, submits, posts the form twice and reloads: one submission', async stage => {
    const api = await stage.api('student1');
    const student = await stage.enter({ javaScriptEnabled: false });
    const tab = await student.open('/');
    await signInByHand(tab, 'student1');
    await tab.waitForURL('**/tasks');
    assert.equal(await tab.locator('.task-row').count(), (await api.tasks()).length);
    const row = tab.locator('.task-row').filter({ has: tab.locator('.state-pending') }).first();
    await row.locator('a.task-link').click();
    await tab.waitForURL('**/tasks/*');

    const page = new TaskPage(tab);
    await page.write(TEXT);
    const form = await tab.locator('form.answer').evaluate(form => Object.fromEntries(new FormData(form)));
    await page.button.click();
    await tab.waitForURL('**/tasks/*?request=*');
    await page.isSubmitted(TEXT);

    // The browser's "send again", and the answer loaded anew.
    const again = await student.context.request.post('/api/fn/submit_task', {
        form: { ...form, content: TEXT.replace('\n', '\r\n') },
        headers: { accept: 'text/html' },
    });
    assert.equal(again.status(), 200);
    assert.match(again.url(), /\/tasks\/\d+\?request=/);
    assert.match(await again.text(), /phase-submitted/);
    await page.reload();
    await page.isSubmitted(TEXT);

    const rows = await stage.database.submissions(api.account.id);
    assert.deepEqual(rows.map(row => row.content), [TEXT]);
    assert.deepEqual(await stage.database.keys(api.account.id), [form.key]);
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);
});

scene('without JavaScript going back to the filled form and sending it again changes nothing', async stage => {
    const api = await stage.api('student2');
    const [task] = await api.openTasks();
    const student = await stage.enterAs('student2', { javaScriptEnabled: false });
    const page = new TaskPage(await student.open(`/tasks/${task.id}`));
    await page.write(TEXT);
    await page.button.click();
    await page.page.waitForURL('**?request=*');
    await page.page.goBack();
    if (await page.editor.isVisible()) {
        await page.write(TEXT);
        await page.button.click();
        await page.page.waitForURL('**?request=*');
    }
    await page.isSubmitted(TEXT);
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(rows.map(row => row.content), [TEXT]);
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);
});

scene('without JavaScript two tabs with different words submit once, and the second is told why', async stage => {
    const api = await stage.api('student3');
    const [task] = await api.openTasks();
    const student = await stage.enterAs('student3', { javaScriptEnabled: false });
    const first = new TaskPage(await student.open(`/tasks/${task.id}`));
    const second = new TaskPage(await student.open(`/tasks/${task.id}`));
    await first.write(TEXT);
    await first.button.click();
    await first.isSubmitted(TEXT);
    await second.write('Other words.');
    await second.button.click();
    await second.page.waitForURL('**/tasks/*?*');
    await second.submitted.filter({ hasText: 'Second line.' }).waitFor();
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(rows.map(row => row.content), [TEXT]);
});

scene('without JavaScript a practice goes on to its next attempt', async stage => {
    const api = await stage.api('student4');
    const task = (await api.tasks()).find(task => task.kind === 'practice');
    const student = await stage.enterAs('student4', { javaScriptEnabled: false });
    for (const text of ['First.', 'Second.']) {
        const page = new TaskPage(await student.open(`/tasks/${task.id}`));
        await page.write(text);
        await page.button.click();
        await page.page.waitForURL('**?request=*');
        await page.isSubmitted(text);
    }
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(rows.map(row => [row.submit_version, row.content]), [
        [1, 'First.'],
        [2, 'Second.'],
    ]);
});

scene('without JavaScript the language is switched on the same page, and signing out ends the session', async stage => {
    const student = await stage.enterAs('student5', { javaScriptEnabled: false });
    const tab = await student.open('/tasks');
    assert.equal(await tab.locator('html').getAttribute('lang'), 'en');
    await tab.getByRole('button', { name: '中文' }).click();
    await tab.locator('html[lang=zh-CN]').waitFor();
    assert.equal(new URL(tab.url()).pathname, '/tasks');
    assert.equal(await tab.locator('h1').textContent(), '我的任务');
    await tab.getByRole('button', { name: 'English' }).click();
    await tab.locator('html[lang=en]').waitFor();

    await tab.getByRole('button', { name: 'Sign out' }).click();
    await tab.locator('.sign-in').waitFor();
    await tab.goto('/tasks');
    await tab.locator('.sign-in').waitFor();
    assert.equal(new URL(tab.url()).pathname, '/');
});

scene('without JavaScript the panel, the progress and the report are complete pages', async stage => {
    for (const [name, path, landmark] of [
        ['ops1', '/panel', '[data-counter=new] [data-value=window]'],
        ['teacher1', '/progress', 'tbody tr'],
        ['parent1', '/report', '.task-row'],
    ]) {
        const person = await stage.enterAs(name, { javaScriptEnabled: false });
        const tab = await person.open(path);
        await tab.locator(landmark).first().waitFor();
        assert.equal(await tab.locator('.skeleton').count(), 0);
    }
});
