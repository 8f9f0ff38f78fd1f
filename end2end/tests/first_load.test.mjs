// What a browser has to load before a page is alive.
import assert from 'node:assert/strict';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { environment } from '../lib/environment.mjs';

/** What a browser loads before a page is alive, compressed: the styles, and one of the two halves of the pages. */
const MOST_BYTES = 350_000;

test('the first load is at most 350 kB', async () => {
    const folder = path.join(environment.site, 'pkg');
    const names = (await readdir(folder)).filter(file => file.endsWith('.br'));
    const size = async wanted => {
        const sizes = names.filter(wanted).map(async file => (await stat(path.join(folder, file))).size);
        return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    };
    const styles = await size(file => file.endsWith('.css.br'));
    assert.ok(styles > 0);
    for (const half of ['yici', 'ops']) {
        const scripts = await size(file => file.startsWith(`${half}.`) && !file.endsWith('.css.br'));
        assert.ok(scripts > 0 && styles + scripts <= MOST_BYTES, `${half}: ${styles + scripts} bytes`);
    }
});
