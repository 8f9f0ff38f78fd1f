// Students who go on until they have an answer that is final, at whichever server, and note what they were told.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

/** How long a student waits for one answer. */
const PATIENCE_MS = 4000;
/** The pause before the first repetition; each next is longer, up to the longest. */
const PAUSES_MS = [50, 1000];
/** How long after the end of the faults everybody must have had an answer. */
const GRACE_MS = 90_000;
const TEMPORARY = status => status === 202 || status === 408 || status === 429 || status >= 500;
const PURCHASE_PRICE = 50;

/** What everybody was told, and what nobody may be told. */
export class Notes {
    /** Successes: {action, student, key, id, content}. */
    successes = [];
    violations = [];
    intents = 0;
    requests = 0;
    statuses = new Map();
}

export class Student {
    #urls;
    #token;
    #account;
    #chance;
    #notes;
    #over;

    constructor({ urls, token, account, chance, notes, over }) {
        [this.#urls, this.#token, this.#account, this.#chance, this.#notes, this.#over] = [urls, token, account, chance, notes, over];
    }

    async live(practice, reward) {
        while (!this.#over.aborted) {
            const { balance } = await this.#read('/points');
            if (balance >= PURCHASE_PRICE && this.#chance.draw() < 0.5) await this.#buy(reward);
            else await this.#handIn(practice);
            this.#notes.intents += 1;
        }
    }

    async #handIn(task) {
        const { submit_version } = await this.#read(`/tasks/${task}`);
        const content = `work ${randomUUID()}`;
        const path = `/tasks/${task}/submissions`;
        const intent = (client, words) => ({ path, key: `chaos:${randomUUID()}`, body: { submit_version, client_id: client, content: words } });
        const first = intent('phone', content);
        const answers = await this.#insistTwice(first);
        const submission = this.#successOf('task_submit', first, answers, [201], content);
        const dice = this.#chance.draw();
        if (dice < 0.15) {
            const second = intent('tablet', content);
            this.#successOf('task_submit', second, [await this.#insist(second)], [200], content, submission?.id);
        } else if (dice < 0.3) {
            const second = intent('tablet', 'other words');
            this.#expect(second, await this.#insist(second), [409]);
        } else if (dice < 0.4) {
            const changed = { ...first, body: { ...first.body, content: 'other words' } };
            this.#expect(changed, await this.#insist(changed), [422]);
        }
    }

    async #buy(reward) {
        const { rewards } = await this.#read('/rewards');
        const { next_sequence: sequence } = rewards.find(({ id }) => id === reward);
        const purchase = { path: `/rewards/${reward}/redemptions`, key: `chaos:${randomUUID()}`, body: { client_id: 'phone', sequence } };
        this.#successOf('points_redeem', purchase, await this.#insistTwice(purchase), [201]);
    }

    /** Until the answer is final; often from two places at the same moment, and often once more afterwards. */
    async #insistTwice(intent) {
        const twins = this.#chance.draw() < 0.3 ? [this.#insist(intent), this.#insist(intent)] : [this.#insist(intent)];
        const answers = await Promise.all(twins);
        if (this.#chance.draw() < 0.4) answers.push(await this.#insist(intent));
        return answers;
    }

    async #insist(intent) {
        let wait = PAUSES_MS[0];
        for (;;) {
            const answer = await this.#send('POST', intent.path, intent);
            if (answer && !TEMPORARY(answer.status)) return answer;
            await this.#rest(wait, `${intent.path} ${intent.key}: ${answer?.status ?? 'no answer'}`);
            wait = Math.min(wait * 2, PAUSES_MS[1]);
        }
    }

    async #read(path) {
        let wait = PAUSES_MS[0];
        for (;;) {
            const answer = await this.#send('GET', path);
            if (answer?.status === 200) return JSON.parse(answer.text);
            await this.#rest(wait, `GET ${path}: ${answer?.status ?? 'no answer'}`);
            wait = Math.min(wait * 2, PAUSES_MS[1]);
        }
    }

    async #rest(ms, what) {
        if (this.#over.aborted && Date.now() > this.#over.reason + GRACE_MS) throw new Error(`never answered: ${what}`);
        await pause(ms);
    }

    async #send(method, path, intent) {
        this.#notes.requests += 1;
        const headers = { authorization: `Bearer ${this.#token}` };
        if (intent) Object.assign(headers, { 'content-type': 'application/json', 'idempotency-key': intent.key });
        try {
            const answer = await fetch(`${this.#chance.pick(this.#urls)}/api/v1${path}`, {
                method, headers, body: intent && JSON.stringify(intent.body), signal: AbortSignal.timeout(PATIENCE_MS),
            });
            const text = await answer.text();
            if (intent) this.#notes.statuses.set(answer.status, (this.#notes.statuses.get(answer.status) ?? 0) + 1);
            if (answer.status === 500) this.#notes.violations.push(`${method} ${path} was answered 500: ${text}`);
            return { status: answer.status, location: answer.headers.get('location'), text };
        } catch {
            return undefined;
        }
    }

    #expect(intent, answer, statuses) {
        if (statuses.includes(answer.status)) return true;
        this.#notes.violations.push(`${intent.key} was answered ${answer.status} instead of ${statuses}: ${answer.text}`);
        return false;
    }

    /** All final answers of a key are one, to the byte; it is a success, and names the row that is to be there. */
    #successOf(action, intent, answers, statuses, content, id) {
        const [first] = answers;
        for (const other of answers) {
            if (other.text !== first.text || other.status !== first.status || other.location !== first.location)
                this.#notes.violations.push(`${intent.key} has two answers: ${first.status} ${first.text} and ${other.status} ${other.text}`);
        }
        if (!this.#expect(intent, first, statuses)) return undefined;
        const row = JSON.parse(first.text);
        if (id !== undefined && row.id !== id) this.#notes.violations.push(`${intent.key} was told ${row.id} instead of ${id}`);
        this.#notes.successes.push({ action, student: this.#account.id, key: intent.key, id: row.id, content });
        return row;
    }
}
