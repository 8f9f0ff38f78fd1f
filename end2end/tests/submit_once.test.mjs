// Impatient people: whatever they press, one submission and ten points.
import assert from 'node:assert/strict';
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';
import { setStage } from '../lib/stage.mjs';
import { SUBMIT, TaskPage } from '../lib/task_page.mjs';
import { gate, until } from '../lib/until.mjs';

const { scene } = setStage('submit_once');
const TEXT = 'Written once.';

/** A student with an open assignment, at a browser. */
async function atTask(stage, name, options) {
    const api = await stage.api(name);
    const [task] = await api.openTasks();
    const person = await stage.enterAs(name, options);
    return { api, task, person, page: await person.openTask(task) };
}

/** One row, one key, ten points. */
async function isOnce(stage, { api, task }) {
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(rows.map(row => row.content), [TEXT]);
    assert.equal((await stage.database.keys(api.account.id)).length, 1, 'one intent has one key');
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);
}

scene('a double click submits once', async stage => {
    const at = await atTask(stage, 'student2');
    await at.page.write(TEXT);
    await at.page.button.dblclick();
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('Enter twice on the button submits once', async stage => {
    const at = await atTask(stage, 'student3');
    await at.page.write(TEXT);
    await at.page.button.focus();
    await at.page.page.keyboard.press('Enter');
    await at.page.page.keyboard.press('Enter');
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('Ctrl+Enter twice in the editor submits once', async stage => {
    const at = await atTask(stage, 'student4');
    await at.page.write(TEXT);
    await at.page.editor.press('Control+Enter');
    await at.page.page.keyboard.press('Control+Enter');
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('ten presses while the first is under way are one request', async stage => {
    const at = await atTask(stage, 'student5');
    const held = gate();
    let requests = 0;
    await at.page.page.route(SUBMIT, async route => {
        requests += 1;
        await held.opened;
        await route.continue();
    });
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.reaches('submitting');
    // The first byte has not left: what a page needs to go on after anything is kept already.
    const kept = await at.page.page.evaluate(() => JSON.stringify(Object.entries(localStorage)));
    assert.match(kept, /yici:intent:/);
    for (const part of [TEXT, 'submitting', await at.page.page.locator('input[name=client_id]').inputValue()]) {
        assert.ok(kept.includes(part), part);
    }
    for (let i = 0; i < 9; i++) await at.page.button.click();
    held.open();
    await at.page.isSubmitted(TEXT);
    assert.equal(requests, 1);
    await isOnce(stage, at);
});

scene('a press, a reload before the answer and another press submit once', async stage => {
    const at = await atTask(stage, 'student6');
    const arrived = gate();
    // The server has the request; its answer never reaches the page.
    await at.page.page.route(SUBMIT, async route => {
        await route.fetch();
        arrived.open();
    });
    await at.page.write(TEXT);
    await at.page.button.click();
    await arrived.opened;
    await at.page.page.unrouteAll({ behavior: 'ignoreErrors' });
    await at.page.reload();
    await at.page.pressIfThere();
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('a press before the page is hydrated and one after it are one intent', async stage => {
    const api = await stage.api('student7');
    const [task] = await api.openTasks();
    const person = await stage.enterAs('student7');
    const held = gate();
    await person.context.route('**/pkg/*.js', async route => {
        await held.opened;
        await route.continue();
    });
    const tab = await person.context.newPage();
    await tab.goto(`/tasks/${task.id}`, { waitUntil: 'commit' });
    const page = new TaskPage(tab);
    await page.write(TEXT);
    await page.button.click();
    await tab.waitForURL('**/tasks/*?request=*', { waitUntil: 'commit' });
    held.open();
    await page.isSubmitted(TEXT);
    const again = new TaskPage(await person.open(`/tasks/${task.id}`));
    await again.pressIfThere();
    await again.isSubmitted(TEXT);
    await isOnce(stage, { api, task });
});

scene('two tabs that press at the same time submit once', async stage => {
    const at = await atTask(stage, 'student8');
    await at.page.write(TEXT);
    const other = await at.person.openTask(at.task);
    await until('the other tab shows the draft', async () => (await other.editor.inputValue()) === TEXT);
    await Promise.all([at.page.press(), other.press()]);
    await at.page.isSubmitted(TEXT);
    await other.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('two tabs that press at the same time with different words submit once', async stage => {
    const at = await atTask(stage, 'student15');
    const other = await at.person.openTask(at.task);
    await at.page.write(TEXT);
    await other.write('Other words.');
    await Promise.all([at.page.press(), other.press()]);
    for (const { page } of [at.page, other]) await page.locator('.phase-submitted, .phase-refused').waitFor();
    const rows = await stage.database.submissions(at.api.account.id, at.task.id);
    assert.equal(rows.length, 1);
    assert.ok([TEXT, 'Other words.'].includes(rows[0].content));
    assert.equal(await at.api.points(), POINTS_PER_SUBMISSION);
});

scene('words that lose against other words under the same key are told that the others count', async stage => {
    const at = await atTask(stage, 'student16');
    const key = await at.page.page.locator('input[name=key]').inputValue();
    const release = await stage.database.holdSubmissions();
    let first;
    try {
        first = at.api.submit(at.task, { key, content: 'Other words.' });
        await until('the other words are under way', () => stage.database.isSubmissionAwaited());
        await at.page.write(TEXT);
        const refused = at.page.page.waitForResponse(SUBMIT);
        // The page may ask what became of the other words, while that is not decided.
        const asked = at.page.page.waitForResponse('**/api/fn/request_status*', { timeout: 2_000 }).catch(() => {});
        await at.page.button.click();
        await refused;
        await asked;
    } finally {
        await release();
    }
    assert.equal((await first).status, 201);
    await at.page.reaches('refused');
    await at.page.submitted.filter({ hasText: 'Other words.' }).waitFor({ timeout: 5_000 });
    assert.doesNotMatch(await at.page.line.textContent(), /Press once more/);
    assert.equal(await at.page.editor.inputValue(), TEXT, 'what was typed stays');
    const rows = await stage.database.submissions(at.api.account.id, at.task.id);
    assert.deepEqual(rows.map(row => row.content), ['Other words.']);
});

scene('words that were typed in one tab survive the submission of another tab', async stage => {
    const at = await atTask(stage, 'student17');
    const other = await at.person.openTask(at.task);
    await other.write('Other words.');
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.isSubmitted(TEXT);
    await other.isSubmitted(TEXT);
    const seen = [await other.page.locator('main').innerText(), await other.editor.inputValue()].join('\n');
    assert.match(seen, /Other words\./);
});

scene('a tab follows the submission of another tab by itself', async stage => {
    const at = await atTask(stage, 'student9');
    const other = await at.person.openTask(at.task);
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.isSubmitted(TEXT);
    await other.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('two tabs share the phase: what one sent and nobody knows of, the other knows as well', async stage => {
    const at = await atTask(stage, 'student20');
    at.person.allow(/Failed to load resource: net::ERR_/);
    const other = await at.person.openTask(at.task);
    // Nothing reaches the server, so that only the browser itself can have told the other tab.
    await at.person.context.route('**/api/fn/*', route => route.abort('connectionreset'));
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.reaches('unknown');
    await other.reaches('unknown');
    await until('the other tab shows the text', async () => (await other.editor.inputValue()) === TEXT);
    assert.ok(await other.editor.evaluate(area => area.readOnly));
    await at.person.context.unroute('**/api/fn/*');
    await at.page.isSubmitted(TEXT);
    await other.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('two tabs that go back and forward and press again submit once', async stage => {
    const at = await atTask(stage, 'student10');
    const { person, task } = at;
    const other = await person.openTask(task);
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.isSubmitted(TEXT);
    for (const page of [at.page, other]) {
        await page.page.locator('.crumb a').click();
        await page.page.waitForURL('**/tasks');
        await page.page.locator('.task-row', { hasText: task.title }).locator('.state-succeeded').waitFor();
        await page.page.goBack();
        await page.isSubmitted(TEXT);
        await page.page.goForward();
        await page.page.waitForURL('**/tasks');
        await page.page.goBack();
        await page.isSubmitted(TEXT);
        await page.pressIfThere();
        await page.isSubmitted(TEXT);
    }
    await isOnce(stage, at);
});

scene('a page that the browser brings back after another document shows that it is submitted', async stage => {
    const at = await atTask(stage, 'student14');
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.isSubmitted(TEXT);
    await at.page.page.goto('/problems');
    await at.page.page.goBack();
    await at.page.isSubmitted(TEXT);
    await at.page.pressIfThere();
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('another device with the same words is told that it is submitted, with other words that the first counts', async stage => {
    const at = await atTask(stage, 'student11');
    const same = await (await stage.enterAs('student11')).openTask(at.task);
    const different = await (await stage.enterAs('student11')).openTask(at.task);
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.isSubmitted(TEXT);
    await same.write(TEXT);
    await same.button.click();
    await same.isSubmitted(TEXT);
    await different.write('Other words.');
    await different.button.click();
    await different.reaches('refused');
    await different.submitted.filter({ hasText: TEXT }).waitFor();
    await stage.draw(different.page, 'refused');
    assert.equal(await different.editor.inputValue(), 'Other words.', 'what was typed stays');
    const rows = await stage.database.submissions(at.api.account.id, at.task.id);
    assert.deepEqual(rows.map(row => row.content), [TEXT]);
    assert.equal(await at.api.points(), POINTS_PER_SUBMISSION);
});

scene('each practice attempt is one submission, and the next one begins with a press', async stage => {
    const api = await stage.api('student12');
    const task = (await api.tasks()).find(task => task.kind === 'practice');
    const person = await stage.enterAs('student12');
    const page = await person.openTask(task);
    const held = gate();
    await page.page.route(
        SUBMIT,
        async route => {
            await held.opened;
            await route.continue();
        },
        { times: 1 },
    );
    await page.write('First.');
    await page.button.dblclick();
    held.open();
    await page.isSubmitted('First.');
    await page.button.filter({ hasText: 'Begin the next attempt' }).click();
    await page.editor.waitFor();
    await page.hydrated();
    assert.equal(await page.editor.inputValue(), '');
    await page.write('Second.');
    await page.button.click();
    await page.isSubmitted('Second.');
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(rows.map(row => [row.submit_version, row.content]), [
        [1, 'First.'],
        [2, 'Second.'],
    ]);
    assert.equal(await api.points(), 2 * POINTS_PER_SUBMISSION);
});

scene('the second half of a slow double click does not begin the next attempt', async stage => {
    const api = await stage.api('student18');
    const task = (await api.tasks()).find(task => task.kind === 'practice');
    const page = await (await stage.enterAs('student18')).openTask(task);
    await page.write('First.');
    await page.page.evaluate(() => (window.isSameDocument = true));
    // The answer is there before the second click is.
    await page.button.dblclick({ delay: 200 });
    await page.button.filter({ hasText: 'Begin the next attempt' }).waitFor({ timeout: 5_000 });
    await page.isSubmitted('First.');
    assert.ok(await page.page.evaluate(() => window.isSameDocument));
});

scene('after a refusal that was read the next press is a new intent; one before that means nothing', async stage => {
    const at = await atTask(stage, 'student19');
    const close = moment => stage.database.rows(`UPDATE task SET closes_at = ${moment} WHERE id = $1`, [at.task.id]);
    const sent = [];
    at.page.page.on('request', request => {
        if (request.url().includes('/submit_task')) sent.push(new URLSearchParams(request.postData()).get('key'));
    });
    await close("now() - interval '1 minute'");
    try {
        await at.page.write(TEXT);
        await at.page.button.click();
        // As soon as it is there, which nobody has read yet.
        await at.page.page.evaluate(async () => {
            while (!document.querySelector('.phase .phase-refused')) await new Promise(requestAnimationFrame);
            document.querySelector('form.answer button.primary').click();
        });
        await at.page.line.filter({ hasText: 'The task is closed' }).waitFor();
    } finally {
        await close('NULL');
    }
    const read = Date.now() + 1_000;
    await until('it was read', () => Date.now() >= read);
    assert.equal(sent.length, 1, 'the press before that was not sent');
    await at.page.button.click();
    await at.page.isSubmitted(TEXT);
    assert.deepEqual(sent, [sent[0], `${sent[0]}:2`]);
    assert.deepEqual(await stage.database.keys(at.api.account.id), sent);
    assert.equal((await stage.database.submissions(at.api.account.id, at.task.id)).length, 1);
});

scene('a blank answer is not sent, and the page says why', async stage => {
    const at = await atTask(stage, 'student13');
    let requests = 0;
    await at.page.page.route(SUBMIT, async route => {
        requests += 1;
        await route.continue();
    });
    await at.page.write('   ');
    await at.page.button.click();
    await at.page.reaches('refused');
    assert.equal(requests, 0);
    assert.deepEqual(await stage.database.keys(at.api.account.id), []);
});
