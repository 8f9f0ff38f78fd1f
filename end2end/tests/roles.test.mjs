// Who may see which page, and what everybody else gets: words, a status, a way out.
import assert from 'node:assert/strict';
import { hydrated, signInByHand } from '../lib/browser.mjs';
import { setStage } from '../lib/stage.mjs';

const { scene } = setStage('roles');
const HOMES = { student1: '/tasks', teacher1: '/progress', parent1: '/report', ops1: '/panel', admin1: '/panel' };
const PAGES = ['/tasks', '/tasks/1', '/progress', '/report', '/panel'];
const MAY = { '/tasks': ['student1'], '/tasks/1': ['student1'], '/progress': ['teacher1'], '/report': ['parent1'], '/panel': ['ops1', 'admin1'] };

for (const [name, home] of Object.entries(HOMES)) {
    scene(`${name} starts on ${home} and gets words with 403 on the pages of other roles`, async stage => {
        const person = await stage.enterAs(name);
        // A browser reports a page's status as an error, also where it is meant.
        person.allow(/the server responded with a status of 40[34]/);
        const tab = await person.openLive('/');
        await tab.waitForURL(`**${home}`);
        for (const path of PAGES) {
            const answer = await tab.goto(path);
            if (MAY[path].includes(name)) {
                assert.equal(answer.status(), 200, path);
            } else {
                assert.equal(answer.status(), 403, path);
                await hydrated(tab);
                assert.equal(await tab.locator('.message h1').textContent(), 'Not for this account');
                assert.equal(await tab.getByRole('link', { name: 'To my page' }).getAttribute('href'), home);
            }
        }
        for (const path of ['/nowhere', ...(name === 'student1' ? ['/tasks/999999', '/tasks/x'] : [])]) {
            const answer = await tab.goto(path);
            assert.equal(answer.status(), 404, path);
            await hydrated(tab);
            assert.equal(await tab.locator('.message h1').textContent(), 'Nothing here', path);
        }
        await tab.getByRole('link', { name: 'To my page' }).click();
        await tab.waitForURL(`**${home}`);
    });
}

scene('from the pages of one half to those of the other, and back', async stage => {
    const student = await stage.enterAs('student1');
    student.allow(/the server responded with a status of 403/);
    const tab = await student.openLive('/tasks');
    const script = () => tab.locator('link[rel=modulepreload]').getAttribute('href');
    const school = await script();
    await tab.goto('/panel');
    await hydrated(tab);
    assert.notEqual(await script(), school);
    await tab.locator('nav a[href="/tasks"]').click();
    await tab.waitForURL('**/tasks');
    await tab.locator('.task-row').first().waitFor();
    await hydrated(tab);
    assert.equal(await script(), school);
    await tab.goBack();
    await tab.waitForURL('**/panel');
    await tab.locator('.message h1').filter({ hasText: 'Not for this account' }).waitFor();
});

scene('without identity every page leads to sign-in', async stage => {
    const stranger = await stage.enter();
    const tab = await stranger.openLive('/');
    for (const path of PAGES) {
        const answer = await tab.goto(path);
        assert.ok(answer.request().redirectedFrom(), `${path} is redirected by the server`);
        assert.equal(new URL(tab.url()).pathname, '/');
        await tab.locator('.sign-in').waitFor();
    }
});

scene('without identity every page is redirected whatever its caller accepts', async stage => {
    for (const accept of ['text/html', '*/*']) {
        for (const path of PAGES) {
            const answer = await fetch(stage.server.url + path, { headers: { accept }, redirect: 'manual' });
            assert.ok([302, 303, 307].includes(answer.status), `${path}, ${accept}: ${answer.status}`);
            assert.equal(answer.headers.get('location'), `/?next=${path}`);
        }
    }
});

scene('every page has a title of its own, also the one that refuses and the one that is not there', async stage => {
    const person = await stage.enterAs('student1');
    person.allow(/the server responded with a status of 40[34]/);
    const tab = await person.openLive('/tasks');
    const titles = {};
    for (const path of ['/tasks', '/tasks/1', '/panel', '/nowhere', '/tasks/999999']) {
        await tab.goto(path);
        await hydrated(tab);
        titles[path] = await tab.title();
    }
    assert.match(titles['/tasks'], /^My tasks/);
    assert.match(titles['/panel'], /^Not for this account/);
    assert.match(titles['/nowhere'], /^Nothing here/);
    assert.match(titles['/tasks/999999'], /^Nothing here/);
    assert.ok(titles['/tasks/1'].length > 'Yici'.length + 3);
});

scene('a wrong password is answered in words, and the name stays filled', async stage => {
    for (const options of [{}, { javaScriptEnabled: false }, { lang: 'zh' }]) {
        const person = await stage.enter(options);
        const tab = await person.open('/');
        await signInByHand(tab, 'student1', 'wrong');
        const words = tab.getByRole('alert');
        await words.waitFor();
        assert.match(await words.textContent(), options.lang ? /用户名或密码不对/ : /Name or password is wrong/);
        assert.equal(await tab.locator('#username').inputValue(), 'student1');
        assert.equal(await tab.locator('#password').inputValue(), '');
        await tab.locator('#password').fill('demo');
        await tab.locator('#password').press('Enter');
        await tab.waitForURL('**/tasks');
    }
});

scene('a name with special characters comes back as it was typed', async stage => {
    const person = await stage.enter();
    const tab = await person.openLive('/');
    const name = '"><b>学生 & 1%';
    await signInByHand(tab, name, 'wrong');
    await tab.getByRole('alert').waitFor();
    assert.equal(await tab.locator('#username').inputValue(), name);
});

scene('another person\'s session ends with signing out, and the next one sees nothing of it', async stage => {
    const person = await stage.enterAs('student1');
    const tab = await person.openLive('/tasks/1');
    await tab.locator('#content[name=content]').fill('A secret draft.');
    await tab.getByRole('button', { name: 'Sign out' }).click();
    await tab.locator('.sign-in').waitFor();
    await signInByHand(tab, 'student2');
    await tab.waitForURL('**/tasks');
    await tab.goto('/tasks/1');
    await tab.waitForFunction(() => document.querySelector('form.answer')?.listenedTypes?.has('submit'));
    assert.equal(await tab.locator('#content[name=content]').inputValue(), '');
});
