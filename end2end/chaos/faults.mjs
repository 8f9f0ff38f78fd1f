// What goes wrong. Each fault ends with everything running again; three threads of them go on side by side.
import { setTimeout as pause } from 'node:timers/promises';
import { FAULTS } from '../lib/fault_proxy.mjs';
import { until } from '../lib/until.mjs';

const WRITES = /\/(submissions|redemptions)$/;
/** How long what hangs on the network hangs. */
const HANG_MS = 2500;

/** Processes: one at a time, so that somebody is always there to answer. */
const PROCESSES = {
    'server killed': async ({ servers }, chance) => {
        const server = chance.pick(servers);
        await server.kill();
        await pause(chance.between(0, 1500));
        await server.start();
    },
    'server stopped and started': async ({ servers }, chance) => {
        const server = chance.pick(servers);
        await server.stop();
        await server.start();
    },
    'server paused beyond its leases': async ({ servers, leaseMs }, chance) => {
        const server = chance.pick(servers);
        server.signal('SIGSTOP');
        await pause(leaseMs + chance.between(200, 1500));
        server.signal('SIGCONT');
    },
    // One backend killed: Postgres ends all the others, and recovers from its log.
    'Postgres crashed': async ({ database }) => {
        const victim = `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1`;
        const [backend] = await database.rows(victim);
        if (!backend) return;
        process.kill(backend.pid, 'SIGKILL');
        await until('Postgres is back', () => database.rows('SELECT 1'), 30_000);
    },
    'connections cut by Postgres': async ({ database }) => {
        await database.rows(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
        );
    },
    'submissions locked': async ({ database }, chance) => {
        const release = await database.holdSubmissions();
        await pause(chance.between(200, 3000));
        await release();
    },
    'Redis killed': async ({ redis }, chance) => {
        await redis.kill();
        await pause(chance.between(0, 1500));
        await redis.start();
    },
    'Redis flushed': ({ redis }) => redis.flush(),
};

async function keepTrying(faults, stage, chance, over, counts) {
    const names = Object.keys(faults).filter(name => stage.redis || !name.startsWith('Redis'));
    while (!over.aborted) {
        const name = chance.pick(names);
        await faults[name](stage, chance);
        counts.set(name, (counts.get(name) ?? 0) + 1);
        await pause(chance.between(100, 1500));
    }
}

/** The network of the next request or the next few, each in its own way. */
const NETWORKS = Object.fromEntries(Object.keys(FAULTS).map(kind => [`network: ${kind}`, async ({ proxies }, chance) => {
    const injection = chance.pick(proxies).inject(kind, { path: WRITES, times: chance.between(1, 3) });
    await pause(HANG_MS);
    injection.stop();
    await injection.end();
}]));

/** The provider of rewards, for a while; then it is well again. */
const PROVIDERS = Object.fromEntries(['slow', 'lose-answer', 'error', 'error-after', 'down'].map(mode => [`provider: ${mode}`, async ({ provider }, chance) => {
    await provider.behave(mode);
    await pause(chance.between(500, 4000));
    await provider.behave('ok');
    await pause(chance.between(500, 2000));
}]));

/** Lets things go wrong until the signal; gives how often each did. */
export async function disturb(stage, chance, over) {
    const counts = new Map();
    const threads = [PROCESSES, NETWORKS, PROVIDERS].map(faults => keepTrying(faults, stage, chance.fork(), over, counts));
    await Promise.all(threads);
    return counts;
}
