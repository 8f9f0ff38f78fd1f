// Every fault of a network × every move of a person: one row, the right phase, the right words.
import assert from 'node:assert/strict';
import { POINTS_PER_SUBMISSION } from '../lib/api.mjs';
import { DESKTOP, PHONE } from '../lib/browser.mjs';
import { FAULTS, FaultProxy } from '../lib/fault_proxy.mjs';
import { setStage } from '../lib/stage.mjs';
import { TaskPage } from '../lib/task_page.mjs';
import { until } from '../lib/until.mjs';
import { WORDS } from '../lib/words.mjs';

const { scene } = setStage('faults', { settings: { YICI_DEMO_STUDENTS: '120', YICI_RATE_LIMIT_PER_ADDRESS: '0' } });
/** What a browser says about answers that do not come; the page itself must stay quiet. */
const UNREACHABLE = /Failed to load resource: (net::ERR_|the server responded with a status of 50[23])/;
const SUBMIT = /\/api\/fn\/submit_task/;
const ASK = /\/api\/fn\/request_status/;

/** What somebody does while the result is not known; each gives the page that is looked at in the end. */
const MOVES = {
    wait: async ({ page }) => page,
    'click again': async ({ page, text }) => {
        for (let i = 0; i < 3; i++) await page.press();
        assert.equal(await page.editor.inputValue(), text);
        return page;
    },
    reload: async at => {
        await at.page.reload();
        await at.page.hydrated();
        await goesOn(at, at.page);
        return at.page;
    },
    back: async at => {
        await at.page.page.locator('.crumb a').click();
        await at.page.page.waitForURL('**/tasks');
        await at.page.page.goBack();
        await at.page.hydrated();
        await goesOn(at, at.page);
        return at.page;
    },
    'second tab': async at => {
        const other = await at.person.openTask(at.task);
        await goesOn(at, other);
        await other.press();
        return other;
    },
    'second device': async at => {
        await at.other.press();
        await isDone(at, at.other);
        return at.page;
    },
    'close and reopen': async at => {
        await at.page.page.close();
        const page = await at.person.openTask(at.task);
        await goesOn(at, page);
        return page;
    },
};

async function enter({ stage, proxy, name, lang, viewport }) {
    const person = await stage.enter({ baseURL: proxy.url, lang, viewport });
    person.allow(UNREACHABLE);
    return person.signIn(name);
}

/** The page knows what was sent, says that it is not known, and keeps the text. */
async function goesOn({ lang, text }, page) {
    await page.reaches('unknown');
    assert.ok((await page.line.textContent()).includes(WORDS[lang].unknown), await page.line.textContent());
    await until('the text is back', async () => (await page.editor.inputValue()) === text);
    assert.ok(await page.editor.evaluate(area => area.readOnly), 'what was sent cannot be edited');
}

/** The end: submitted, in words, once, with nothing left to press. */
async function isDone({ lang, text }, page) {
    await page.isSubmitted(text);
    const words = WORDS[lang];
    assert.ok((await page.line.textContent()).includes(words.submitted), await page.line.textContent());
    await page.page.locator('.page-head .state-succeeded').waitFor();
    await page.page.locator('form.answer button.primary[aria-disabled=true], form.answer button.primary[hidden]').waitFor({ state: 'attached' });
}

async function play(stage, proxy, fault, lang, move, n) {
    const name = `student${n}`;
    // Phones first; a move in each fault is played at a desk, another one each time.
    const moves = Object.keys(MOVES);
    const isAtDesk = lang === 'en' && moves.indexOf(move) === Object.keys(FAULTS).indexOf(fault) % moves.length;
    const viewport = isAtDesk ? DESKTOP : PHONE;
    const at = { stage, proxy, name, lang, viewport, text: `Once and only once, case${n}end.` };
    const api = await stage.api(name);
    [at.task] = await api.openTasks();
    at.person = await enter(at);
    at.page = await at.person.openTask(at.task);
    await at.page.write(at.text);
    if (move === 'second device') {
        at.other = await (await enter(at)).openTask(at.task);
        await at.other.write(at.text);
    }
    const injected = proxy.inject(fault, { path: SUBMIT, holds: `case${n}end` });
    // Nobody learns what became of it before the move is made.
    const key = encodeURIComponent(`task_submit:${at.task.id}:${api.account.id}:`);
    const asking = proxy.inject('delay', { path: ASK, holds: key, times: Infinity });
    await at.page.button.click();
    await injected.struck;
    await at.page.reaches('unknown');
    await goesOn(at, at.page);
    const page = await MOVES[move](at);
    asking.release();
    await isDone(at, page);
    await injected.end();
    await asking.end();
    await page.reload();
    await isDone(at, page);

    const rows = await stage.database.submissions(api.account.id, at.task.id);
    assert.deepEqual(rows.map(row => row.content), [at.text], 'one row');
    const keys = await stage.database.keys(api.account.id);
    // A device that had heard of it by itself did not send anything.
    const most = move === 'second device' ? 2 : 1;
    assert.ok(keys.length >= 1 && keys.length <= most, keys.join(' '));
    assert.equal(await api.points(), POINTS_PER_SUBMISSION);
    const task = (await api.tasks()).find(task => task.id === at.task.id);
    assert.deepEqual([task.status, task.attempts, task.points], ['submitted', 1, POINTS_PER_SUBMISSION]);
    await at.person.context.close();
}

let n = 0;
for (const fault of Object.keys(FAULTS)) {
    for (const lang of ['en', 'zh']) {
        scene(`${fault}: whatever the person does, one row, the right phase, the right words (${lang})`, async stage => {
            const proxy = await FaultProxy.start(stage.server.url);
            try {
                const cases = Object.keys(MOVES).map(move => [move, ++n]);
                const ends = await Promise.allSettled(cases.map(([move, n]) => play(stage, proxy, fault, lang, move, n)));
                const failed = ends.flatMap((end, i) =>
                    end.status === 'rejected' ? [`${cases[i][0]} (student${cases[i][1]}): ${end.reason.stack}`] : [],
                );
                assert.deepEqual(failed, []);
            } finally {
                await proxy.stop();
            }
        });
    }
}
