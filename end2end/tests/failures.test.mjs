// Servers that die and answers that are lost: the page finds out by itself, and the effect is there once.
import assert from 'node:assert/strict';
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';
import { DESKTOP, PHONE } from '../lib/browser.mjs';
import { setStage } from '../lib/stage.mjs';
import { SUBMIT } from '../lib/task_page.mjs';
import { gate, until } from '../lib/until.mjs';

const { scene } = setStage('failures', { settings: { YICI_LEASE_SECONDS: '2', YICI_SCAN_INTERVAL_SECONDS: '1' } });
const TEXT = 'Kept through everything.';
/** What a browser says about a server that is not there; the page itself must stay quiet. */
const UNREACHABLE = /Failed to load resource: net::ERR_/;

async function atTask(stage, name, options) {
    const api = await stage.api(name);
    const [task] = await api.openTasks();
    const person = await stage.enterAs(name, options);
    const page = await person.openTask(task);
    const sent = [];
    page.page.on('request', request => {
        if (request.url().includes('/api/fn/submit_task')) {
            sent.push(new URLSearchParams(request.postData() ?? '').get('key'));
        }
    });
    return { api, task, person, page, sent };
}

async function isOnce(stage, { api, task, sent }) {
    const rows = await stage.database.submissions(api.account.id, task.id);
    assert.deepEqual(rows.map(row => row.content), [TEXT]);
    const keys = await stage.database.keys(api.account.id);
    assert.equal(keys.length, 1, 'one intent has one key');
    assert.deepEqual(sent.filter(key => key !== keys[0]), [], 'every request carried it');
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);
}

scene('a server that is killed before the request arrives: the page submits by itself once it is back', async stage => {
    const at = await atTask(stage, 'student1');
    at.person.allow(UNREACHABLE);
    const held = gate();
    await at.page.page.route(
        SUBMIT,
        async route => {
            await held.opened;
            await route.continue();
        },
        { times: 1 },
    );
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.reaches('submitting');
    await stage.server.kill();
    held.open();
    await at.page.reaches('unknown');
    assert.equal(await at.page.editor.inputValue(), TEXT);
    await stage.server.start();
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('a server that is killed while it executes: the page submits by itself, and the record is taken over', async stage => {
    const at = await atTask(stage, 'student2');
    at.person.allow(UNREACHABLE);
    stage.mayComplain = true;
    const release = await stage.database.holdSubmissions();
    try {
        await at.page.write(TEXT);
        await at.page.button.click();
        await at.page.reaches('submitting');
        await until('the server executes', () => stage.database.isSubmissionAwaited());
        await stage.server.kill();
    } finally {
        await release();
    }
    await at.page.reaches('unknown');
    await stage.server.start();
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('an answer that is lost after the work was done: the page passes through unknown to submitted', async stage => {
    const at = await atTask(stage, 'student4');
    at.person.allow(UNREACHABLE);
    const asked = gate();
    await at.page.page.route(
        SUBMIT,
        async route => {
            await route.fetch();
            await route.abort('connectionreset');
        },
        { times: 1 },
    );
    await at.page.page.route('**/api/fn/request_status*', async route => {
        await asked.opened;
        await route.continue();
    });
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.reaches('unknown');
    const rows = await stage.database.submissions(at.api.account.id, at.task.id);
    assert.equal(rows.length, 1, 'the work was done');
    assert.ok(await at.page.editor.evaluate(area => area.readOnly), 'what was sent cannot be edited');
    asked.open();
    await at.page.isSubmitted(TEXT);
    assert.equal(at.sent.length, 1);
    await isOnce(stage, at);
});

scene('a server that is silent for longer than three seconds: unknown, and a late answer still counts', async stage => {
    const at = await atTask(stage, 'student5');
    const release = await stage.database.holdSubmissions();
    try {
        await at.page.write(TEXT);
        await at.page.button.click();
        await at.page.reaches('submitting');
        await at.page.reaches('unknown');
    } finally {
        await release();
    }
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('a server that asks for patience is not asked before', async stage => {
    const at = await atTask(stage, 'student11');
    const PATIENCE_MS = 3_000;
    let told;
    await at.page.page.route(
        SUBMIT,
        async route => {
            const busy = { bucket: null, status: 503, submission: null, code: 'temporary-failure', detail: null, retry_after: 3 };
            await route.fulfill({ json: busy });
            told = Date.now();
        },
        { times: 1 },
    );
    const asked = at.page.page.waitForRequest('**/api/fn/request_status*');
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.reaches('unknown');
    await asked;
    assert.ok(Date.now() - told >= PATIENCE_MS, `asked after ${Date.now() - told} ms`);
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('a page that was closed in unknown goes on when it is opened again', async stage => {
    const at = await atTask(stage, 'student6');
    at.person.allow(UNREACHABLE);
    await at.page.page.route('**/api/fn/*', route => route.abort('connectionfailed'));
    await at.page.write(TEXT);
    await at.page.button.click();
    await at.page.reaches('unknown');
    await at.page.page.close();
    const page = await at.person.openTask(at.task);
    await page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('a browser without network says so, and submits by itself once it is back', async stage => {
    const at = await atTask(stage, 'student7');
    at.person.allow(UNREACHABLE);
    await at.page.write(TEXT);
    await at.person.context.setOffline(true);
    await at.page.button.click();
    await at.page.line.filter({ hasText: 'You are offline' }).waitFor();
    await stage.draw(at.page.page, 'offline');
    assert.deepEqual(await stage.database.submissions(at.api.account.id, at.task.id), []);
    await at.person.context.setOffline(false);
    await at.page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('a person who was signed out keeps the text, and it is submitted after the next sign-in', async stage => {
    const at = await atTask(stage, 'student8');
    at.person.allow(/status of 401/);
    await at.page.write(TEXT);
    await at.person.context.clearCookies({ name: 'yici_session' });
    await at.page.button.click();
    await at.page.line.filter({ hasText: 'You have been signed out' }).waitFor();
    await stage.draw(at.page.page, 'signed-out');
    await at.person.signIn('student8');
    const page = await at.person.openTask(at.task);
    await page.isSubmitted(TEXT);
    await isOnce(stage, at);
});

scene('the panel says that it lost the server, and is live again when it is back', async stage => {
    const operator = await stage.enterAs('ops1');
    operator.allow(UNREACHABLE);
    operator.allow(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
    const panel = await operator.open('/panel');
    await panel.locator('.dot-live').waitFor();
    await stage.server.kill();
    await panel.locator('.dot-lost').waitFor();
    await stage.draw(panel, 'panel-lost');
    await stage.server.start();
    await panel.locator('.dot-live').waitFor();
});

for (const [size, viewport] of [
    ['desktop', DESKTOP],
    ['phone', PHONE],
]) {
    scene(`the button keeps its place and its size through all phases (${size})`, async stage => {
        const at = await atTask(stage, size === 'desktop' ? 'student9' : 'student10', { viewport });
        at.person.allow(UNREACHABLE);
        const [sending, asking] = [gate(), gate()];
        await at.page.page.route(
            SUBMIT,
            async route => {
                await sending.opened;
                await route.fetch();
                await route.abort('connectionreset');
            },
            { times: 1 },
        );
        await at.page.page.route('**/api/fn/request_status*', async route => {
            await asking.opened;
            await route.continue();
        });
        await at.page.write(TEXT);
        const places = { idle: await at.page.button.boundingBox() };
        await at.page.button.click();
        await at.page.reaches('submitting');
        places.submitting = await at.page.button.boundingBox();
        await stage.draw(at.page.page, `submitting-${size}`);
        sending.open();
        await at.page.reaches('unknown');
        places.unknown = await at.page.button.boundingBox();
        await stage.draw(at.page.page, `unknown-${size}`);
        asking.open();
        await at.page.isSubmitted(TEXT);
        places.submitted = await at.page.button.boundingBox();
        await stage.draw(at.page.page, `submitted-${size}`);
        for (const [phase, place] of Object.entries(places)) assert.deepEqual(place, places.idle, phase);
    });
}
