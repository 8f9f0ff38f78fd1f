// Goes away with the first real test; shows what `make test` passes on.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import test from 'node:test';

test('the built server and site are there', () => {
    for (const name of ['YICI_SERVER_BIN', 'YICI_SITE', 'YICI_CHROMIUM']) {
        assert.ok(existsSync(process.env[name] ?? ''), `${name} is ${process.env[name]}`);
    }
});
