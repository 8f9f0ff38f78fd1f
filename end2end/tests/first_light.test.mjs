// From sign-in to a submitted task, and what others see of it.
import assert from 'node:assert/strict';
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';
import { hydrated, signInByHand } from '../lib/browser.mjs';
import { setStage } from '../lib/stage.mjs';
import { TaskPage } from '../lib/task_page.mjs';

const { scene } = setStage('first_light');
const TEXT = '日月之行，若出其中。\nThe line of the sun and the moon.';

scene('a student signs in and submits, a reload keeps it, and the panel counts one without a reload', async stage => {
    const operator = await stage.enterAs('ops1');
    const panel = await operator.open('/panel');
    const news = panel.locator('[data-counter=new] [data-value=window]');
    await panel.locator('.dot-live').waitFor();
    assert.equal(await news.textContent(), '0');
    await panel.evaluate(() => (window.isSameDocument = true));

    const student = await stage.enter();
    const page = await student.openLive('/');
    await signInByHand(page, 'student1');
    await page.waitForURL('**/tasks');
    await hydrated(page);
    await page.locator('a.task-link').first().click();
    await page.waitForURL('**/tasks/*');
    const task = new TaskPage(page);
    await task.hydrated();
    await task.write(TEXT);
    await task.button.click();
    await task.isSubmitted(TEXT);
    await task.line.filter({ hasText: /^Submitted\s+\d\d:\d\d · this device · \+10 points$/ }).waitFor();

    await news.filter({ hasText: /^1$/ }).waitFor();
    assert.ok(await panel.evaluate(() => window.isSameDocument), 'the panel was not loaded anew');
    assert.equal(await panel.locator('[data-counter=reused] [data-value=window]').textContent(), '0');

    await task.reload();
    await task.isSubmitted(TEXT);
    await page.locator('.crumb a').click();
    await page.locator('.points strong').filter({ hasText: /^10$/ }).waitFor();

    const api = await stage.api('student1');
    const rows = await stage.database.submissions(api.account.id);
    assert.deepEqual(rows.map(row => row.content), [TEXT]);
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);
});

scene('teacher and parent see the submission that the student sees', async stage => {
    const child = await stage.api('student1');
    const submitted = (await child.tasks()).filter(task => task.status === 'submitted');
    assert.equal(submitted.length, 1);

    const parent = await stage.enterAs('parent1');
    const report = await parent.openLive('/report');
    const row = report.locator('.task-row', { hasText: submitted[0].title });
    await row.locator('.state-succeeded').waitFor();
    assert.equal(await report.locator('.state-succeeded').count(), 1);

    const teacher = await stage.enterAs('teacher1');
    const progress = await teacher.openLive('/progress');
    const line = progress.locator('tbody tr').filter({ has: progress.locator('th a', { hasText: /^student1$/ }) });
    await line.locator('.state-succeeded').first().waitFor();
    assert.equal(await line.locator('.state-succeeded').count(), 1);
    assert.equal(await progress.locator('tbody .state-succeeded').count(), 1);
});
