// A Redis of our own, which keeps nothing; it may be killed, and started again at the same address.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { freePort } from './free_port.mjs';

export class Redis {
    #child;
    #port;

    /** Starts one on a free port; undefined when there is no redis-server. */
    static async start() {
        const redis = new Redis();
        redis.#port = await freePort();
        return (await redis.start()) ? redis : undefined;
    }

    get url() {
        return `redis://127.0.0.1:${this.#port}/`;
    }

    /** Starts it again where it was; whether it did. */
    async start() {
        const args = ['--port', String(this.#port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', tmpdir()];
        const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
        this.#child = child;
        return new Promise(resolve => {
            child.once('error', () => resolve(false));
            child.once('exit', () => resolve(false));
            child.stdout.setEncoding('utf8').on('data', text => text.includes('Ready to accept') && resolve(true));
        });
    }

    async kill() {
        const ended = once(this.#child, 'exit');
        if (this.#child.kill('SIGKILL')) await ended;
    }

    /** Forgets every lock. */
    async flush() {
        const socket = connect(this.#port, '127.0.0.1');
        socket.write('FLUSHALL\r\n');
        await once(socket, 'data');
        socket.destroy();
    }
}
