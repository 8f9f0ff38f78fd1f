/**
 * A client of Yici's submissions for front ends that are not its pages: a mini-program, a mobile application, a script. One file,
 * no dependency; everything that touches the outside (network, storage, clock, chance) can be given.
 *
 * What it promises: one press is one submission, whatever the network does. There are four phases, and the refusal:
 *
 *   idle ──press──▶ submitting ──201, 200──▶ submitted
 *                     │    ▲ ╲──4xx──▶ refused ──seen, press──▶ submitting (a new intent, `:2`)
 *       no answer in 3 s   │ never arrived, failed for now, owner gone: the same key and content again
 *                     ▼    │
 *                    unknown ──asked by key, with growing pauses──▶ submitted | refused
 *
 * How to use it:
 *
 *   import { YiciClient } from './yici-client.mjs';
 *   const client = new YiciClient({ baseUrl: 'https://yici.example', token, clientId: 'app-7f3c…', storage });
 *   const submission = await client.open({ taskId, studentId, submitVersion });   // goes on with what was under way
 *   const stop = submission.subscribe(state => draw(state.phase, state.content, state.submission, state.code));
 *   button.onclick = () => submission.press(textarea.value);
 *   application.onShow = () => submission.wake();         // also when the network is back, or after a new sign-in
 *   // Once a refusal stands before the person's eyes, the next press is a new intent:
 *   if (submission.state.phase === 'refused') submission.seen();
 *
 * Rules that the host keeps:
 *  - `clientId` is made once for an installation and kept: 1 to 128 characters, printable ASCII.
 *  - `storage` survives a restart. `get`, `set`, `remove` may be synchronous or give promises. It is written before the first byte is
 *    sent; what it holds is the intent, key and content included.
 *  - `submitVersion` is what `GET /api/v1/tasks/{id}` says. Ask again after `version-not-current`, and after each attempt of a practice.
 *  - In the phases submitting and unknown the content cannot be changed; show `state.content`.
 *
 * Another program that shares the storage (a second tab) calls `submission.follow()` when it hears of a change.
 */

/** How long an answer is awaited before the result is called unknown, in milliseconds. */
export const ANSWER_TIMEOUT_MS = 3_000;
/** The pauses between two questions about an unknown result, in milliseconds; the last one repeats. */
export const BACK_OFF_MS = [500, 1_000, 2_000, 4_000, 8_000];
/** How much is added to a pause at most, as a part of it, so that many clients do not ask in step. */
export const JITTER = 0.25;
/** How long after the end of a lease it is asked about, in milliseconds. */
const LEASE_MARGIN_MS = 50;
const ACTION = 'task_submit';

/** The recommended key: the same for every retry of one intent. */
export function taskSubmitKey({ task_id, student_id, submit_version, client_id, ordinal = 1 }) {
    const key = `${ACTION}:${task_id}:${student_id}:${submit_version}:${client_id}`;
    return ordinal > 1 ? `${key}:${ordinal}` : key;
}

/** An intent that nothing was sent for. */
export function idleIntent({ taskId, studentId, submitVersion, clientId }) {
    return {
        phase: 'idle',
        task_id: String(taskId),
        student_id: String(studentId),
        submit_version: submitVersion,
        client_id: clientId,
        ordinal: 1,
        content: '',
    };
}

const isOpen = intent => intent.phase === 'idle' || intent.phase === 'refused';

/**
 * The intent after an event, and what to do: `rest`, `send` or `ask`. Events that do not fit the phase change nothing. This is the
 * reducer of the server's own pages (`domain::phase`); `phases.json` holds both to the same table.
 */
export function applyEvent(intent, event) {
    const open = isOpen(intent);
    const under_way = intent.phase === 'submitting' || intent.phase === 'unknown';
    const to = (phase, todo, more = {}) => {
        const { code: _, ...rest } = intent;
        return { intent: { ...rest, phase, ...more }, todo };
    };
    switch (event.type) {
        case 'press':
            if (open) {
                const ordinal = intent.ordinal + (intent.phase === 'refused' ? 1 : 0);
                return to('submitting', 'send', { ordinal, content: event.content });
            }
            // Out of unknown neither key nor content changes, whatever was typed or pressed meanwhile.
            if (intent.phase === 'unknown') return to('submitting', 'send');
            break;
        case 'never_arrived':
            if (intent.phase === 'unknown') return to('submitting', 'send');
            break;
        case 'no_answer':
        case 'not_yet':
            if (under_way) return to('unknown', 'ask');
            break;
        case 'confirmed':
            if (under_way) return to('submitted', 'rest');
            break;
        case 'refused':
            if (under_way) return to('refused', 'rest', { code: event.code });
            break;
    }
    return { intent, todo: 'rest' };
}

/** What a program does that finds this intent in its storage: a request of a program that is gone has no answer any more. */
export function resumeIntent(intent) {
    return applyEvent(intent, { type: 'no_answer' });
}

const wallClock = {
    now: () => Date.now(),
    setTimeout: (run, ms) => setTimeout(run, ms),
    clearTimeout: timer => clearTimeout(timer),
};

/** A storage that forgets everything with its program: for tests, and better than nothing. */
export function memoryStorage() {
    const kept = new Map();
    return {
        get: name => kept.get(name) ?? null,
        set: (name, value) => void kept.set(name, value),
        remove: name => void kept.delete(name),
    };
}

/** One installation of a front end, for one person at a time. */
export class YiciClient {
    constructor({ baseUrl, clientId, token, fetch, storage, clock, random, answerTimeoutMs, backOffMs }) {
        if (!/^[!-~]{1,128}$/.test(clientId ?? '')) throw new TypeError('clientId must be 1 to 128 printable ASCII characters');
        this.baseUrl = String(baseUrl).replace(/\/+$/, '');
        this.clientId = clientId;
        /** May be set anew after a sign-in; then `wake()` the submissions. */
        this.token = token;
        this.fetch = fetch ?? ((url, options) => globalThis.fetch(url, options));
        this.storage = storage ?? memoryStorage();
        this.clock = clock ?? wallClock;
        this.random = random ?? Math.random;
        this.answerTimeoutMs = answerTimeoutMs ?? ANSWER_TIMEOUT_MS;
        this.backOffMs = backOffMs ?? BACK_OFF_MS;
    }

    /** A submission of one version of one task; what was under way for it goes on at once. */
    async open({ taskId, studentId, submitVersion }) {
        const submission = new Submission(this, idleIntent({ taskId, studentId, submitVersion, clientId: this.clientId }));
        await submission.follow({ isRestart: true });
        return submission;
    }
}

/** One submission and where it stands. */
export class Submission {
    #client;
    #intent;
    #submission;
    #hurdle;
    #seen = false;
    #listeners = new Set();
    /** The number of the newest request or question; answers to older ones decide only when they are definite. */
    #ticket = 0;
    #asks = 0;
    #retryAfterMs = 0;
    #leaseMs;
    #timers = new Set();
    #isClosed = false;
    /** One thing at a time: two presses in a row are a press and one that finds it under way. */
    #turn = Promise.resolve();

    constructor(client, intent) {
        this.#client = client;
        this.#intent = intent;
    }

    /** Where it stands; a new object after each change. */
    get state() {
        const { phase, code, content } = this.#intent;
        return { phase, code, content, key: this.key, submission: this.#submission, hurdle: this.#hurdle };
    }

    /** The key of the intent at hand. */
    get key() {
        return taskSubmitKey(this.#intent);
    }

    /** Calls `listener` now and after each change; gives a function that ends that. */
    subscribe(listener) {
        this.#listeners.add(listener);
        listener(this.state);
        return () => this.#listeners.delete(listener);
    }

    /** The person pressed the button. A press after a refusal that was not `seen()` changes nothing. */
    press(content) {
        return this.#inTurn(async () => {
            await this.#adopt();
            if (this.#intent.phase === 'refused' && !this.#seen) return;
            this.#forgetPauses();
            await this.#dispatch({ type: 'press', content: String(content) });
        });
    }

    /** The refusal stands before the person: the next press means something new. */
    seen() {
        if (this.#intent.phase === 'refused') this.#seen = true;
    }

    /** The network is back, the program is in front again, or somebody signed in: no need to wait for the rest of a pause. */
    wake() {
        return this.#inTurn(async () => {
            this.#hurdle = undefined;
            if (this.#intent.phase !== 'unknown') return;
            this.#forgetPauses();
            this.#askAfter(0);
        });
    }

    /** Takes over what the storage holds: another program that shares it has changed it, or this one was started anew. */
    follow({ isRestart = false } = {}) {
        return this.#inTurn(async () => {
            const changed = await this.#adopt();
            if (!isRestart && !changed) return;
            const { intent, todo } = resumeIntent(this.#intent);
            if (todo === 'rest') return;
            // Another program that is alive is left to its own request first.
            this.#intent = intent;
            this.#notify();
            this.#askAfter(isRestart ? 0 : this.#client.answerTimeoutMs + 1_000);
        });
    }

    /** Ends all waiting; what was sent is not called back. */
    close() {
        this.#isClosed = true;
        this.#listeners.clear();
        for (const timer of this.#timers) this.#client.clock.clearTimeout(timer);
        this.#timers.clear();
    }

    #inTurn(run) {
        const turn = this.#turn.then(() => (this.#isClosed ? undefined : run()));
        this.#turn = turn.catch(() => {});
        return turn;
    }

    get #place() {
        return `yici:intent:${this.#intent.student_id}:${this.#intent.task_id}`;
    }

    async #adopt() {
        const kept = await this.#read();
        const own = this.#intent;
        if (!kept || kept.task_id !== own.task_id || kept.student_id !== own.student_id) return false;
        const isFinished = isOpen(kept) || kept.phase === 'submitted';
        if (isFinished && kept.submit_version !== own.submit_version) return false;
        const isSameKey = taskSubmitKey(kept) === taskSubmitKey(own);
        const follows =
            own.phase === 'idle' ||
            (isSameKey ? own.phase !== 'submitted' && kept.content === own.content : isOpen(own) && kept.ordinal > own.ordinal);
        if (!follows || (isSameKey && kept.phase === own.phase)) return false;
        this.#intent = kept;
        this.#seen = false;
        this.#notify();
        return true;
    }

    async #read() {
        try {
            const text = await this.#client.storage.get(this.#place);
            return text ? JSON.parse(text) : undefined;
        } catch {
            // What cannot be read is as good as nothing.
            return undefined;
        }
    }

    async #dispatch(event) {
        const before = this.#intent;
        const { intent, todo } = applyEvent(before, event);
        if (intent === before && todo === 'rest') return;
        // The key and the content are kept before the first byte is sent. A full storage is no reason not to submit.
        try {
            await this.#client.storage.set(this.#place, JSON.stringify(intent));
        } catch {}
        this.#intent = intent;
        if (intent.phase !== 'refused') this.#seen = false;
        this.#notify();
        if (todo === 'send') this.#send();
        if (todo === 'ask') this.#askAfter(this.#pauseMs());
    }

    #notify() {
        for (const listener of this.#listeners) listener(this.state);
    }

    #later(run, ms) {
        const { clock } = this.#client;
        const timer = clock.setTimeout(() => {
            this.#timers.delete(timer);
            void this.#inTurn(run);
        }, ms);
        this.#timers.add(timer);
    }

    #send() {
        const { task_id, submit_version, client_id, content } = this.#intent;
        const [ticket, key] = [++this.#ticket, this.key];
        this.#later(async () => {
            if (ticket === this.#ticket && this.#intent.phase === 'submitting') await this.#dispatch({ type: 'no_answer' });
        }, this.#client.answerTimeoutMs);
        // The request is not cut when the time is up: on a slow line its late answer is still the quickest one.
        const sent = this.#request(`/api/v1/tasks/${encodeURIComponent(task_id)}/submissions`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'idempotency-key': `"${key}"` },
            body: JSON.stringify({ submit_version, client_id, content }),
        });
        void sent.then(answer => this.#inTurn(() => this.#submitAnswered(ticket, key, answer)));
    }

    async #submitAnswered(ticket, key, answer) {
        if (key !== this.key) return;
        if (!answer) return this.#noAnswer(ticket);
        const { status, body, code } = answer;
        if (status === 200 || status === 201) return this.#confirmed(body);
        if (this.#isHurdle(ticket, answer)) return this.#noAnswer(ticket);
        // Two programs pressed with different texts: what became of the other text decides what to say.
        const isPassing = status === 202 || status === 408 || status === 429 || status >= 500 || code === 'key-reused';
        // Only the server itself refuses: an error page of something in between says nothing about the request.
        if (isPassing || !code) return this.#notYet(ticket, answer.retryAfterMs);
        await this.#dispatch({ type: 'refused', code });
    }

    #askAfter(ms) {
        const [ticket, key] = [++this.#ticket, this.key];
        this.#later(async () => {
            if (ticket !== this.#ticket || key !== this.key || isOpen(this.#intent)) return;
            this.#asks += 1;
            this.#later(async () => {
                if (ticket === this.#ticket && this.#intent.phase === 'unknown') await this.#dispatch({ type: 'no_answer' });
            }, this.#client.answerTimeoutMs);
            const asked = this.#request(`/api/v1/requests/${encodeURIComponent(key)}?action=${ACTION}`, { method: 'GET', headers: {} });
            void asked.then(answer => this.#inTurn(() => this.#statusAnswered(ticket, key, answer)));
        }, ms);
    }

    async #statusAnswered(ticket, key, answer) {
        if (key !== this.key) return;
        if (!answer) return this.#noAnswer(ticket);
        const { status, body, code } = answer;
        if (this.#isHurdle(ticket, answer)) return this.#noAnswer(ticket);
        const isCurrent = ticket === this.#ticket;
        if (status === 404 && code === 'not-found') return isCurrent ? this.#dispatch({ type: 'never_arrived' }) : undefined;
        if (status !== 200) return this.#notYet(ticket, answer.retryAfterMs);
        if (body.state === 'SUCCEEDED') return this.#confirmed(body.response?.body);
        if (body.state === 'FAILED_FINAL') return this.#dispatch({ type: 'refused', code: body.response?.body?.code ?? 'other' });
        if (body.state === 'PROCESSING' && body.lease_remaining_ms !== 0) {
            return this.#notYet(ticket, undefined, body.lease_remaining_ms);
        }
        // It failed for now, or its owner is gone: a repeated request moves it on.
        if (isCurrent) await this.#dispatch({ type: 'never_arrived' });
    }

    async #confirmed(submission) {
        this.#hurdle = undefined;
        if (submission?.id) this.#submission = submission;
        // Another text went in under this key; this one did not.
        const isOther = submission?.content !== undefined && submission.content !== this.#intent.content;
        await this.#dispatch(isOther ? { type: 'refused', code: 'already-submitted' } : { type: 'confirmed' });
    }

    async #notYet(ticket, retryAfterMs = 0, leaseMs = undefined) {
        this.#hurdle = undefined;
        if (ticket !== this.#ticket) return;
        [this.#retryAfterMs, this.#leaseMs] = [retryAfterMs, leaseMs];
        await this.#dispatch({ type: 'not_yet' });
    }

    async #noAnswer(ticket) {
        if (ticket !== this.#ticket) return;
        [this.#retryAfterMs, this.#leaseMs] = [0, undefined];
        await this.#dispatch({ type: 'no_answer' });
    }

    /** Nobody is signed in any more, or somebody else: asking again would not help before `wake()`. */
    #isHurdle(ticket, { status, code }) {
        if (!code || (status !== 401 && status !== 403)) return false;
        if (ticket === this.#ticket) this.#hurdle = 'signed-out';
        return true;
    }

    #forgetPauses() {
        [this.#asks, this.#retryAfterMs, this.#leaseMs] = [0, 0, undefined];
    }

    #pauseMs() {
        const { backOffMs, random } = this.#client;
        if (this.#hurdle) return 2 ** 31 - 1; // the longest that timers take, 24 days: nothing is asked before `wake()`
        const wanted = Math.max(backOffMs[Math.min(this.#asks, backOffMs.length - 1)], this.#retryAfterMs);
        // No longer than the owner can be alive: the question after that sends the request again.
        const pause = Math.min(wanted, (this.#leaseMs ?? Infinity) + LEASE_MARGIN_MS);
        return pause + pause * JITTER * random();
    }

    /** One request; `undefined` when no whole answer came. */
    async #request(path, { method, headers, body }) {
        const { fetch, baseUrl, token, clock } = this.#client;
        try {
            const response = await fetch(`${baseUrl}${path}`, {
                method,
                body,
                headers: { accept: 'application/json', ...headers, ...(token && { authorization: `Bearer ${token}` }) },
            });
            const text = await response.text();
            const isJson = /json/.test(response.headers.get('content-type') ?? '');
            const read = isJson ? JSON.parse(text) : undefined;
            const code = response.status >= 400 && typeof read?.code === 'string' ? read.code : undefined;
            return {
                status: response.status,
                body: read,
                code,
                retryAfterMs: readRetryAfter(response.headers.get('retry-after'), clock.now()),
            };
        } catch {
            return undefined;
        }
    }
}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110, 10.2.3). */
export function readRetryAfter(value, now) {
    if (!value) return 0;
    if (/^\d+$/.test(value.trim())) return Number(value) * 1_000;
    const at = Date.parse(value);
    return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}
