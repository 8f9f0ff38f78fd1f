// What others write types for: the Grafana dashboard by Grafana's own, and the client by those beside it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const end2end = dirname(dirname(fileURLToPath(import.meta.url)));
const compiler = join(end2end, 'node_modules/typescript/bin/tsc');
const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'esnext', '--moduleResolution', 'bundler', '--target', 'es2022'];

/** What the compiler finds wrong with a program; empty when it is content. */
function faults(program) {
    const dir = mkdtempSync(join(end2end, '.types-'));
    try {
        writeFileSync(join(dir, 'program.ts'), program);
        execFileSync(process.execPath, [compiler, ...options, join(dir, 'program.ts')], { encoding: 'utf8', stdio: 'pipe' });
        return '';
    } catch (error) {
        return `${error.stdout}${error.stderr}`;
    } finally {
        rmSync(dir, { recursive: true });
    }
}

test('the dashboard is one by the schema of Grafana', () => {
    const dashboard = readFileSync(join(end2end, '../server/observability/dashboard.json'), 'utf8');
    const program = json => `import type { Dashboard } from '@grafana/schema';\nexport const dashboard: Dashboard = ${json};\n`;
    assert.equal(faults(program(dashboard)), '');
    // What is no dashboard is found, or the line above says nothing.
    assert.match(faults(program(dashboard.replaceAll('"gridPos"', '"place"'))), /'"place"' does not exist in type 'Panel/);
});

test('what the client says about its types is how it is used', () => {
    const program = open => `
        import { YiciClient, memoryStorage } from '../client/yici-client.mjs';
        import type { Phase } from '../client/yici-client.mjs';
        const client = new YiciClient({ baseUrl: 'http://127.0.0.1', token: 'token', clientId: 'client', storage: memoryStorage() });
        const submission = await client.open(${open});
        submission.subscribe(({ phase, content, code }) => {
            const words: [Phase, string, string | undefined] = [phase, content, code ?? undefined];
            console.log(words);
        });
        await submission.press('my work');
    `;
    assert.equal(faults(program("{ taskId: '1', studentId: '2', submitVersion: 1 }")), '');
    assert.match(faults(program("{ taskId: '1' }")), /studentId/);
});
