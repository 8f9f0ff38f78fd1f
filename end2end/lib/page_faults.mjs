// What is wrong with a page as it stands there.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const RULES = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'];
let axe;

/** What sticks out sideways, what is cut off, and what an audit of accessibility finds. */
export async function pageFaults(page) {
    axe ??= await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    const cut = await page.evaluate(() =>
        [...document.querySelectorAll('main *')]
            .filter(element => {
                const box = element.getBoundingClientRect();
                return box.width > 2 && (box.right > innerWidth + 1 || box.left < -1);
            })
            .map(element => element.outerHTML.slice(0, 120)),
    );
    // Evaluated by the test's own channel: the page's policy forbids any other script, as it should.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(rules => axe.run({ runOnly: rules }), RULES);
    return [
        ...(wide > 0 ? [`${wide} pixels stick out`] : []),
        ...cut.map(html => `cut off: ${html}`),
        ...violations.map(one => `${one.id}: ${one.nodes[0].html.slice(0, 160)}`),
    ];
}
