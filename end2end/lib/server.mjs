// A server process on a free port. It may be killed and started again on the same port.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { environment } from './environment.mjs';

const START_MS = 30_000;
const STOP_MS = 30_000;

export class Server {
    #database;
    #settings;
    #child;
    #port = 0;
    log = '';

    constructor(database, settings = {}) {
        this.#database = database;
        this.#settings = settings;
    }

    static async start(database, settings) {
        const server = new Server(database, settings);
        await server.start();
        return server;
    }

    get url() {
        return `http://127.0.0.1:${this.#port}`;
    }

    /** Starts it; for the second time on the port of the first. */
    async start() {
        const env = {
            PATH: process.env.PATH,
            NO_COLOR: '1',
            DATABASE_URL: this.#database.url,
            YICI_LISTEN: `127.0.0.1:${this.#port}`,
            YICI_SITE_DIR: environment.site,
            ...this.#settings,
        };
        const child = spawn(environment.serverBinary, ['serve', '--demo'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
        this.#child = child;
        let out = '';
        const serving = new Promise((resolve, reject) => {
            child.stdout.setEncoding('utf8').on('data', text => {
                out += text;
                const port = /serves on http:\/\/127\.0\.0\.1:(\d+)/.exec(out)?.[1];
                if (port) resolve(Number(port));
            });
            child.stderr.setEncoding('utf8').on('data', text => (this.log += text));
            child.once('error', reject);
            child.once('exit', code => reject(new Error(`the server ended with ${code} at its start:\n${this.log}`)));
            setTimeout(() => reject(new Error(`the server did not start:\n${this.log}`)), START_MS).unref();
        });
        // A start that failed leaves nothing running.
        this.#port = await serving.catch(async error => {
            await this.kill();
            throw error;
        });
    }

    /** Kills it as a machine's failure would. */
    async kill() {
        await this.#end('SIGKILL');
    }

    /** Sends it a signal such as SIGSTOP. */
    signal(name) {
        this.#child.kill(name);
    }

    /** Asks it to stop, which has to go well. */
    async stop() {
        const late = setTimeout(() => this.#child?.kill('SIGKILL'), STOP_MS);
        const code = await this.#end('SIGTERM');
        clearTimeout(late);
        if (code !== 0 && code !== undefined) throw new Error(`the server stopped with ${code}:\n${this.log}`);
    }

    /** What it logged as an error, or about a panic. */
    get complaints() {
        return this.log.split('\n').filter(line => /\bERROR\b|panicked/.test(line));
    }

    async #end(signal) {
        const child = this.#child;
        this.#child = undefined;
        if (!child) return undefined;
        if (child.exitCode === null && child.signalCode === null) {
            const ended = once(child, 'exit');
            if (child.kill(signal)) await ended;
        }
        return child.exitCode ?? child.signalCode;
    }
}
