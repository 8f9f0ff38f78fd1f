// Every page of ops with much on it, in both themes and languages, from 360 to 1440 pixels and at twice the size: nothing sticks out,
// nothing is cut off, nothing untranslated, and nothing that an audit of accessibility finds. Each is drawn.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Api } from '../lib/api.mjs';
import { DESKTOP, PHONE } from '../lib/browser.mjs';
import { compensate, isLive, leaveRichRecord, leaveStuck, writeHistory } from '../lib/ops.mjs';
import { artifact, setStage } from '../lib/stage.mjs';

const { scene } = setStage('ops_pages', {
    settings: {
        YICI_STUCK_AFTER_SECONDS: '60',
        YICI_LEASE_SECONDS: '60',
        YICI_SCAN_INTERVAL_SECONDS: '3600',
        YICI_SECOND_PERSON: 'always',
    },
    prepare,
});
/** Half of a desktop's size: what is left of it when everything is shown twice as large. */
const TWICE = { viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 };
const NARROW = { width: 360, height: 740 };
const VIEWS = [
    ['1440-light', 'en', { theme: 'light', viewport: DESKTOP }],
    ['1440-dark', 'zh', { theme: 'dark', viewport: DESKTOP }],
    ['390-dark', 'en', { theme: 'dark', viewport: PHONE }],
    ['390-light', 'zh', { theme: 'light', viewport: PHONE }],
    ['360-light', 'en', { theme: 'light', viewport: NARROW }],
    ['360-dark', 'zh', { theme: 'dark', viewport: NARROW }],
    ['twice-light', 'zh', { theme: 'light', ...TWICE }],
    ['twice-dark', 'en', { theme: 'dark', ...TWICE }],
];
const made = {};
const PAGES = {
    panel: () => '/panel?window=1h',
    records: () => '/records',
    'records-none': () => '/records?subject=nobody&state=UNKNOWN',
    record: () => `/records/${made.rich}`,
    'record-odd': () => `/records/${made.odd}`,
    'record-done': () => `/records/${made.done}`,
    arrivals: () => '/arrivals?outcome=reused&window=1h',
    approvals: () => '/approvals',
    'bulk-new': () => `/bulks/new?id=${made.rich}&id=${made.odd}&id=${made.waiting}`,
    bulk: () => `/bulks/${made.bulk}`,
    audit: () => '/audit',
};

let axe;
for (const [name, path] of Object.entries(PAGES)) {
    scene(`${name} is whole in every size, theme and language`, async stage => {
        axe ??= await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
        const found = [];
        for (const [view, lang, options] of VIEWS) {
            const admin = await stage.enterAs('admin1', { lang, ...options });
            const page = await admin.openLive(path());
            if (name === 'panel') await isLive(page);
            await page.screenshot({ path: await artifact('ops', `${name}-${view}-${lang}.png`), fullPage: true });
            for (const fault of await faults(page, lang)) found.push(`${view} ${lang}: ${fault}`);
            if (name === 'panel') {
                await page.keyboard.press('?');
                await page.locator('dialog.help[open]').waitFor();
                await page.screenshot({ path: await artifact('ops', `help-${view}-${lang}.png`) });
                for (const fault of await faults(page, lang)) found.push(`${view} ${lang}, help: ${fault}`);
            }
            await page.close();
        }
        assert.deepEqual(found, []);
    });
}

scene('a record tells what happened to it in order: claims, each duplicate, the lease, what people did', async stage => {
    const admin = await stage.enterAs('admin1');
    const page = await admin.openLive(`/records/${made.rich}`);
    const told = await page.locator('.timeline > li').evaluateAll(items => items.map(item => item.innerText.replaceAll(/\s+/g, ' ')));
    const expected = [
        /^Arrival, not decided yet .*:\d\d same content Client web-7f31c2 · Trace [0-9a-f]{32}$/,
        /^Claim 1 by .*, epoch 1 /,
        /^Arrival: processing .* answered by the running execution · same content · .* ms Client phone-<b>a<\/b>-٣ · Trace [0-9a-f]{32}$/,
        /^Arrival: processing .* answered by the running execution · same content/,
        /^5\d s$/,
        /^The lease ran out: nobody is presumed to execute it/,
        /^\d min$/,
        /^Arrival: mismatch .* other content · .* ms Client phone/,
        /^\d min$/,
        /^admin1 looked at it; proposed: Execute again .* What is there\? It did not happen/,
        /^Not done: Release, wanted by admin1 .* Late\.$/,
        /^admin1 looked at it; proposed: Execute again .* A look at all of them\./,
    ];
    assert.equal(told.length, expected.length, told.join('\n'));
    for (const [i, pattern] of expected.entries()) assert.match(told[i], pattern);
});

scene('a record that has ended tells its messages and its stored answer, byte by byte', async stage => {
    const [row] = await stage.database.rows('SELECT response_body, response_location FROM idempotency_record WHERE id = $1', [made.done]);
    const admin = await stage.enterAs('admin1');
    await admin.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const page = await admin.openLive(`/records/${made.done}`);
    const answer = page.locator('section[aria-labelledby=answer]');
    assert.equal(await answer.locator('pre').textContent(), row.response_body);
    assert.match(await answer.textContent(), new RegExp(`Status 201 ${row.response_location}`));
    await answer.getByRole('button', { name: 'Copy' }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), row.response_body);
    for (const what of ['Message submission.created written', 'Message submission.created delivered', 'Ended: Succeeded']) {
        await page.locator('.timeline li', { hasText: what }).waitFor();
    }
    assert.equal(await page.locator('.timeline li', { hasText: 'Arrival: reused' }).count(), 3);
    assert.match(await page.locator('section[aria-labelledby=acts]').textContent(), /Nothing: the record has ended/);
});

/** Everything that is wrong with a page as it stands. */
async function faults(page, lang) {
    // Evaluated by the test's own channel: the page's policy forbids any other script, as it should.
    await page.evaluate(axe);
    const found = await page.evaluate(async () => {
        const { violations } = await axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'] });
        return violations.map(one => `axe ${one.id}: ${one.nodes.map(node => node.html.slice(0, 120)).slice(0, 2).join(' | ')}`);
    });
    found.push(...(await page.evaluate(misplaced)));
    if (lang === 'zh') found.push(...(await page.evaluate(untranslated)));
    return found;
}

/** What sticks out of the page, or is cut off in it. Runs in the page. */
function misplaced() {
    const found = [];
    const wide = document.documentElement.scrollWidth - innerWidth;
    if (wide > 0) found.push(`the page is ${wide} pixels too wide`);
    // Shown shortened, and whole where it leads to.
    const mayBeCut = '.trace, .who-name, .visually-hidden, .skip, .scroll, pre, textarea, select, svg, .sparkline';
    for (const element of document.querySelectorAll('body *')) {
        if (element.closest(mayBeCut) || !element.checkVisibility({ visibilityProperty: true })) continue;
        const box = element.getBoundingClientRect();
        const name = `${element.outerHTML.slice(0, 100)}`;
        if (!box.width || !box.height) continue;
        // Where rows are cards their heads are for screen readers only.
        const head = element.closest('thead');
        if (head && getComputedStyle(head).position === 'absolute') continue;
        if (box.left < -0.5 || box.right > innerWidth + 0.5) found.push(`sticks out: ${name}`);
        // Whether it hides what is too much or lets it run over its neighbour.
        if (element.clientWidth && element.scrollWidth > element.clientWidth + 1) found.push(`is cut off or runs over: ${name}`);
    }
    return found;
}

/** Words of the interface that are still English. Runs in the page. */
function untranslated() {
    const found = [];
    // Names that are the same in every language: keys, codes, names of people, what people wrote, units.
    const data = 'code, pre, .key, .odd, .brand, .who-name, [lang=en], time, svg, textarea, [data-data]';
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const parent = node.parentElement;
        if (parent.closest(data) || !parent.checkVisibility()) continue;
        const words = node.textContent.match(/[A-Za-z_]{3,}/g)?.filter(word => !/^(student|teacher|admin|ops|submission|created|task_submit|points_redeem|min|CSV)$/.test(word));
        if (words?.length) found.push(`untranslated: ${node.textContent.trim().slice(0, 80)}`);
    }
    return [...new Set(found)];
}

/** An hour of traffic; records that are stuck, odd, done, waiting for a second person; a bulk; an audit. */
async function prepare(stage) {
    const { database, server } = stage;
    const admin = await Api.signIn(server.url, 'admin1');
    const second = await Api.signIn(server.url, 'admin2');
    await writeHistory(database);
    const done = await Api.signIn(server.url, 'student9');
    const [task] = await done.openTasks();
    for (let i = 0; i < 4; i++) await done.submit(task, { client: i % 2 ? 'phone' : 'web', key: 'a-key-of-mine', content: '第 86 页：x = 3。' });
    made.rich = await leaveRichRecord(stage, await Api.signIn(server.url, 'student8'));
    // A mark that turns the direction of writing cannot be a key's, but a client's name.
    const client = '\u202eزبون \u{1f469}\u200d\u{1f680} <script>alert(1)</script> & "quotes" ' + 'long '.repeat(12);
    made.odd = await leaveStuck(database, 'student3', `<img src=x onerror=alert(1)>&amp;${'k'.repeat(220)}`, { client, minutes: 47 });
    made.waiting = await leaveStuck(database, 'student4', 'task_submit:41:4:1:web-5d09e1', { minutes: 14 });
    for (let n = 10; n < 15; n++) await leaveStuck(database, `student${n}`, `task_submit:42:${n}:1:web-${n}c2a7`, { minutes: n });
    await compensate(server, admin, made.waiting, 'release', 'The lesson is over; the student handed it in on paper.');
    await compensate(server, second, made.odd, 'fail', 'Nobody knows this client. 这个客户端没有人认识。');
    await compensate(server, admin, made.rich, 'verify', 'What is there?');
    await compensate(server, admin, made.rich, 'release', 'Late.', 7);
    const bulk = await fetch(`${server.url}/api/v1/compensations`, {
        method: 'POST',
        headers: { authorization: `Bearer ${admin.token}`, 'content-type': 'application/json', 'idempotency-key': 'bulk' },
        body: JSON.stringify({ ids: [made.rich, made.odd], action: 'verify', reason: 'A look at all of them.' }),
    });
    made.bulk = (await bulk.json()).bulk.id;
    const [row] = await database.rows(`SELECT id::text FROM idempotency_record WHERE idem_key = 'a-key-of-mine'`);
    made.done = row.id;
}
