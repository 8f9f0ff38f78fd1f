// A Redis of our own that may be killed, and started again on the same port.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';

export class Redis {
    #child;
    #port;

    /** Starts one on a free port; undefined when there is no redis-server. */
    static async start() {
        const redis = new Redis();
        const probe = createServer().listen(0, '127.0.0.1');
        await once(probe, 'listening');
        redis.#port = probe.address().port;
        probe.close();
        return (await redis.start()) ? redis : undefined;
    }

    get url() {
        return `redis://127.0.0.1:${this.#port}`;
    }

    async start() {
        const args = ['--port', this.#port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', tmpdir()];
        const child = spawn('redis-server', args.map(String), { stdio: ['ignore', 'pipe', 'ignore'] });
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
