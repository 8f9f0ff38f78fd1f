// A receiver of messages that answers as it is told to, and remembers what it was sent.
import { once } from 'node:events';
import http from 'node:http';

export class Webhook {
    #server;
    /** What it answers. */
    status = 204;
    /** The key, trace and body of each delivery. */
    deliveries = [];

    static async start() {
        const hook = new Webhook();
        hook.#server = http.createServer(async (request, response) => {
            let body = '';
            for await (const text of request.setEncoding('utf8')) body += text;
            const { 'idempotency-key': key, traceparent } = request.headers;
            hook.deliveries.push({ key, traceparent, body: JSON.parse(body) });
            response.writeHead(hook.status).end();
        });
        hook.#server.listen(0, '127.0.0.1');
        await once(hook.#server, 'listening');
        return hook;
    }

    get url() {
        return `http://127.0.0.1:${this.#server.address().port}/hook`;
    }

    async stop() {
        this.#server.closeAllConnections();
        await new Promise(resolve => this.#server.close(resolve));
    }
}
