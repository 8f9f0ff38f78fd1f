// A scripted outage: slow finishes, callers that hang up, a provider that loses its answers, a dead Redis, a killed server.
// Everything that tells about it afterwards (panel, metrics of two instances, rows, log, traces, alerts) has to tell the same
// numbers. `make outage` runs it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Database } from './lib/database.mjs';
import { Provider } from './lib/provider.mjs';
import { Redis } from './lib/redis.mjs';
import { Server } from './lib/server.mjs';
import { until as waitUntil } from './lib/until.mjs';

const CALM = 12, REPEATED = 5, CHANGED = 2, OTHER_KEY = 4, SLOW = 3, HUNG_UP = 8, BOUGHT = 2, WITHOUT_REDIS = 5, KILLED = 3;
const ACTIONS = ['task_submit', 'points_redeem'];
const LEASE_S = 3, STUCK_AFTER_S = 2;
const SCRAPE_MS = 500;
const RULES = 'server/observability/rules.yml';
/** Bucket, metric; the header's and the log's words are the bucket's. */
const BUCKETS = [
    ['new', 'idempotency_new_request_total'],
    ['reused', 'idempotency_reused_result_total'],
    ['processing', 'idempotency_processing_hit_total'],
    ['unknown', 'idempotency_unknown_state_total'],
    ['mismatch', 'idempotency_key_mismatch_total'],
    ['constraint_conflict', 'duplicate_business_constraint_total'],
];

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
/** Whatever is waited for may take a while on a busy machine. */
const until = (what, look) => waitUntil(what, look, 60_000);
const say = text => console.log(`-- ${text}`);

/** A receiver of traces: OTLP over HTTP, JSON. */
async function receiver() {
    const spans = [];
    const http = createServer((request, response) => {
        let body = '';
        request.setEncoding('utf8').on('data', text => (body += text)).on('end', () => {
            const sets = JSON.parse(body).resourceSpans ?? [];
            spans.push(...sets.flatMap(set => set.scopeSpans.flatMap(scope => scope.spans)));
            response.setHeader('content-type', 'application/json').end('{}');
        });
    });
    await new Promise(resolve => http.listen(0, '127.0.0.1', resolve));
    return { spans, http, url: `http://127.0.0.1:${http.address().port}` };
}

class Story {
    /** What the script itself knows to be true, bucket by bucket. */
    expected = Object.fromEntries(BUCKETS.map(([bucket]) => [bucket, 0]));
    #count = 0;

    constructor(url, token, tasks) {
        this.url = url;
        this.token = token;
        this.tasks = tasks;
    }

    /** One piece of work that was never handed in before. */
    work() {
        const task = this.tasks[this.#count];
        this.#count += 1;
        const body = { submit_version: 1, client_id: 'outage', content: `work ${this.#count}` };
        return { path: `tasks/${task}/submissions`, key: `outage:${this.#count}`, body };
    }

    /** One purchase that was never made before. */
    purchase(reward, sequence) {
        return { path: `rewards/${reward}/redemptions`, key: `outage:purchase:${sequence}`, body: { client_id: 'outage', sequence } };
    }

    send({ path, key, body }, signal) {
        return fetch(`${this.url}/api/v1/${path}`, {
            method: 'POST',
            headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json', 'idempotency-key': key },
            body: JSON.stringify(body),
            signal,
        });
    }

    async expect(work, bucket) {
        const answer = await this.send(work);
        const told = answer.headers.get('idempotency-status')?.replace('-', '_');
        if (told !== bucket) throw new Error(`${work.key}: ${answer.status} ${told} instead of ${bucket}`);
        this.expected[bucket] += 1;
    }
}

/** The value of a series on a page. */
function value(page, series) {
    const line = page.split('\n').find(line => line.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1));
}

/** The sum over the actions. */
const overall = (page, metric) => ACTIONS.reduce((sum, action) => sum + value(page, `${metric}{action="${action}"}`), 0);

const scrape = async url => (await fetch(`${url}/metrics`)).text();

/** Scrapes one instance all the time, for the alerts. */
function watch(url) {
    const pages = [];
    let on = true;
    const done = (async () => {
        while (on) {
            pages.push(await scrape(url));
            await sleep(SCRAPE_MS);
        }
    })();
    return { pages, stop: () => ((on = false), done) };
}

/** Asks the rules, each scrape being a minute: which alerts fire at which scrape. Undefined without promtool. */
function alerts(pages, moments) {
    const promtool = process.env.YICI_PROMTOOL;
    if (!promtool) return undefined;
    // A page is kept for a second, so scrapes repeat some; the heartbeat is a time of the real clock and left out.
    const names = new Set();
    for (const page of pages)
        for (const line of page.split('\n'))
            if (/^(idempotency|duplicate|redis|request|yici_(outbox|oldest|approvals|store|http_requests))/.test(line) && !line.includes('_bucket'))
                names.add(line.slice(0, line.lastIndexOf(' ')));
    const series = [...names].map(name => ({
        // A route's label holds braces of its own: the last one closes.
        series: name.includes('{') ? `${name.slice(0, -1)},job="yici"}` : `${name}{job="yici"}`,
        values: pages.map(page => value(page, name) ?? '_').join(' '),
    }));
    const dir = mkdtempSync(join(tmpdir(), 'yici-outage-'));
    const test = moments.map(({ at, firing }) => ({
        expr: 'count by (alertname) (ALERTS{alertstate="firing", alertname!="YiciNoScanner"})',
        eval_time: `${at}m`,
        exp_samples: firing.map(name => ({ labels: `{alertname="${name}"}`, value: 1 })),
    }));
    const stuck = moments.find(moment => moment.summary);
    const rule = [{ eval_time: `${stuck.at}m`, alertname: 'YiciStuckRecords', exp_alerts: [{
        exp_labels: { severity: 'warning', action: 'task_submit' },
        exp_annotations: { summary: stuck.summary, runbook_url: 'server/observability/README.md#stuck-records' },
    }] }];
    const file = join(dir, 'tests.yml');
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({
        rule_files: [join(process.cwd(), RULES)], evaluation_interval: '1m',
        tests: [{ interval: '1m', input_series: series, promql_expr_test: test, alert_rule_test: rule }],
    }));
    try {
        execFileSync(promtool, ['test', 'rules', file], { stdio: 'pipe' });
        return { agrees: true };
    } catch (error) {
        return { agrees: false, text: `${error.stdout}${error.stderr}` };
    } finally {
        rmSync(dir, { recursive: true });
    }
}

async function main() {
    const database = await Database.create('outage');
    const traces = await receiver();
    const cache = await Redis.start();
    const shop = await Provider.start({ delayMs: 0 });
    await shop.behave('lose-answer');
    if (!cache) say('no redis-server: that part of the story is left out');
    const settings = {
        RUST_LOG: 'info', YICI_LOG_FORMAT: 'json', YICI_LEASE_SECONDS: String(LEASE_S), YICI_STUCK_AFTER_SECONDS: String(STUCK_AFTER_S),
        YICI_RATE_LIMIT_PER_ACCOUNT: '0', OTEL_EXPORTER_OTLP_ENDPOINT: traces.url, OTEL_BSP_SCHEDULE_DELAY: '200',
        YICI_REWARD_URL: shop.url,
        ...(cache ? { REDIS_URL: cache.url } : {}),
    };
    // Two instances: the first one goes through the outage, the second one looks on and recovers nothing.
    const first = await Server.start(database, { ...settings, YICI_SCAN_INTERVAL_SECONDS: '1' });
    const second = await Server.start(database, { ...settings, YICI_SCAN_INTERVAL_SECONDS: '3600' });
    const signIn = async name => (await (await fetch(`${second.url}/api/v1/session`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ username: name, password: 'demo' }),
    })).json()).token;
    // Assignments of its own: none depends on another's being done before.
    const tasks = await database.rows(
        `INSERT INTO task (class_id, title, instructions, kind)
         SELECT class_id, title, instructions, 'assignment' FROM (SELECT * FROM task ORDER BY id LIMIT 1) t, generate_series(1, $1)
         RETURNING id::text`,
        [CALM + SLOW + HUNG_UP + WITHOUT_REDIS + KILLED],
    );
    const story = new Story(first.url, await signIn('student1'), tasks.map(task => task.id));
    const ops = await signIn('ops1');
    const panel = async url => (await fetch(`${url}/api/v1/panel`, { headers: { authorization: `Bearer ${ops}` } })).json();
    const inState = async state => Number((await database.rows('SELECT count(*) AS n FROM idempotency_record WHERE state = $1', [state]))[0].n);
    const watching = watch(second.url);
    let failed = 0;
    try {
        say(`calm: ${CALM} pieces of work; sent again as they are ${REPEATED}, with other words ${CHANGED}, under another key ${OTHER_KEY}`);
        const calm = Array.from({ length: CALM }, () => story.work());
        for (const work of calm) await story.expect(work, 'new');
        for (const work of calm.slice(0, REPEATED)) await story.expect(work, 'reused');
        for (const work of calm.slice(0, CHANGED)) await story.expect({ ...work, body: { ...work.body, content: 'other words' } }, 'mismatch');
        for (const work of calm.slice(0, OTHER_KEY)) await story.expect({ ...work, key: `${work.key}:tablet` }, 'constraint_conflict');
        // The alerts compare with a quarter of an hour before.
        await until('enough scrapes', () => watching.pages.length >= 22);

        say(`slow finishes: ${SLOW}, each pressed twice`);
        let release = await database.holdSubmissions();
        const slow = Array.from({ length: SLOW }, () => story.work());
        const pressed = [];
        for (const work of slow) pressed.push(story.expect(work, 'new'));
        await until('claims', async () => (await inState('PROCESSING')) === SLOW);
        for (const work of slow) await story.expect(work, 'processing');
        await release();
        await Promise.all(pressed);

        say(`lost answers: ${HUNG_UP} callers hang up before theirs, and ask again`);
        const before = watching.pages.length;
        release = await database.holdSubmissions();
        const hangUp = new AbortController();
        const lost = Array.from({ length: HUNG_UP }, () => story.work());
        const gone = lost.map(work => story.send(work, hangUp.signal).then(() => { throw new Error('it was answered'); }, () => {}));
        await until('claims', async () => (await inState('PROCESSING')) === HUNG_UP);
        hangUp.abort();
        await Promise.all(gone);
        await sleep(100);
        await release();
        await until('successes', async () => (await inState('PROCESSING')) === 0);
        story.expected.new += HUNG_UP;
        for (const work of lost) await story.expect(work, 'reused');
        await until('enough scrapes', () => watching.pages.length >= before + 10);
        const atTimeouts = watching.pages.length - 1;

        say(`lost purchases: ${BOUGHT}, given by a provider that says nothing; the scanner asks it`);
        const rewards = await (await fetch(`${first.url}/api/v1/rewards`, { headers: { authorization: `Bearer ${story.token}` } })).json();
        const cheapest = rewards.rewards.toSorted((a, b) => a.price - b.price)[0];
        for (let n = 0; n < BOUGHT; n += 1) {
            const purchase = story.purchase(cheapest.id, cheapest.next_sequence + n);
            await story.expect(purchase, 'unknown');
            await until('the provider has been asked', async () => (await inState('UNKNOWN')) === 0);
            await story.expect(purchase, 'reused');
        }

        if (cache) {
            say(`dead Redis: ${WITHOUT_REDIS} pieces of work without it`);
            await cache.kill();
            for (let n = 0; n < WITHOUT_REDIS; n += 1) await story.expect(story.work(), 'new');
        }
        const locks = value(await scrape(first.url), 'yici_front_lock_total{action="task_submit",result="unavailable"}');

        const beforeKill = await scrape(first.url);

        say(`killed server: ${KILLED} pieces of work in its hands`);
        // What is behind the answers, such as the last replays, log and spans, is written by now.
        await sleep(2000);
        release = await database.holdSubmissions();
        const held = Array.from({ length: KILLED }, () => story.work());
        const cut = held.map(work => story.send(work).then(() => { throw new Error('it was answered'); }, () => {}));
        await until('claims', async () => (await inState('PROCESSING')) === KILLED);
        await first.kill();
        await Promise.all(cut);
        await release();
        const dead = watching.pages.length;
        await until('stuck for long enough', () => watching.pages.length >= dead + 2 * STUCK_AFTER_S * 1000 / SCRAPE_MS / 2 + 16);
        const atStuck = watching.pages.length - 1;
        say('the server comes back, and its scanner ends them');
        await first.start();
        await until('recovery', async () => (await inState('PROCESSING')) === 0 && (await inState('FAILED_RETRYABLE')) === 0);
        story.expected.new += KILLED;
        for (const work of held) await story.expect(work, 'reused');
        const back = watching.pages.length;
        await until('enough scrapes', () => watching.pages.length >= back + 6);
        await sleep(1500);
        await watching.stop();

        const panels = [await panel(first.url), await panel(second.url)];
        const pages = [await scrape(first.url), await scrape(second.url)];
        await first.stop();
        await second.stop();

        const logged = `${first.log}\n${second.log}`.split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line));
        const rows = Object.fromEntries((await database.rows('SELECT outcome, count(*)::int AS n FROM request_arrival GROUP BY 1')).map(row => [row.outcome, row.n]));
        const attribute = (span, key) => span.attributes?.find(a => a.key === key)?.value?.stringValue;
        const requests = traces.spans.filter(span => span.kind === 2);
        const ends = logged.filter(line => /^(recovered|verified)/.test(line.message) && line.outcome);
        // What died with its process has no arrival in its log and no outcome in its span: whoever ended it tells it.
        const arrived = new Set(logged.filter(line => line.message === 'arrival').map(line => line.trace_id));
        const answered = new Set(requests.filter(span => attribute(span, 'outcome')).map(span => span.traceId));
        const recoveries = traces.spans.filter(span => span.name === 'recover');
        const check = (what, numbers) => {
            const agrees = new Set(Object.values(numbers)).size === 1;
            if (!agrees) failed += 1;
            const words = Object.entries(numbers).map(([name, n]) => `${name} ${n}`).join('  ');
            console.log(`  ${what.padEnd(32)} ${words}  ${agrees ? '=' : 'DIFFERS'}`);
        };
        console.log('What happened, as everybody tells it:');
        for (const [bucket, metric] of BUCKETS) {
            const ended = ends.filter(line => line.outcome === bucket && !arrived.has(line.trace_id)).length;
            const recovered = bucket === 'new' ? recoveries.filter(span => !answered.has(span.traceId)).length : 0;
            check(bucket, {
                script: story.expected[bucket],
                panel: panels[0].totals[bucket],
                'panel of the other': panels[1].totals[bucket],
                metrics: overall(pages[0], metric), 'metrics of the other': overall(pages[1], metric),
                rows: rows[bucket] ?? 0,
                log: logged.filter(line => line.message === 'arrival' && line.outcome === bucket).length + ended,
                traces: requests.filter(span => attribute(span, 'outcome') === bucket).length + recovered,
            });
        }
        const afterRestart = overall(pages[0], 'yici_scanner_records_recovered_total');
        const of = (name, n) => value(pages[n], `${name}{action="task_submit"}`);
        check('successes that reached nobody', {
            script: HUNG_UP, panel: panels[0].totals.timeout_after_success,
            metrics: of('request_timeout_after_success_total', 0), 'metrics of the other': of('request_timeout_after_success_total', 1),
        });
        check('became stuck', {
            script: KILLED, metrics: of('idempotency_record_stuck_total', 0), 'metrics of the other': of('idempotency_record_stuck_total', 1),
            log: logged.filter(line => line.message === 'records became stuck').reduce((sum, line) => sum + line.stuck, 0),
        });
        check('ended by the scanner', {
            script: KILLED + BOUGHT, panel: panels[0].totals.compensated, metrics: overall(pages[0], 'idempotency_compensated_total'),
            'of the process': afterRestart + overall(beforeKill, 'yici_scanner_records_recovered_total'),
            traces: recoveries.length, log: ends.length,
        });
        if (cache) check('asked a dead Redis', { script: WITHOUT_REDIS, metrics: locks });
        check('stuck now', { script: 0, panel: panels[0].gauges.stuck, metrics: of('idempotency_records_stuck', 0) });
        const told = alerts(watching.pages, [
            { at: 20, firing: [] },
            { at: atTimeouts, firing: ['YiciTimeoutsAfterSuccessRising'] },
            { at: atStuck, firing: ['YiciStuckRecords'], summary: `${KILLED} records of task_submit are stuck` },
        ]);
        if (!told) console.log('  alerts                           NOT LOOKED AT: there is no promtool');
        else if (told.agrees) console.log('  alerts                           none while calm; time-outs after success; 3 records stuck  =');
        else {
            failed += 1;
            console.log(`  alerts                           DIFFER\n${told.text}`);
        }
    } finally {
        await watching.stop().catch(() => {});
        await first.kill();
        await second.kill();
        await cache?.kill();
        await shop.stop();
        traces.http.close();
        await database.drop();
    }
    if (failed > 0) throw new Error(`${failed} of the numbers differ`);
    console.log('All tell the same story.');
}

await main().catch(error => {
    console.error(`FAILED: ${error.message}`);
    process.exitCode = 1;
});
