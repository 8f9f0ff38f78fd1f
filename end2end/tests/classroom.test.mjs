// Students, teachers and parents: the same truth on every screen, soon and without a reload; tasks made and reopened once.
import assert from 'node:assert/strict';
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';
import { DESKTOP, PHONE, hydrated, signInByHand } from '../lib/browser.mjs';
import { setStage } from '../lib/stage.mjs';
import { TaskPage } from '../lib/task_page.mjs';
import { until } from '../lib/until.mjs';
import { WORDS } from '../lib/words.mjs';

const { scene } = setStage('classroom', { settings: { YICI_DEMO_STUDENTS: '60' } });

const rowOf = (page, name) => page.locator('.grid-table tbody tr').filter({ has: page.getByRole('link', { name, exact: true }) });

scene('a submission is seen by the teacher and the parent without a reload, and all agree', async stage => {
    const api = await stage.api('student1');
    const [task] = await api.openTasks();
    const [teacher, parent, student] = await Promise.all([
        stage.enterAs('teacher1'),
        stage.enterAs('parent1', { viewport: PHONE }),
        stage.enterAs('student1', { viewport: PHONE }),
    ]);
    const [progress, report, list] = await Promise.all([
        teacher.openLive('/progress'),
        parent.openLive('/report'),
        student.openLive('/tasks'),
    ]);
    for (const page of [progress, report, list]) await page.locator('.freshness .dot-live').waitFor();
    await api.submit(task);
    const cell = rowOf(progress, 'student1').locator('td').first();
    await cell.locator('.state-succeeded').waitFor();
    await rowOf(progress, 'student1').getByText('1 of 4 handed in').waitFor();
    await progress.locator('.rate').filter({ hasText: task.title }).getByText('1 of 60 handed in').waitFor();
    for (const page of [report, list]) {
        const row = page.locator('.task-row').filter({ hasText: task.title });
        await row.locator('.state-succeeded').waitFor();
        assert.match(await row.textContent(), new RegExp(`\\+${POINTS_PER_SUBMISSION} points`));
    }
    assert.match(await report.locator('.task-row').first().textContent(), /Assignment.*Due/);
});

scene('what students do is told to their teacher and their parent by itself, once, and to nobody else', async stage => {
    const news = page => page.locator('.news li');
    for (const [lang, said] of [['en', 'handed in'], ['zh', '提交了']]) {
        const open = async (name, path) => (await stage.enterAs(name, { lang, viewport: PHONE })).openLive(path);
        const pages = [await open('teacher1', '/progress'), await open('parent1', '/report')];
        const api = await stage.api('student1');
        const task = (await api.openTasks())[0];
        for (let i = 0; i < 2; i++) await api.submit(task, { content: `Told in ${lang}.` });
        for (const page of pages) {
            const line = news(page).filter({ hasText: `student1 ${said}` }).filter({ hasText: task.title });
            await line.first().waitFor();
            assert.equal(await line.count(), 1);
            await line.locator('time').waitFor();
        }
        const stranger = await stage.api('student20');
        const [other] = await stranger.openTasks();
        await stranger.submit(other, { client: lang });
        await news(pages[0]).filter({ hasText: `student20 ${said}` }).first().waitFor();
        assert.equal(await news(pages[1]).filter({ hasText: 'student20' }).count(), 0, 'only of the own child');
        await stage.draw(pages[0], `news-teacher-${lang}`);
        await stage.draw(pages[1], `news-parent-${lang}`);
    }
});

scene('a page out of sight does not look, and looks at once when it is seen again', async stage => {
    const teacher = await stage.enterAs('teacher1');
    const page = await teacher.openLive('/progress');
    await page.locator('.freshness .dot-live').waitFor();
    const show = seen =>
        page.evaluate(seen => {
            Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => (seen ? 'visible' : 'hidden') });
            document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
        }, seen);
    await show(false);
    let looks = 0;
    page.on('request', request => (looks += request.url().includes('/load_progress') ? 1 : 0));
    const other = await teacher.openLive('/progress');
    // The other tab looks; when it has done so twice, this one would have looked too.
    let others = 0;
    other.on('response', response => (others += response.url().includes('/load_progress') ? 1 : 0));
    await until('the other tab looks twice', () => others >= 2);
    assert.equal(looks, 0);
    await show(true);
    await until('it looks at once', () => looks > 0, 2_000);
});

scene('a teacher assigns a task with an impatient finger: it is one task, and the students have it', async stage => {
    const teacher = await stage.enterAs('teacher1', { viewport: PHONE, lang: 'zh' });
    const page = await teacher.openLive('/progress');
    await page.locator('a.button.primary').click();
    await page.waitForURL('**/progress/new*');
    await hydratedForm(page);
    await page.locator('#title').fill('读书笔记');
    await page.locator('#instructions').fill('读第三章。\n写 100 字。');
    await page.locator('#due_local').fill('2999-01-05T18:00');
    await page.locator('form.new-task button.primary').dblclick();
    await page.waitForURL('**/progress?class=*');
    await page.locator('.done-line').getByText('读书笔记').waitFor();
    await page.locator('.rate').filter({ hasText: '读书笔记' }).waitFor();
    const rows = await stage.database.rows("SELECT id::text, due_at FROM task WHERE title = '读书笔记'");
    assert.equal(rows.length, 1);
    assert.equal(rows[0].due_at.toISOString(), '2999-01-05T10:00:00.000Z', 'the time was that of the teacher');
    const student = await stage.enterAs('student2');
    const list = await student.openLive('/tasks');
    await list.locator('.task-row').filter({ hasText: '读书笔记' }).waitFor();

    // Going back and sending the same again is the same task; the form has forgotten it by now.
    const again = await teacher.openLive('/progress/new');
    await hydratedForm(again);
    assert.equal(await again.locator('#title').inputValue(), '');
});

/** The form is the script's once it has named the reader's time zone. */
const hydratedForm = page => page.getByText('Asia/Shanghai').waitFor();

scene('what a teacher has typed survives a reload and an answer that is lost, and becomes one task', async stage => {
    const teacher = await stage.enterAs('teacher1');
    teacher.allow(/Failed to load resource/);
    const page = await teacher.openLive('/progress/new');
    await hydratedForm(page);
    await page.locator('#title').fill('Kept title');
    await page.locator('#instructions').fill('Kept words.');
    await page.reload();
    await hydratedForm(page);
    await until('the words are back', async () => (await page.locator('#instructions').inputValue()) === 'Kept words.');
    // The server does the work, and the answer is lost.
    await page.route('**/api/fn/create_task', async route => {
        await route.fetch({ maxRedirects: 0 });
        await route.abort('connectionreset');
    }, { times: 1 });
    await page.locator('form.new-task button.primary').click();
    await until('the work was done', async () => (await stage.database.rows("SELECT FROM task WHERE title = 'Kept title'")).length === 1);
    // The browser shows its own page about the broken connection first.
    await page.waitForURL(/^chrome-error:/);
    await page.goto('/progress/new');
    await hydratedForm(page);
    await until('the words are back', async () => (await page.locator('#title').inputValue()) === 'Kept title');
    await page.locator('form.new-task button.primary').click();
    await page.waitForURL('**/progress?class=*');
    assert.equal((await stage.database.rows("SELECT FROM task WHERE title = 'Kept title'")).length, 1);
});

scene('a task that would close before it is due is refused in words, and nothing typed is lost', async stage => {
    const teacher = await stage.enterAs('teacher1');
    const page = await teacher.openLive('/progress/new');
    await hydratedForm(page);
    await page.locator('#title').fill('Wrong way round');
    await page.locator('#instructions').fill('x');
    await page.locator('#due_local').fill('2999-01-05T18:00');
    await page.locator('#closes_local').fill('2999-01-04T18:00');
    await page.locator('form.new-task button.primary').click();
    await page.locator('.form-error').getByText('close before it is due').waitFor();
    await until('the words are back', async () => (await page.locator('#title').inputValue()) === 'Wrong way round');
    assert.equal((await stage.database.rows("SELECT FROM task WHERE title = 'Wrong way round'")).length, 0);
});

scene('a teacher looks into a submission and reopens the task; the student, who has the page open, goes on with it', async stage => {
    const api = await stage.api('student3');
    const [task] = await api.openTasks();
    await api.submit(task, { content: 'The first version.' });
    const student = await stage.enterAs('student3', { viewport: PHONE });
    const page = await student.openTask(task);
    await page.isSubmitted('The first version.');

    const teacher = await stage.enterAs('teacher1');
    const board = await teacher.openLive('/progress?q=student3');
    await rowOf(board, 'student3').locator('td a').first().click();
    await board.waitForURL('**/progress/students/*/tasks/*');
    await board.locator('.submitted .content').filter({ hasText: 'The first version.' }).waitFor();
    await board.locator('.reopening summary').click();
    await board.getByText('may hand in this task once more').waitFor();
    await board.locator('.reopening button.primary').dblclick();
    await board.locator('.done-line').getByText('version 2').waitFor();
    assert.equal((await stage.database.rows('SELECT FROM task_reopening')).length, 1);
    assert.equal(await board.locator('.reopening').count(), 0, 'there is nothing more to reopen');

    await page.page.locator('.page-head .state-pending').waitFor();
    await page.write('The second version.');
    await page.button.click();
    await page.isSubmitted('The second version.');
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(rows.map(row => [row.submit_version, row.content]), [
        [1, 'The first version.'],
        [2, 'The second version.'],
    ]);
    assert.equal(await api.points(), POINTS_PER_SUBMISSION, 'a later version earns no points');
    await board.locator('.submitted .content').filter({ hasText: 'The second version.' }).waitFor();
    await board.locator('.attempts .task-link').last().click();
    await board.locator('.submitted .content').filter({ hasText: 'The first version.' }).waitFor();
});

scene('without JavaScript a teacher reads, searches, assigns and reopens', async stage => {
    const api = await stage.api('student4');
    const [task] = await api.openTasks();
    await api.submit(task, { content: 'Plain words.' });
    const teacher = await stage.enterAs('teacher1', { javaScriptEnabled: false });
    const page = await teacher.open('/progress');
    assert.equal(await page.locator('.grid-table tbody tr').count(), 50);
    await page.locator('.pager .next').click();
    await page.waitForURL('**after=*');
    assert.equal(await page.locator('.grid-table tbody tr').count(), 10);
    await page.locator('.pager a').first().click();
    await page.locator('#q').fill('student4');
    await page.locator('.search button').click();
    await page.waitForURL('**q=student4*');
    await rowOf(page, 'student4').locator('td a').first().click();
    await page.locator('.submitted .content').filter({ hasText: 'Plain words.' }).waitFor();
    await page.locator('.reopening summary').click();
    await page.locator('.reopening button.primary').click();
    await page.locator('.done-line').getByText('version 2').waitFor();

    await page.goto('/progress/new');
    await page.locator('#title').fill('Plain task');
    await page.locator('#instructions').fill('Read.\nWrite.');
    await page.locator('#due_local').fill('2999-01-05T18:00');
    await page.locator('form.new-task button.primary').click();
    await page.locator('.done-line').getByText('Plain task').waitFor();
    const [row] = await stage.database.rows("SELECT due_at, instructions FROM task WHERE title = 'Plain task'");
    assert.equal(row.due_at.toISOString(), '2999-01-05T18:00:00.000Z', 'without a script it is UTC, and the page says so');
    assert.equal(row.instructions, 'Read.\nWrite.');
});

for (const lang of ['en', 'zh']) {
    scene(`the second device is told when and from where it was submitted, and keeps its own text (${lang})`, async stage => {
        const name = lang === 'en' ? 'student5' : 'student6';
        const api = await stage.api(name);
        const [task] = await api.openTasks();
        const phone = await stage.enterAs(name, {
            lang,
            viewport: PHONE,
            userAgent: 'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36',
        });
        const desk = await stage.enterAs(name, { lang, viewport: DESKTOP });
        const [first, second] = [await phone.openTask(task), await desk.openTask(task)];
        await second.write('Other words.');
        await first.write('The words that count.');
        await first.button.click();
        await first.isSubmitted('The words that count.');
        await first.line.filter({ hasText: WORDS[lang].thisDevice }).waitFor();
        await second.press();
        await second.reaches('refused');
        await second.submitted.filter({ hasText: 'The words that count.' }).waitFor();
        await second.line.filter({ hasText: WORDS[lang].alreadySubmitted }).waitFor();
        await second.line.filter({ hasText: lang === 'en' ? 'Chrome on Android' : 'Android 上的 Chrome' }).waitFor();
        assert.match(await second.line.textContent(), /\d\d:\d\d/);
        await second.page.locator('.page-head .state-succeeded').waitFor();
        await second.page.locator('form.answer button[aria-disabled=true]').waitFor();
        assert.equal(await second.editor.inputValue(), 'Other words.');
        await second.press();
        await second.reload();
        await second.hydrated();
        await until('the other words are still there', async () => (await second.editor.inputValue()) === 'Other words.');
        assert.equal((await stage.database.submissions(api.account.id, task.id)).length, 1);
        await stage.draw(second.page, `second-device-${lang}`);
    });
}

scene('a practice attempt that another device has used becomes the next one with one more press', async stage => {
    const api = await stage.api('student7');
    const task = (await api.tasks()).find(task => task.kind === 'practice');
    const student = await stage.enterAs('student7');
    const page = await student.openTask(task);
    const teacher = await stage.enterAs('teacher1');
    const pupil = await teacher.openLive(`/progress/students/${api.account.id}/tasks/${task.id}`);
    await page.write('From the tablet.');
    await api.submit(task, { content: 'From the phone.' });
    await page.button.click();
    let sent = 0;
    page.page.on('request', request => (sent += request.url().includes('/submit_task') ? 1 : 0));
    // A press that comes before anybody can have read why means nothing.
    const pressed = await page.page.evaluate(async () => {
        while (!document.querySelector('.phase .phase-refused')) await new Promise(requestAnimationFrame);
        document.querySelector('form.answer button.primary').click();
        return Date.now();
    });
    await page.line.filter({ hasText: 'it is the next attempt' }).waitFor();
    assert.equal(await page.editor.inputValue(), 'From the tablet.');
    await page.page.waitForFunction(pressed => Date.now() - pressed > 1_000, pressed);
    assert.equal(sent, 0);
    await page.button.click();
    await page.isSubmitted('From the tablet.');
    await page.page.locator('.attempts .task-row').nth(1).waitFor();
    assert.equal(await page.page.locator('.attempts .task-row').filter({ hasText: '+10' }).count(), 2);
    await page.page.locator('.task-facts').first().filter({ hasText: /Attempts: 2.*\+20 points/ }).waitFor();
    // The teacher's page, which was open all the time, comes to know it by itself.
    await pupil.locator('.task-facts').first().filter({ hasText: /Attempts: 2.*\+20 points/ }).waitFor();
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(rows.map(row => [row.submit_version, row.content]), [
        [1, 'From the phone.'],
        [2, 'From the tablet.'],
    ]);
});

scene('somebody who is signed out sees no name, signs in and comes back to the task, which goes on by itself', async stage => {
    const api = await stage.api('student8');
    const [task] = await api.openTasks();
    const student = await stage.enterAs('student8', { viewport: PHONE });
    student.allow(/status of 401/);
    const page = await student.openTask(task);
    await page.write('Kept through a sign-in.');
    await student.context.clearCookies({ name: 'yici_session' });
    await page.button.click();
    await page.line.filter({ hasText: 'You have been signed out' }).waitFor();
    await page.page.locator('.who').waitFor({ state: 'detached' });
    assert.equal(await page.button.textContent(), WORDS.en.submit);
    await page.page.locator('form.answer button[aria-disabled=true]').waitFor();
    await stage.draw(page.page, 'signed-out-390');
    await page.line.getByRole('link').click();
    await signInByHand(page.page, 'student8');
    await page.page.waitForURL(`**/tasks/${task.id}`);
    const back = new TaskPage(page.page);
    await back.isSubmitted('Kept through a sign-in.');
    assert.equal((await stage.database.submissions(api.account.id, task.id)).length, 1);
});

scene('on a shared device the text of one never goes in under the name of another', async stage => {
    const [mine, theirs] = [await stage.api('student12'), await stage.api('student13')];
    const [task] = await mine.openTasks();
    const student = await stage.enterAs('student12');
    student.allow(/status of 401/);
    const page = await student.openTask(task);
    await page.write('Mine alone.');
    await student.signIn('student13');
    await page.button.click();
    await page.line.filter({ hasText: 'You have been signed out' }).waitFor();
    assert.deepEqual(await stage.database.submissions(theirs.account.id), []);
    await student.signIn('student12');
    await page.reload();
    await page.isSubmitted('Mine alone.');
    assert.equal((await stage.database.submissions(mine.account.id, task.id)).length, 1);
    assert.deepEqual(await stage.database.submissions(theirs.account.id), []);
});

scene('the list says what this device still holds: a draft, and what is not confirmed', async stage => {
    const api = await stage.api('student9');
    const [first, second] = await api.openTasks();
    const student = await stage.enterAs('student9', { viewport: PHONE });
    student.allow(/Failed to load resource/);
    const page = await student.openTask(first);
    await page.write('Half a thought');
    const other = await student.openTask(second);
    await other.page.route('**/api/fn/*', route => route.abort('connectionfailed'));
    await other.write('Sent into the void.');
    await other.button.click();
    await other.reaches('unknown');
    await other.page.close();
    const list = await student.openLive('/tasks');
    await list.locator('.task-row').filter({ hasText: first.title }).getByText('Draft on this device').waitFor();
    const open = list.locator('.task-row').filter({ hasText: second.title });
    await open.getByText('Not confirmed yet').waitFor();
    await open.locator('a.task-link').click();
    const back = new TaskPage(list);
    await back.isSubmitted('Sent into the void.');
    const again = await student.openTask(first);
    await until('the draft is back', async () => (await again.editor.inputValue()) === 'Half a thought');
});

scene('on a phone nothing of the class is cut, and no time is a stop of the Tab key', async stage => {
    for (const n of [10, 11]) {
        const api = await stage.api(`student${n}`);
        await api.submit((await api.openTasks())[0]);
    }
    const teacher = await stage.enterAs('teacher1', { viewport: PHONE });
    const page = await teacher.openLive('/progress');
    await hydrated(page);
    const cut = await page.evaluate(() =>
        [...document.querySelectorAll('main *')].filter(element => {
            const box = element.getBoundingClientRect();
            return box.width > 2 && (box.right > innerWidth + 1 || box.left < -1);
        }).length,
    );
    assert.equal(cut, 0);
    assert.equal(await page.locator('time[tabindex]').count(), 0);
    assert.ok((await page.locator('time').count()) > 0);
});
