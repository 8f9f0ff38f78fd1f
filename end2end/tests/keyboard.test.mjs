// A keyboard is enough.
import assert from 'node:assert/strict';
import { PASSWORD } from '../lib/api.mjs';
import { hydrated, tabTo } from '../lib/browser.mjs';
import { setStage } from '../lib/stage.mjs';
import { TaskPage } from '../lib/task_page.mjs';

const { scene } = setStage('keyboard');

scene('a student signs in and submits with Tab and Enter only', async stage => {
    const student = await stage.enter();
    const page = await student.openLive('/');
    await tabTo(page, '#username');
    await page.keyboard.type('student1');
    await tabTo(page, '#password');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/tasks');
    await hydrated(page);
    await tabTo(page, 'a.task-link');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/tasks/*');
    const task = new TaskPage(page);
    await task.hydrated();
    await tabTo(page, 'textarea');
    await page.keyboard.type('Typed.');
    await tabTo(page, 'form.answer button.primary');
    await page.keyboard.press('Enter');
    await task.isSubmitted('Typed.');
    const api = await stage.api('student1');
    assert.equal((await stage.database.submissions(api.account.id)).length, 1);
    assert.ok(await page.evaluate(() => document.activeElement !== document.body), 'the focus is not lost');
});

scene('the skip link is first, appears with the focus and leads to the content', async stage => {
    const student = await stage.enterAs('student2');
    for (const path of ['/', '/tasks']) {
        const page = await student.openLive(path);
        await tabTo(page, 'a.skip');
        const box = await page.locator('a.skip').boundingBox();
        assert.ok(box.width > 40 && box.height > 20, 'it is seen');
        await page.keyboard.press('Enter');
        await page.waitForFunction(() => document.activeElement?.tagName === 'MAIN');
        await page.keyboard.press('Tab');
        assert.ok(await page.evaluate(() => document.querySelector('main').contains(document.activeElement)));
    }
});

scene('the panel is paused and its window is changed by keyboard', async stage => {
    const operator = await stage.enterAs('ops1');
    const page = await operator.open('/panel');
    await page.locator('.dot-live').waitFor();
    await tabTo(page, '.pulse button');
    await page.keyboard.press('Enter');
    await page.locator('.pulse button[aria-pressed=true]').waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.dot-live').waitFor();
    await tabTo(page, '.choices a[href*="24h"]');
    await page.keyboard.press('Enter');
    await page.locator('.choices a[aria-current][href*="24h"]').waitFor();
    await page.locator('.dot-live').waitFor();
});
