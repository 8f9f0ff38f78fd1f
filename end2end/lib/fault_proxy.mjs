// A bad network: a proxy in front of the real server that spoils chosen requests, each in one of the ways that networks have.
import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const TRICKLE_BYTES = 1;
const TRICKLE_EVERY_MS = 100;

/**
 * What can happen to one request. `spoil` is given the request and does everything; `reaches` says whether the server gets it before
 * the fault is released.
 */
export const FAULTS = {
    /** It hangs on its way there; once released it arrives, whether or not anybody still waits. */
    delay: {
        reaches: false,
        spoil: async (exchange, { released }) => {
            exchange.struck();
            await released;
            await exchange.forward();
            exchange.answer();
        },
    },
    /** The connection breaks before the server has seen it. */
    cut_before: {
        reaches: false,
        spoil: exchange => {
            exchange.struck();
            exchange.cut();
        },
    },
    /** The server does the work; the connection breaks before a byte of its answer. */
    cut_after: {
        reaches: true,
        spoil: async exchange => {
            await exchange.forward();
            exchange.struck();
            exchange.cut();
        },
    },
    /** The connection breaks in the middle of the answer. */
    cut_within: {
        reaches: true,
        spoil: async exchange => {
            await exchange.forward();
            exchange.struck();
            exchange.begin(Math.floor(exchange.body.length / 2));
            exchange.cut();
        },
    },
    /** The server does the work; its answer never comes, and nothing says so. */
    swallow: {
        reaches: true,
        spoil: async (exchange, { released }) => {
            await exchange.forward();
            exchange.struck();
            await released;
            exchange.cut();
        },
    },
    /** The server does the work; something in between answers in its place. */
    bad_gateway: {
        reaches: true,
        spoil: async exchange => {
            await exchange.forward();
            exchange.struck();
            exchange.refuse(502);
        },
    },
    /** Something in between refuses for a moment. */
    unavailable: {
        reaches: false,
        spoil: exchange => {
            exchange.struck();
            exchange.refuse(503, { 'retry-after': '1' });
        },
    },
    /** The answer comes byte by byte, for longer than anybody waits; once released, the rest at once. */
    trickle: {
        reaches: true,
        spoil: async (exchange, { released }) => {
            await exchange.forward();
            exchange.struck();
            let open = false;
            void released.then(() => (open = true));
            let sent = 0;
            while (!open && sent < exchange.body.length) {
                exchange.begin(sent, sent + TRICKLE_BYTES);
                sent += TRICKLE_BYTES;
                await Promise.race([released, pause(TRICKLE_EVERY_MS)]);
            }
            exchange.finish(sent);
        },
    },
};

/** One request through the proxy. */
class Exchange {
    #upstream;
    #response;
    #hasBegun = false;
    struck;

    constructor(upstream, request, requestBody, response, struck) {
        this.#upstream = upstream;
        this.request = request;
        this.requestBody = requestBody;
        this.#response = response;
        this.struck = struck;
        response.on('error', () => {});
    }

    /** Sends it on and reads the answer whole. */
    async forward() {
        const { method, url, rawHeaders } = this.request;
        const upstream = http.request(new URL(url, this.#upstream), { method, headers: rawHeaders, agent: false });
        upstream.end(this.requestBody);
        const [answer] = await once(upstream, 'response');
        this.status = answer.statusCode;
        this.headers = answer.headers;
        this.body = await readWhole(answer);
    }

    /** Passes the answer on as it comes, for what is not spoilt: streams too. */
    pass() {
        const { method, url, rawHeaders } = this.request;
        const upstream = http.request(new URL(url, this.#upstream), { method, headers: rawHeaders, agent: false });
        upstream.on('response', answer => {
            this.#response.writeHead(answer.statusCode, { ...answer.headers, connection: 'close' });
            answer.pipe(this.#response);
            answer.on('error', () => this.cut());
        });
        upstream.on('error', () => this.cut());
        this.#response.on('close', () => upstream.destroy());
        upstream.end(this.requestBody);
    }

    answer() {
        this.finish(0);
    }

    /** Sends the head if it is not sent yet, and the body's bytes between two places. */
    begin(from, to) {
        if (!this.#hasBegun) {
            this.#hasBegun = true;
            const { 'transfer-encoding': _, ...headers } = this.headers;
            this.#response.writeHead(this.status, { ...headers, 'content-length': this.body.length, connection: 'close' });
        }
        this.#response.write(to === undefined ? this.body.subarray(0, from) : this.body.subarray(from, to));
    }

    finish(from) {
        this.begin(from, this.body.length);
        this.#response.end();
    }

    cut() {
        this.request.socket.destroy();
    }

    refuse(status, headers = {}) {
        this.#response.writeHead(status, { 'content-type': 'text/html', connection: 'close', ...headers });
        this.#response.end('<h1>Not now</h1>');
    }
}

async function readWhole(stream) {
    const parts = [];
    for await (const part of stream) parts.push(part);
    return Buffer.concat(parts);
}

/** One fault that waits for its requests. */
class Injection {
    #times;
    #running = [];

    constructor(kind, { path, holds = '', times = 1 }) {
        this.fault = FAULTS[kind];
        if (!this.fault) throw new Error(`there is no fault ${kind}`);
        [this.path, this.holds, this.#times] = [path, holds, times];
        this.released = new Promise(resolve => (this.release = resolve));
        /** Resolves when a request was struck; with a fault behind the server, when the server has answered. */
        this.struck = new Promise(resolve => (this.strike = resolve));
        /** How many requests it has met. */
        this.count = 0;
    }

    takes(request, body) {
        if (this.#times <= this.count || !this.path.test(request.url)) return false;
        if (this.holds && !`${request.url} ${body}`.includes(this.holds)) return false;
        this.count += 1;
        return true;
    }

    run(exchange) {
        // A server that is away is one more way in which no answer comes.
        const running = Promise.resolve(this.fault.spoil(exchange, this)).catch(() => exchange.cut());
        this.#running.push(running);
    }

    /** Meets nothing more; what it has met stays spoilt until it is released. */
    stop() {
        this.#times = 0;
    }

    /** Waits until everything that it met is over; releases it first. */
    async end() {
        this.release();
        await Promise.all(this.#running);
    }
}

export class FaultProxy {
    #server;
    #injections = [];

    /** Starts one on a free port, in front of `upstream`. */
    static async start(upstream) {
        const proxy = new FaultProxy();
        proxy.#server = http.createServer(async (request, response) => {
            const body = await readWhole(request).catch(() => undefined);
            if (!body) return;
            const text = body.toString('latin1');
            const injection = proxy.#injections.find(injection => injection.takes(request, text));
            const exchange = new Exchange(upstream, request, body, response, () => injection?.strike());
            if (injection) injection.run(exchange);
            else exchange.pass();
        });
        proxy.#server.listen(0, '127.0.0.1');
        await once(proxy.#server, 'listening');
        return proxy;
    }

    get url() {
        return `http://127.0.0.1:${this.#server.address().port}`;
    }

    /** Lets a fault wait for the next `times` requests whose path fits and whose address or body holds a text. */
    inject(kind, { path, holds, times }) {
        const injection = new Injection(kind, { path, holds, times });
        this.#injections.push(injection);
        return injection;
    }

    async stop() {
        for (const injection of this.#injections) injection.release();
        this.#server.closeAllConnections();
        await new Promise(resolve => this.#server.close(resolve));
    }
}
