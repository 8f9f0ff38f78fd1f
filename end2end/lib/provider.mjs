// The provider of rewards: the server's own small one, in a process of its own, which misbehaves when told to.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { environment } from './environment.mjs';

export class Provider {
    #child;

    /** Starts one on a free port; `delayMs` is how late it answers when it is slow. */
    static async start({ delayMs }) {
        const provider = new Provider();
        const args = ['reward-provider', '--listen', '127.0.0.1:0', '--delay-ms', String(delayMs)];
        provider.#child = spawn(environment.serverBinary, args, { stdio: ['ignore', 'pipe', 'inherit'] });
        let said = '';
        for await (const text of provider.#child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
            said += text;
            provider.url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
            if (provider.url) return provider;
        }
        throw new Error(`the provider did not start: ${said}`);
    }

    /** From now on it behaves like this: `ok`, `slow`, `lose-answer`, `error`, `error-after`, `refuse`, `down`. */
    async behave(mode) {
        const answer = await fetch(`${this.url}/mode`, {
            method: 'PUT',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(mode),
        });
        assert.equal(answer.status, 204);
    }

    /** What it was asked for, call by call, each with whether it gave something. */
    async log() {
        return (await fetch(`${this.url}/log`)).json();
    }

    /** The same, of one student. */
    async calls(studentId) {
        return (await this.log()).filter(entry => entry.student_id === studentId);
    }

    async stop() {
        const ended = once(this.#child, 'exit');
        if (this.#child.kill()) await ended;
    }
}
