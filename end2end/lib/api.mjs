// The API as a program sees it.
import assert from 'node:assert/strict';

export const PASSWORD = 'demo';
export const POINTS_PER_SUBMISSION = 10;
const BUCKETS = ['new', 'reused', 'processing', 'unknown', 'mismatch', 'constraint_conflict'];

export class Api {
    #url;
    #token;
    account;

    /** Signs in; `url` is a server's. */
    static async signIn(url, name) {
        const api = new Api();
        api.#url = url;
        const { token, account } = await api.#json('POST', '/session', { username: name, password: PASSWORD });
        api.#token = token;
        api.account = account;
        return api;
    }

    /** The same person at another server. */
    at(url) {
        const api = new Api();
        api.#url = url;
        api.#token = this.#token;
        api.account = this.account;
        return api;
    }

    /** The bearer token. */
    get token() {
        return this.#token;
    }

    async tasks() {
        return (await this.#json('GET', '/tasks')).tasks;
    }

    /** The open assignments, then the practice. */
    async openTasks() {
        const open = (await this.tasks()).filter(task => task.status === 'pending');
        return open.sort((a, b) => Number(a.kind === 'practice') - Number(b.kind === 'practice'));
    }

    async points() {
        return (await this.#json('GET', '/points')).balance;
    }

    async panel(window = '5m') {
        return this.#json('GET', `/panel?window=${window}`);
    }

    /** The arrivals of all time: the sum of the six buckets. */
    async arrivals() {
        const { totals } = await this.panel();
        return BUCKETS.reduce((sum, name) => {
            assert.equal(typeof totals[name], 'number', `totals.${name}`);
            return sum + totals[name];
        }, 0);
    }

    async request(key, action = 'task_submit') {
        return this.#json('GET', `/requests/${encodeURIComponent(key)}?action=${action}`);
    }

    keyFor(task, client) {
        return `task_submit:${task.id}:${this.account.id}:${task.submit_version}:${client}`;
    }

    /** Hands in; gives the answer as it is. */
    async submit(task, { key, client = 'e2e', content = 'An answer.', headers = {} } = {}) {
        const body = { submit_version: task.submit_version, client_id: client, content };
        return this.#send('POST', `/tasks/${task.id}/submissions`, body, {
            'idempotency-key': key ?? this.keyFor(task, client),
            ...headers,
        });
    }

    /** Redeems a reward; gives the status and the key. */
    async redeem(rewardId, sequence, client = 'e2e') {
        const key = `points_redeem:${rewardId}:${this.account.id}:${sequence}:${client}`;
        const body = { client_id: client, sequence };
        const answer = await this.#send('POST', `/rewards/${rewardId}/redemptions`, body, { 'idempotency-key': key });
        return { status: answer.status, key };
    }

    async #json(method, path, body) {
        const response = await this.#send(method, path, body);
        const text = await response.text();
        assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
        return JSON.parse(text);
    }

    #send(method, path, body, headers = {}) {
        return fetch(`${this.#url}/api/v1${path}`, {
            method,
            body: body && JSON.stringify(body),
            headers: {
                ...(body && { 'content-type': 'application/json' }),
                ...(this.#token && { authorization: `Bearer ${this.#token}` }),
                ...headers,
            },
        });
    }
}
