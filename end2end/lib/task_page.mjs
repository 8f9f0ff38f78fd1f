// A student's task page.
import assert from 'node:assert/strict';

/** Where a page sends what is handed in. */
export const SUBMIT = '**/api/fn/submit_task*';

export class TaskPage {
    constructor(page) {
        this.page = page;
        this.editor = page.locator('#content[name=content]');
        this.button = page.locator('form.answer button.primary');
        this.line = page.locator('.phase');
        this.submitted = page.locator('.submitted .content');
    }

    /** Waits until the form is the script's: before that a press is a plain form's. */
    async hydrated() {
        await this.page.waitForFunction(() => document.querySelector('form.answer')?.listenedTypes?.has('submit'));
    }

    async write(text) {
        await this.editor.fill(text);
    }

    /** Waits until the status line is in a phase: `submitting`, `unknown`, `submitted` or `refused`. */
    async reaches(phase, options) {
        await this.page.locator(`.phase .phase-${phase}`).waitFor(options);
    }

    /** Waits for the end that every test wants, and for the text that it wants to be handed in. */
    async isSubmitted(text) {
        await this.reaches('submitted');
        await this.submitted.waitFor();
        assert.equal(await this.submitted.textContent(), text);
    }

    /** Presses at once, without the care that a click takes to hit; the moment is what matters. */
    async press() {
        await this.button.evaluate(button => button.click());
    }

    /** Presses what there is to press, as somebody who does not trust the page; a settled page has no button. */
    async pressIfThere() {
        await this.hydrated();
        await this.page.evaluate(() => document.querySelector('form.answer button.primary')?.click());
    }

    async reload() {
        await this.page.reload({ waitUntil: 'load' });
    }
}
