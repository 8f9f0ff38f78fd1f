// A Redis of a test's own, which keeps nothing; it may be killed and started again at the same address.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';

export class Redis {
    #port;
    #child;

    static async start() {
        const redis = new Redis();
        redis.#port = await freePort();
        await redis.start();
        return redis;
    }

    get url() {
        return `redis://127.0.0.1:${this.#port}/`;
    }

    async start() {
        const args = ['--port', String(this.#port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
        this.#child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
        let said = '';
        for await (const text of this.#child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
            said += text;
            if (/Ready to accept connections/.test(said)) break;
        }
        this.#child.stdout.resume();
    }

    async kill() {
        const ended = once(this.#child, 'exit');
        if (this.#child.kill('SIGKILL')) await ended;
    }
}

async function freePort() {
    const server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    server.close();
    await once(server, 'close');
    return port;
}
