// Waiting for a condition.
import { setTimeout as pause } from 'node:timers/promises';

const LOOK_EVERY_MS = 50;

/** Looks again until `look` gives something true, and gives that; after `ms` it throws with what was waited for. */
export async function until(what, look, ms = 15_000) {
    const end = Date.now() + ms;
    let last;
    do {
        try {
            const found = await look();
            if (found) return found;
            last = undefined;
        } catch (error) {
            last = error;
        }
        await pause(LOOK_EVERY_MS);
    } while (Date.now() < end);
    throw new Error(`waited ${ms} ms in vain until ${what}`, { cause: last });
}

/** Something to wait for that another place opens. */
export function gate() {
    let open;
    const opened = new Promise(resolve => (open = resolve));
    return { open, opened };
}
