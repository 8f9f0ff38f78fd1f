// One database, one server and one browser for a test file; scenes are its tests.
import assert from 'node:assert/strict';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Api } from './api.mjs';
import { Person, launch } from './browser.mjs';
import { Database } from './database.mjs';
import { Server } from './server.mjs';

const SCENE_MS = 90_000;
const ARTIFACTS = fileURLToPath(new URL('../artifacts/', import.meta.url));

/** The path of an artefact, in a folder that is there. */
export async function artifact(...names) {
    const file = path.join(ARTIFACTS, ...names);
    await mkdir(path.dirname(file), { recursive: true });
    return file;
}

/**
 * Sets the stage for the test file of that name: `settings` are the server's, `servers` how many share the database,
 * `prepare` is given the stage before the first scene.
 */
export function setStage(name, { settings = {}, servers = 1, browser = true, prepare } = {}) {
    const stage = { servers: [] };
    before(async () => {
        await forgetEvidence(name);
        stage.database = await Database.create(name);
        for (let i = 0; i < servers; i++) stage.servers.push(await Server.start(stage.database, settings));
        stage.server = stage.servers[0];
        if (browser) stage.browser = await launch();
        await prepare?.(stage);
    });
    after(async () => {
        await stage.browser?.close();
        try {
            for (const server of stage.servers) await server.stop();
        } finally {
            await writeFile(await artifact(`${name}.log`), stage.servers.map(server => server.log).join('\n'));
            await stage.database?.drop();
        }
    });
    stage.scene = (sentence, play) => test(sentence, { timeout: SCENE_MS }, () => perform(stage, name, sentence, play));
    return stage;
}

async function perform(stage, name, sentence, play) {
    const people = [];
    const scene = {
        ...stage,
        mayComplain: false,
        /** Somebody at a browser of their own. */
        enter: async options => {
            const person = await Person.enter(stage.browser, stage.server.url, options);
            people.push(person);
            return person;
        },
        /** Somebody of the demo, signed in at a browser of their own. */
        enterAs: async (account, options) => (await scene.enter(options)).signIn(account),
        /** Keeps a picture of what somebody sees. */
        draw: async (page, file) => page.screenshot({ path: await artifact('phases', `${file}.png`), fullPage: true }),
        /** The API for somebody of the demo. */
        api: account => Api.signIn(stage.server.url, account),
    };
    const logged = stage.servers.map(server => server.complaints.length);
    try {
        await play(scene);
        assert.deepEqual(people.flatMap(person => person.complaints), [], 'the pages complained');
        const errors = stage.servers.flatMap((server, i) => server.complaints.slice(logged[i]));
        if (!scene.mayComplain) assert.deepEqual(errors, [], 'the server complained');
    } catch (error) {
        await keepEvidence(people, name, sentence);
        throw error;
    } finally {
        for (const person of people) await person.context.close();
    }
}

/** What every open page looks like, and what it said. */
async function keepEvidence(people, name, sentence) {
    const label = sentence.replace(/[^a-z0-9]+/gi, '-').slice(0, 60);
    let n = 0;
    for (const person of people) {
        for (const page of person.context.pages()) {
            n += 1;
            const file = await artifact('failed', `${name}-${label}-${n}`);
            // The failure itself is what is told; a page that cannot be drawn must not hide it.
            await page.screenshot({ path: `${file}.png`, fullPage: true }).catch(() => {});
            const said = [page.url(), ...person.complaints, await page.content().catch(String)].join('\n');
            await writeFile(`${file}.txt`, said);
        }
    }
}

/** What failed the last time says nothing of this time. */
async function forgetEvidence(name) {
    const folder = path.dirname(await artifact('failed', name));
    for (const file of await readdir(folder)) {
        if (file.startsWith(`${name}-`)) await rm(path.join(folder, file));
    }
}
