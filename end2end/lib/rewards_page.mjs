// A student's page of rewards.
import assert from 'node:assert/strict';
import { until } from './until.mjs';

/** Where a page sends what is redeemed, and where it asks what became of it. */
export const REDEEM = '**/api/fn/redeem_reward*';
export const LOAD = '**/api/fn/load_rewards*';

const READING_MS = 800;

export class RewardsPage {
    constructor(page) {
        this.page = page;
        this.line = page.locator('.phase');
        /** The cheapest reward. */
        this.row = page.locator('.task-list').first().locator('.reward-row').first();
        this.button = this.row.locator('button.primary');
        this.bought = page.locator('.part + .task-list .reward-row');
    }

    /** Opens it in a new tab of somebody, as a script's page unless there is none. */
    static async open(person, { path = '/rewards', script = true } = {}) {
        const page = new RewardsPage(await person.open(path));
        if (script) await page.hydrated();
        return page;
    }

    async hydrated() {
        await this.page.locator('.freshness .dot-live').waitFor();
    }

    /** Waits until the line is in a phase: `submitting`, `unknown`, `submitted` or `refused`. */
    async reaches(phase, words) {
        await this.line.locator(`.phase-${phase}`, { hasText: words }).waitFor();
    }

    /** Presses at once, if there is something to press. */
    async pressIfThere() {
        await this.page.evaluate(() => document.querySelector('.reward-row button.primary')?.click());
    }

    /** Waits until the points are so many. */
    async shows(points) {
        const shown = async () => Number((await this.page.locator('.points strong').textContent()).replaceAll(',', ''));
        await until(`the page shows ${points} points`, async () => (await shown()) === points);
    }

    async reload() {
        await this.page.reload({ waitUntil: 'load' });
        await this.hydrated();
    }

    /** Lets as much time pass as somebody needs to read what became of it; a press before that means nothing. */
    async isRead() {
        await this.page.waitForTimeout(READING_MS);
    }

    /** Nothing sticks out sideways. */
    async fits() {
        const wide = await this.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${wide} pixels stick out`);
    }
}
