// The browser, and people in it: each has a context of their own, and every page is listened to.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { environment } from './environment.mjs';
import { PASSWORD } from './api.mjs';
import { TaskPage } from './task_page.mjs';

export const DESKTOP = { width: 1440, height: 900 };
export const PHONE = { width: 390, height: 844 };
/** Long enough for two busy cores and a debug build. */
const PATIENCE_MS = 20_000;
const MANY_TABS = 40;

export function launch() {
    return chromium.launch({
        executablePath: environment.chromium,
        args: [
            '--no-sandbox',
            '--disable-gpu',
            '--disable-quic',
            '--no-first-run',
            '--disable-background-networking',
            '--disable-component-update',
            '--disable-sync',
        ],
    });
}

/** Runs in every document before its own scripts: reports broken policies, and marks what the page listens to. */
function instrument() {
    document.addEventListener('securitypolicyviolation', event => {
        console.error(`securitypolicyviolation: ${event.violatedDirective} ${event.blockedURI}`);
    });
    const listen = EventTarget.prototype.addEventListener;
    EventTarget.prototype.addEventListener = function (type, ...rest) {
        if (this instanceof Element) (this.listenedTypes ??= new Set()).add(type);
        return listen.call(this, type, ...rest);
    };
    const repeat = window.setInterval;
    window.setInterval = (...all) => {
        window.isTicking = true;
        return repeat(...all);
    };
}

/** Somebody in front of a browser. */
export class Person {
    /** What the pages complained about. */
    complaints = [];
    #allowed = [];

    static async enter(browser, url, { lang = 'en', theme = 'light', ...options } = {}) {
        const person = new Person();
        person.url = options.baseURL ?? url;
        person.context = await browser.newContext({
            baseURL: url,
            locale: lang === 'zh' ? 'zh-CN' : 'en-GB',
            timezoneId: 'Asia/Shanghai',
            colorScheme: theme,
            viewport: DESKTOP,
            ...options,
        });
        // On a busy machine a browser without scripts notices that nothing used them.
        if (options.javaScriptEnabled === false) person.allow(/was preloaded using link preload but not used/);
        person.context.setDefaultTimeout(PATIENCE_MS);
        await person.context.addInitScript(instrument);
        person.context.on('page', page => person.#listen(page));
        return person;
    }

    #listen(page) {
        const note = text => {
            if (!this.#allowed.some(pattern => pattern.test(text))) this.complaints.push(`${page.url()}: ${text}`);
        };
        page.on('console', message => {
            if (['error', 'warning'].includes(message.type())) note(`${message.type()}: ${message.text()}`);
        });
        page.on('pageerror', error => note(`pageerror: ${error.stack ?? error}`));
        page.on('crash', () => note('the page crashed'));
    }

    /** From now on this is expected: a server that was killed cannot be reached without a message. */
    allow(pattern) {
        this.#allowed.push(pattern);
    }

    /** Signs in without the page, which has tests of its own. */
    async signIn(name) {
        const answer = await this.context.request.post('/api/v1/session', { data: { username: name, password: PASSWORD } });
        if (!answer.ok()) throw new Error(`${name} cannot sign in: ${answer.status()} ${await answer.text()}`);
        return this;
    }

    /** Opens a tab. */
    async open(path) {
        const page = await this.context.newPage();
        await page.goto(path, { waitUntil: 'load' });
        return page;
    }

    /** Opens a tab and waits until a script runs it. */
    async openLive(path) {
        const page = await this.open(path);
        await hydrated(page);
        return page;
    }

    /** Opens a task in a tab and waits until its form is the script's. */
    async openTask(task) {
        const page = new TaskPage(await this.open(`/tasks/${task.id}`));
        await page.hydrated();
        return page;
    }
}

/** Waits until the page's clock ticks, and all its times are the reader's. */
export async function hydrated(page) {
    await page.waitForFunction(
        () =>
            window.isTicking &&
            ![...document.querySelectorAll('time')].some(time => /^\d{4}-\d\d-\d\dT/.test(time.textContent)),
    );
}

/** Signs in as a person does. */
export async function signInByHand(page, name, password = PASSWORD) {
    await page.locator('#username').fill(name);
    await page.locator('#password').fill(password);
    await page.locator('.sign-in button.primary').click();
}

/** Presses Tab until the focus is on what the selector names; what has the focus must be seen to have it. */
export async function tabTo(page, selector) {
    for (let i = 0; i < MANY_TABS; i++) {
        await page.keyboard.press('Tab');
        const at = await page.evaluate(wanted => {
            const element = document.activeElement;
            const style = getComputedStyle(element);
            const visible = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
            return { found: element.matches(wanted), visible, name: element.outerHTML.slice(0, 80) };
        }, selector);
        assert.ok(at.visible, `the focus is not seen on ${at.name}`);
        if (at.found) return;
    }
    assert.fail(`${MANY_TABS} tabs do not reach ${selector}`);
}
