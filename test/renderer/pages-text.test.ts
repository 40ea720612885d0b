import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { HeldOperation } from '../../src/contract/inbox.ts';
import { INBOX_CATEGORY } from '../../src/core/store/entry.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import type { EntryDraft } from '../../src/core/store/store.ts';
import { manualClock, MINUTE } from '../support/clock.ts';
import { aPack } from '../support/packs.ts';
import { anAuthor } from '../support/store.ts';
import { openWindow } from '../support/window.ts';
import { goTo } from './pages.ts';
import { payloads } from './payloads.ts';

/** Elements and attributes that the window never creates. */
const FOREIGN = `[...document.querySelectorAll('*')].filter((element) =>
  element.matches('a, area, audio, base, button[formaction], embed, foreignObject, frame, frameset, iframe, img, marquee, math, meta[http-equiv], noscript, object, portal, style, template, video, [src^="javascript:" i], [href^="javascript:" i], [srcdoc]') ||
  [...element.attributes].some(({ name }) => name.startsWith('on') || name === 'xlink:href'))
  .map(({ outerHTML }) => outerHTML.slice(0, 200))`;

const note = (value: object, client: string, key: string): EntryDraft => ({
  key,
  value: JSON.stringify(value),
  category: 'activity',
  tags: [],
  author: { ...anAuthor, client },
  lifetime: 60 * MINUTE,
});

const audit = (id: string, payload: string): EntryDraft => ({
  key: `pack_history/${id}/1`,
  value: JSON.stringify({
    pack: payload,
    version: '1.0.0',
    outcome: 'ok',
    learn_inputs: { audience: payload },
    findings: [{ code: payload.slice(0, 64) || 'x', severity: payload.slice(0, 32) || 'x' }],
    duration_ms: 1,
    at_unix: 1_780_000_000,
  }),
  category: 'pack_history',
  tags: [],
  author: anAuthor,
  lifetime: 60 * MINUTE,
});

/** An item of the Inbox. */
const item = (index: number, client: string, operation: HeldOperation, input: object): EntryDraft => ({
  key: `inbox/${String(index).padStart(32, '0')}`,
  value: JSON.stringify({ operation, source: 'quarantine', input }),
  category: INBOX_CATEGORY,
  tags: [],
  author: { ...anAuthor, client },
  lifetime: 60 * MINUTE,
});

async function openHostile() {
  const store = new RamStore(manualClock());
  const me = { subject: 'me' };
  const facts = store.space(me, 'fact');
  const rows = store.space(me, 'activity');
  const items = store.space(me, 'pack');
  for (const [index, payload] of payloads.entries()) {
    await rows.put(note({ operation: 'remember', key: `${index} ${payload}` }, payload, `a${index}`));
    await rows.put(note({ operation: 'forget', scope: `category:${payload}` }, payload, `b${index}`));
    await rows.put(note({ operation: 'brief', keys: [`brief ${payload}`], moment: 'prompt' }, payload, `c${index}`));
    await store.space(me, 'audit').put(audit(`${index}`, payload));
    const tags = [payload, `second ${payload}`];
    const key = index % 2 === 0 ? payload : `k${index}`;
    const input = { key, value: `new ${payload}`, category: payload, tags, supersedes: payload };
    await items.put(item(index, payload, 'remember', input));
    await facts.put({
      key: `k${index}`,
      value: payload,
      category: `${index}${payload}`,
      tags: [],
      author: { ...anAuthor, client: payload },
      lifetime: 60 * MINUTE,
    });
  }
  for (const [index, payload] of payloads.slice(0, 20).entries()) {
    const lines = [JSON.stringify({ key: payload, value: payload })];
    const steps = [{ id: 'one', pack: payload, input: { [payload]: payload } }];
    await items.put(item(1000 + index, payload, 'forget', { scope: `tag:${payload}` }));
    await items.put(item(2000 + index, payload, 'undo', { client: payload, since: '2020-01-01T00:00:00.000Z' }));
    await items.put(item(3000 + index, payload, 'import', { lines }));
    await items.put(item(4000 + index, payload, 'createPipeline', { id: payload, title: payload, steps }));
    await items.put(item(5000 + index, payload, 'deletePipeline', { id: payload }));
  }
  const packs = payloads.map((payload, index) =>
    aPack(() => ({ said: payload, [payload]: payload }), {
      name: `test.p${index}`,
      title: payload,
      description: payload,
      // The test runs the other packs.
      ...(index % 20 > 0 && { unavailable: () => payload }),
    }),
  );
  const opened = await openWindow({
    store,
    packs: { packs, skipped: payloads.map((payload) => ({ name: payload, why: payload })) },
    async seed(as) {
      for (const [index, payload] of payloads.slice(0, 90).entries()) {
        await as()('createPipeline', {
          id: `p${index}`,
          title: payload.slice(0, 200).toWellFormed(),
          steps: [{ id: 'one', pack: 'test.p0' }],
        }).catch(() => undefined);
      }
    },
  });
  const dialogs: string[] = [];
  opened.page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  const { page, served, requests } = opened;
  return {
    ...opened,
    /** Checks that the payloads were shown as text only. */
    unharmed: async () => {
      expect(await page.evaluate(FOREIGN)).toEqual([]);
      expect(await page.evaluate('globalThis.pwned')).toBeUndefined();
      expect(await page.title()).toBe('Helmdeck Memory');
      expect([dialogs, page.url(), page.context().pages().length]).toEqual([[], `${served.url}/`, 1]);
      const own = /^\/window\/(call\/[A-Za-z]+\?subject=me|events)$/;
      expect(requests.filter((url) => !url.startsWith(served.url) || !own.test(url.slice(served.url.length)))).toEqual([]);
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

/** The text of the page with its whitespace. */
const textOf = async (page: Page): Promise<string> => ((await page.locator('main').textContent()) ?? '').replaceAll('\r', '');

test('hostile clients, keys and scopes stay text in Activity and the undo dialog (R-WIN-07)', async () => {
  await using opened = await openHostile();
  const { page, unharmed } = opened;
  await goTo(page, 'Activity');
  await page.locator('main .line').first().waitFor();
  for (const more = page.getByRole('button', { name: 'Show earlier' }); (await more.count()) > 0;) {
    const before = await page.locator('main .line').count();
    await more.click();
    await expect.poll(() => page.locator('main .line').count(), { timeout: 45_000 }).toBeGreaterThan(before);
  }
  const text = await textOf(page);
  // The store encodes text as UTF-8, which has no lone surrogates.
  const whole = payloads.map((payload, index) => `${index} ${payload}`.replaceAll('\r', '')).filter((key) => key.isWellFormed());
  expect(whole.length).toBeGreaterThan(190);
  expect(whole.filter((key) => !text.includes(key) || !text.includes(`brief ${key.replace(/^\d+ /, '')}`))).toEqual([]);
  await unharmed();
  await page.getByRole('button', { name: "Undo a client's changes…" }).click();
  const client = page.getByRole('dialog').getByRole('combobox');
  for (let index = 0; index < 20; index += 1) {
    await client.selectOption({ index });
    await unharmed();
  }
});

test('hostile text stays text in the Inbox, its editor and its questions (R-WIN-07)', async () => {
  await using opened = await openHostile();
  const { page, unharmed } = opened;
  await page.getByRole('button', { name: /^Inbox/ }).click();
  const items = page.getByRole('article');
  await items.first().waitFor();
  for (const more = page.getByRole('button', { name: 'Show more' }); (await more.count()) > 0;) {
    const before = await items.count();
    await more.click();
    await expect.poll(() => items.count(), { timeout: 45_000 }).toBeGreaterThan(before);
  }
  const text = await textOf(page);
  const whole = payloads.map((payload) => payload.replaceAll('\r', '')).filter((payload) => payload.isWellFormed());
  expect(whole.filter((payload) => !text.includes(payload))).toEqual([]);
  await unharmed();
  for (let index = 0; index < 10; index += 1) {
    await page
      .getByRole('button', { name: /^Edit and keep/ })
      .nth(index * 20)
      .click();
    await page.getByRole('dialog', { name: 'Edit and keep' }).waitFor();
    await unharmed();
    await page.keyboard.press('Escape');
  }
  // Each click renames its button, so the next one becomes the first.
  const show = page.getByRole('button', { name: 'Show the whole request' });
  for (let left = await show.count(); left > 0; left -= 1) await show.first().click();
  await unharmed();
  for (const name of [/^Allow: tag:/, /^Allow: undo of/, /^Allow: pipeline/]) {
    await page.getByRole('button', { name }).last().click();
    await page.getByRole('dialog', { name: 'Allow this deletion?' }).waitFor();
    await unharmed();
    await page.keyboard.press('Escape');
  }
});

test('hostile values stay text in Learned', async () => {
  await using opened = await openHostile();
  const { page, unharmed } = opened;
  await goTo(page, 'Learned');
  await page.getByRole('button', { name: /^Show all/ }).click();
  await page.getByRole('region', { name: 'Most frequent findings' }).waitFor();
  await unharmed();
});

test('hostile text stays text in packs, results, pipelines and skipped packs', async () => {
  await using opened = await openHostile();
  const { page, unharmed } = opened;
  await goTo(page, 'Packs');
  await page.getByRole('region', { name: 'Pipelines' }).getByRole('button').first().waitFor();
  await unharmed();
  for (let index = 0; index < payloads.length; index += 20) {
    await page
      .locator('main > .plain > .line')
      .filter({ hasText: `test.p${index}` })
      .first()
      .getByRole('button')
      .click();
    await page.getByRole('button', { name: 'Clear cache and records…' }).waitFor();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('Finished in').waitFor();
    await unharmed();
    await page.getByRole('button', { name: 'Clear cache and records…' }).click();
    await page.getByRole('dialog').waitFor();
    await unharmed();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'All packs' }).click();
  }
  await page.getByRole('region', { name: 'Pipelines' }).getByRole('button').nth(3).click();
  await page.getByRole('heading', { name: 'Steps' }).waitFor();
  await unharmed();
});

test('hostile text stays text in token names and imported lines', async () => {
  await using opened = await openHostile();
  const { page, served, unharmed } = opened;
  let made = 0;
  for (const payload of payloads) {
    const mint = { name: payload.slice(0, 64), client: 'x', subject: 'me', days: 1 } as never;
    await served
      .perform({ subject: 'me', client: 'x', transport: 'x', token: '', scopes: new Set(['admin']) }, 'mintToken', mint)
      .then(
        () => (made += 1),
        () => undefined,
      );
  }
  expect(made).toBeGreaterThan(100);
  await goTo(page, 'Connect');
  await page.getByRole('list', { name: 'Tokens' }).getByRole('listitem').first().waitFor();
  await unharmed();
  await page
    .getByRole('button', { name: /^Revoke </ })
    .first()
    .click();
  await page.getByRole('dialog').waitFor();
  await unharmed();
  await page.keyboard.press('Escape');
  await goTo(page, 'Settings');
  const [, payload = ''] = payloads;
  await page.getByLabel('File to import').setInputFiles({
    name: '<img src=x onerror=globalThis.pwned=1>.jsonl',
    mimeType: 'application/json',
    buffer: Buffer.from(payloads.map((one) => JSON.stringify({ key: one, value: one, category: one, [payload]: 1 })).join('\n')),
  });
  await page.getByRole('list', { name: 'Rejected lines' }).waitFor();
  await unharmed();
});
