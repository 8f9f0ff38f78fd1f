// Rewards from a provider that behaves and misbehaves: whatever it does and whatever the student presses, each reward is given and paid
// for once, the person is told how it stands, and the points shown are those of the ledger.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { PHONE } from '../lib/browser.mjs';
import { Provider } from '../lib/provider.mjs';
import { LOAD, REDEEM, RewardsPage } from '../lib/rewards_page.mjs';
import { setStage } from '../lib/stage.mjs';
import { gate, until } from '../lib/until.mjs';
import { WORDS } from '../lib/words.mjs';

const PRICE = 50;
const provider = await Provider.start({ delayMs: 1_500 });
after(() => provider.stop());
const { scene } = setStage('rewards', {
    settings: {
        YICI_REWARD_URL: provider.url,
        YICI_REWARD_TIMEOUT_MS: '300',
        YICI_LEASE_SECONDS: '2',
        YICI_SCAN_INTERVAL_SECONDS: '1',
        YICI_DEMO_STUDENTS: '60',
    },
});
/** What a browser says about answers that do not come; the page itself must stay quiet. */
const UNREACHABLE = /Failed to load resource: net::ERR_/;
let n = 0;

/** A student of one's own with so many points, in front of the rewards. */
async function arrange(stage, { points = 120, mode = 'ok', lang = 'en', script = true } = {}) {
    const name = `student${++n}`;
    const api = await stage.api(name);
    await stage.database.grantPoints(api.account.id, points);
    await provider.behave(mode);
    const enter = async () => {
        const person = await stage.enterAs(name, { lang, viewport: PHONE, javaScriptEnabled: script });
        person.allow(UNREACHABLE);
        return person;
    };
    const person = await enter();
    return { stage, api, name, points, lang, words: WORDS[lang].reward, enter, person, page: await RewardsPage.open(person, { script }) };
}

/** So many were given, paid for and written down; page, balance and ledger agree. */
async function isTrue({ stage, api, points, page }, bought, keys = 1) {
    const id = api.account.id;
    const left = points - bought * PRICE;
    const ledger = await stage.database.rows(
        `SELECT (SELECT sum(amount)::int FROM points_entry WHERE account_id = $1) AS sum,
                (SELECT balance::int FROM points_balance WHERE account_id = $1) AS balance,
                (SELECT count(*)::int FROM redemption WHERE student_id = $1) AS bought,
                (SELECT count(*)::int FROM redemption_hold WHERE student_id = $1 AND state = 'open') AS open`,
        [id],
    );
    assert.deepEqual(ledger, [{ sum: left, balance: left, bought, open: 0 }]);
    const given = (await provider.calls(id)).filter(call => call.given);
    assert.equal(given.length, bought, 'given once each');
    assert.equal((await stage.database.keys(id)).length, keys, 'one intent has one key');
    await page.shows(left);
    assert.equal(await page.bought.count(), bought);
}

for (const lang of ['en', 'zh']) {
    scene(`a reward is redeemed once, and the page says so (${lang})`, async stage => {
        const at = await arrange(stage, { lang });
        await at.page.fits();
        await stage.draw(at.page.page, `rewards-idle-${lang}`);
        await at.page.button.click();
        await at.page.reaches('submitted', at.words.done);
        await isTrue(at, 1);
        await at.page.fits();
        await stage.draw(at.page.page, `rewards-done-${lang}`);
        // The next one is another intent.
        await at.page.row.getByRole('button', { name: new RegExp(String(PRICE)) }).waitFor();
        await at.page.isRead();
        await at.page.button.click();
        await until('the second one is there', async () => (await at.page.bought.count()) === 2);
        await isTrue(at, 2, 2);
        // Too few are left for a third.
        await at.page.row.filter({ hasText: at.words.missing(30) }).waitFor();
        assert.equal(await at.page.button.count(), 0);
    });

    for (const mode of ['slow', 'lose-answer', 'error-after']) {
        scene(`${mode}: the page says that it is not known, keeps the points, and finds out by itself (${lang})`, async stage => {
            const at = await arrange(stage, { mode, lang });
            await at.page.button.click();
            await at.page.reaches('unknown', at.words.unknown);
            await at.page.row.locator('.reward-waits').waitFor();
            await at.page.shows(at.points - PRICE);
            await at.page.fits();
            await stage.draw(at.page.page, `rewards-${mode}-${lang}`);
            await at.page.reaches('submitted', at.words.done);
            await isTrue(at, 1);
        });
    }

    scene(`error: the points come back once it is proven that nothing happened, and a press tries the same again (${lang})`, async stage => {
        const at = await arrange(stage, { mode: 'error', lang });
        await at.page.button.click();
        await at.page.reaches('unknown', at.words.unknown);
        await at.page.reaches('unknown', at.words.again);
        await at.page.shows(at.points);
        await isTrue(at, 0);
        await stage.draw(at.page.page, `rewards-again-${lang}`);
        await provider.behave('ok');
        await at.page.button.click();
        await at.page.reaches('submitted', at.words.done);
        await isTrue(at, 1);
    });

    scene(`refuse: the points are back, and the next press is a new intent (${lang})`, async stage => {
        const at = await arrange(stage, { mode: 'refuse', lang });
        await at.page.button.click();
        await at.page.reaches('refused', at.words.refused);
        await isTrue(at, 0);
        await stage.draw(at.page.page, `rewards-refused-${lang}`);
        // A press that comes before anybody can have read why means nothing.
        let sent = 0;
        at.page.page.on('request', request => (sent += request.url().includes('/redeem_reward') ? 1 : 0));
        await at.page.pressIfThere();
        await provider.behave('ok');
        await at.page.isRead();
        assert.equal(sent, 0);
        await at.page.button.click();
        await at.page.reaches('submitted', at.words.done);
        const keys = await stage.database.keys(at.api.account.id);
        assert.equal(keys[1], `${keys[0]}:2`);
        await isTrue(at, 1, 2);
    });
}

scene('a double click, a slow one, Enter twice and a key that is held down redeem once each', async stage => {
    const keyboard = at => at.page.page.keyboard;
    const presses = {
        'a double click': at => at.page.button.dblclick(),
        'a slow double click': at => at.page.button.dblclick({ delay: 250 }),
        'Enter twice': async at => {
            await at.page.button.focus();
            await keyboard(at).press('Enter');
            await keyboard(at).press('Enter');
        },
        'a key held down': async at => {
            await at.page.button.focus();
            for (let i = 0; i < 20; i++) {
                await keyboard(at).down('Enter');
                await at.page.page.waitForTimeout(60);
            }
            await keyboard(at).up('Enter');
        },
    };
    for (const press of Object.values(presses)) {
        const at = await arrange(stage);
        await press(at);
        await at.page.reaches('submitted', at.words.done);
        await isTrue(at, 1);
    }
});

scene('two tabs that press at the same time redeem once, and one that did not press follows', async stage => {
    const at = await arrange(stage);
    const [other, third] = [await RewardsPage.open(at.person), await RewardsPage.open(at.person)];
    await Promise.all([at.page.pressIfThere(), other.pressIfThere()]);
    await at.page.reaches('submitted', at.words.done);
    await other.reaches('submitted', at.words.done);
    await until('the third tab has heard of it', async () => (await third.bought.count()) === 1);
    await third.shows(at.points - PRICE);
    await isTrue(at, 1);
});

scene('a reload, a way back and a new page in the middle go on with the same redemption', async stage => {
    const at = await arrange(stage, { mode: 'down' });
    const isUnknown = async () => {
        await at.page.reaches('unknown', at.words.unknown);
        await at.page.row.locator('.reward-waits').waitFor();
        await at.page.shows(at.points - PRICE);
    };
    await at.page.button.click();
    await isUnknown();
    await at.page.reload();
    await isUnknown();
    await at.page.page.locator('.top nav a').first().click();
    await at.page.page.waitForURL('**/tasks');
    await at.page.page.goBack();
    await isUnknown();
    await at.page.page.goto('/problems');
    await at.page.page.goBack();
    await isUnknown();
    await at.page.page.close();
    at.page = await RewardsPage.open(at.person);
    await isUnknown();
    await provider.behave('ok');
    await at.page.reaches('unknown', at.words.again);
    await isTrue(at, 0);
    await at.page.button.click();
    await at.page.reaches('submitted', at.words.done);
    await isTrue(at, 1);
});

for (const lang of ['en', 'zh']) {
    scene(`a second device sees what is undecided, cannot redeem it twice, and hears of its end (${lang})`, async stage => {
        const at = await arrange(stage, { mode: 'down', lang });
        const stale = await RewardsPage.open(await at.enter());
        // It knows nothing of the first device's press.
        const held = gate();
        await stale.page.route(LOAD, async route => {
            await held.opened;
            await route.continue().catch(() => {});
        });
        await at.page.button.click();
        await at.page.reaches('unknown', at.words.unknown);
        await stale.pressIfThere();
        held.open();
        await stale.reaches('refused', at.words.inProgress);
        await stale.row.locator('.reward-waits').waitFor();
        await stale.shows(at.points - PRICE);
        await stage.draw(stale.page, `rewards-second-device-${lang}`);
        const fresh = await RewardsPage.open(await at.enter());
        await fresh.reaches('unknown', at.words.unknown);
        await fresh.row.locator('.reward-waits').waitFor();
        assert.equal(await fresh.button.count(), 0);
        // The provider is asked again, and had never heard of it.
        await provider.behave('error');
        await fresh.reaches('unknown', at.words.again);
        await at.page.reaches('unknown', at.words.again);
        await isTrue(at, 0, 2);
    });
}

scene('a device that is late is told that the points are gone, and the same reward bought elsewhere is simply there', async stage => {
    const at = await arrange(stage, { points: PRICE });
    const late = await RewardsPage.open(await at.enter());
    const held = gate();
    await late.page.route(LOAD, async route => {
        await held.opened;
        await route.continue().catch(() => {});
    });
    await at.page.button.click();
    await at.page.reaches('submitted', at.words.done);
    await late.pressIfThere();
    held.open();
    await late.reaches('submitted', at.words.done);
    await isTrue({ ...at, page: late }, 1, 2);
    // The next sequence, for which there are no points.
    const answer = await at.api.redeem('1', 2);
    assert.equal(answer.status, 409);
    const page = await RewardsPage.open(at.person, { path: `/rewards?request=${encodeURIComponent(answer.key)}` });
    await page.reaches('refused', at.words.insufficient);
    await isTrue({ ...at, page }, 1, 3);
});

for (const fault of ['abort', 'lost', 'silent']) {
    scene(`${fault}: a network that fails is said, and the redemption goes on under the same key`, async stage => {
        const at = await arrange(stage);
        const released = gate();
        let sent = 0;
        await at.page.page.route(REDEEM, async route => {
            sent += 1;
            if (sent > 1) return route.continue();
            if (fault === 'silent') await released.opened;
            if (fault !== 'abort') await route.fetch();
            return route.abort('connectionreset');
        });
        const asked = gate();
        await at.page.page.route(LOAD, async route => {
            await asked.opened;
            await route.continue().catch(() => {});
        });
        await at.page.button.click();
        await at.page.reaches('unknown', at.words.unanswered);
        await at.page.pressIfThere();
        await stage.draw(at.page.page, `rewards-${fault}`);
        asked.open();
        await at.page.reaches('submitted', at.words.done);
        released.open();
        await isTrue(at, 1);
        assert.equal(sent, fault === 'lost' ? 1 : 2);
    });
}

scene('a browser without network says so, and redeems once it is back', async stage => {
    const at = await arrange(stage);
    await at.person.context.setOffline(true);
    await at.page.button.click();
    await at.page.reaches('unknown', at.words.offline);
    await stage.draw(at.page.page, 'rewards-offline');
    await at.person.context.setOffline(false);
    await at.page.reaches('submitted', at.words.done);
    await isTrue(at, 1);
});

scene('a page that was closed before anything arrived says so, and a press is the same intent', async stage => {
    const at = await arrange(stage);
    await at.page.page.route(REDEEM, route => route.abort('connectionfailed'));
    await at.page.page.route(LOAD, route => route.abort('connectionfailed'));
    await at.page.button.click();
    await at.page.reaches('unknown', at.words.unanswered);
    const address = at.page.page.url();
    assert.match(address, /\?request=points_redeem/);
    await at.page.page.close();
    at.page = await RewardsPage.open(at.person, { path: address });
    await at.page.reaches('refused', at.words.neverArrived);
    await at.page.button.click();
    await at.page.reaches('submitted', at.words.done);
    await isTrue(at, 1);
});

scene('somebody who is signed out is asked to sign in, and nothing is redeemed meanwhile', async stage => {
    const at = await arrange(stage);
    at.person.allow(/status of 401/);
    await at.person.context.clearCookies({ name: 'yici_session' });
    await at.page.button.click();
    await at.page.page.locator('.sign-in').waitFor();
    assert.match(at.page.page.url(), /next=.*rewards/);
    await at.person.signIn(at.name);
    at.page = await RewardsPage.open(at.person);
    await isTrue(at, 0, 0);
});

scene('without JavaScript a form that is sent twice redeems once, a reload sends nothing, and every outcome is said', async stage => {
    const at = await arrange(stage, { script: false, mode: 'refuse' });
    const { page } = at;
    await page.button.click();
    await page.page.waitForURL('**/rewards?request=*');
    await page.reaches('refused', at.words.refused);
    await provider.behave('lose-answer');
    const form = await page.row.locator('form').evaluate(form => Object.fromEntries(new FormData(form)));
    assert.match(form.key, /:2$/, 'a refusal was read: the next press is a new intent');
    await page.button.dblclick();
    await page.page.waitForURL(url => url.searchParams.get('request') === form.key);
    const again = await at.person.context.request.post('/api/fn/redeem_reward', { form, headers: { accept: 'text/html' } });
    assert.match(again.url(), /\/rewards\?request=/);
    await until('the shop has confirmed', async () => {
        await page.page.reload();
        return (await page.line.textContent()).includes(at.words.done);
    });
    await page.page.reload();
    await isTrue(at, 1, 2);
});
