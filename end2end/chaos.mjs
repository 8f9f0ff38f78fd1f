// Everything goes wrong at random, for a while, under load; then every rule of the product is looked up in the rows. `make chaos`
// runs it on a cluster of its own (which it crashes). --seed repeats the draws, though not what the processes make of them.
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { audit, isQuiet } from './chaos/audit.mjs';
import { Notes, Student } from './chaos/crowd.mjs';
import { disturb } from './chaos/faults.mjs';
import { Chance } from './chaos/random.mjs';
import { Api } from './lib/api.mjs';
import { Database } from './lib/database.mjs';
import { FaultProxy } from './lib/fault_proxy.mjs';
import { Provider } from './lib/provider.mjs';
import { Redis } from './lib/redis.mjs';
import { Server } from './lib/server.mjs';
import { until } from './lib/until.mjs';

const { values } = parseArgs({
    options: { seconds: { type: 'string', default: '60' }, students: { type: 'string', default: '12' }, seed: { type: 'string' } },
});
const LEASE_MS = 2000;
/** Longest time until everything has ended by itself: leases, proofs by the provider, pauses of the scanner. */
const SETTLE_MS = 120_000;

const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
console.log(`-- chaos for ${values.seconds} s, ${values.students} students, --seed ${seed}`);
const chance = new Chance(seed);
const database = await Database.create('chaos');
const redis = await Redis.start();
if (!redis) console.log('-- no redis-server: without the front lock');
const provider = await Provider.start({ delayMs: 1500 });
const settings = {
    RUST_LOG: 'error', YICI_LEASE_SECONDS: String(LEASE_MS / 1000), YICI_SCAN_INTERVAL_SECONDS: '1', YICI_STUCK_AFTER_SECONDS: '10',
    YICI_RATE_LIMIT_PER_ACCOUNT: '0', YICI_RATE_LIMIT_PER_ADDRESS: '0', YICI_FRONT_LOCK_TTL_MS: '1000',
    YICI_REWARD_URL: provider.url, YICI_REWARD_TIMEOUT_MS: '500', ...(redis ? { REDIS_URL: redis.url } : {}),
};
const servers = [];
const proxies = [];
try {
    for (let n = 0; n < 2; n += 1) {
        servers.push(await Server.start(database, settings));
        proxies.push(await FaultProxy.start(servers[n].url));
    }
    const notes = new Notes();
    const end = new AbortController();
    const urls = proxies.map(proxy => proxy.url);
    const signedIn = [];
    for (let n = 1; n <= Number(values.students); n += 1) signedIn.push(await Api.signIn(servers[0].url, `student${n}`));
    const practice = (await signedIn[0].tasks()).find(task => task.kind === 'practice').id;
    const [reward] = await database.rows('SELECT id::text FROM reward ORDER BY price LIMIT 1');
    const crowd = signedIn.map(api => {
        const student = new Student({ urls, token: api.token, account: api.account, chance: chance.fork(), notes, over: end.signal });
        return student.live(practice, reward.id);
    });
    // A student who gives up ends it all; the failure is told below.
    const everybody = Promise.allSettled(crowd);
    const faults = disturb({ database, redis, provider, servers, proxies, leaseMs: LEASE_MS }, chance.fork(), end.signal);
    await Promise.race([pause(Number(values.seconds) * 1000), faults]);
    end.abort(Date.now());
    const counts = await faults;
    for (const { reason } of await everybody) if (reason) notes.violations.push(`a student gave up: ${reason.message}`);
    await until('everything has ended', () => isQuiet(database), SETTLE_MS).catch(() => {});
    // The last replays are written a second late.
    for (const server of servers) await server.stop();

    const { wrong, submissions, redemptions } = await audit(database, provider, notes);
    for (const [name, times] of [...counts].sort()) console.log(`  ${String(times).padStart(4)} × ${name}`);
    const statuses = [...notes.statuses].sort().map(([status, n]) => `${n} × ${status}`).join(', ');
    console.log(`  ${notes.intents} intents, ${notes.requests} requests: ${statuses}`);
    console.log(`  ${submissions} submissions, ${redemptions} redemptions`);
    for (const server of servers) if (/panicked/.test(server.log)) wrong.push(`a server panicked:\n${server.log}`);
    if (wrong.length > 0) for (const server of servers) console.error(server.complaints.slice(-50).join('\n'));
    if (wrong.length > 0) throw new Error(`${wrong.length} rules broken\n${wrong.join('\n')}`);
    console.log('Every intent had one effect and one answer.');
} catch (error) {
    console.error(`FAILED: ${error.message}`);
    process.exitCode = 1;
} finally {
    for (const server of servers) await server.kill();
    for (const proxy of proxies) await proxy.stop();
    await provider.stop();
    await redis?.kill();
    await database.drop();
}
