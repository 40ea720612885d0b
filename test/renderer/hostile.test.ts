import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { RamStore } from '../../src/core/store/ram-store.ts';
import type { EntryDraft } from '../../src/core/store/store.ts';
import { manualClock } from '../support/clock.ts';
import { aDraft } from '../support/store.ts';
import { openWindow } from '../support/window.ts';
import { payloads } from './payloads.ts';

/** What every element in view is, with the names of its attributes: what text becomes must not show in it. */
const shapeOf = (page: Page, selector: string): Promise<string[]> =>
  page.evaluate(
    `[...document.querySelectorAll(${JSON.stringify(`${selector}, ${selector} *`)})].map(
      (element) => [element.tagName, ...[...element.attributes].map(({ name }) => name).sort()].join(' '))`,
  );

/** Elements and attributes that the window itself never makes. */
const FOREIGN = `[...document.querySelectorAll('*')].filter((element) =>
  element.matches('a, area, audio, base, button[formaction], embed, foreignObject, frame, frameset, iframe, img, marquee, math, meta[http-equiv], noscript, object, portal, style, template, video, [src^="javascript:" i], [href^="javascript:" i], [srcdoc]') ||
  [...element.attributes].some(({ name }) => name.startsWith('on') || name === 'xlink:href'))
  .map(({ outerHTML }) => outerHTML.slice(0, 200))`;

/** What a key may hold of it: a fact under any other could not be asked for by anybody. */
const asKey = (payload: string): string =>
  payload
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '')
    .normalize('NFC')
    .slice(0, 120)
    .replace(/\p{Cs}/gu, '')
    .trim();

const keyOf = (index: number): string => `${String(index).padStart(3, '0')}/${asKey(payloads[index] ?? '')}`;

/** In every field at once, and past the validator, so that nothing rests on what it refuses. */
const hostile = (payload: string, index: number): Partial<EntryDraft> => ({
  key: keyOf(index),
  value: payload,
  category: `${index}${payload}`,
  tags: [payload, `second ${payload}`],
  author: { client: payload, transport: 'mcp', token: 't' },
});

async function besieged() {
  const store = new RamStore(manualClock());
  const space = store.space({ subject: 'me' }, 'fact');
  for (const value of ['before', 'harmless']) await space.put(aDraft({ key: 'harmless', value, tags: ['one', 'two'] }));
  for (const [index, payload] of payloads.entries()) {
    const draft = aDraft(hostile(payload, index));
    // Two versions, so that the history has something to compare.
    await space.put({ ...draft, value: `${payload} before ${payload}` });
    await space.put(draft);
  }
  const opened = await openWindow({ store });
  const dialogs: string[] = [];
  opened.page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  await opened.page.locator('.row').first().waitFor();
  return {
    ...opened,
    /** That nothing of it became more than text. */
    unharmed: async () => {
      const { page, served, requests } = opened;
      expect(await page.evaluate(FOREIGN)).toEqual([]);
      expect(await page.evaluate('globalThis.pwned')).toBeUndefined();
      expect(await page.title()).toBe('Helmdeck Memory');
      expect([dialogs, page.url(), page.context().pages().length]).toEqual([[], `${served.url}/`, 1]);
      const own =
        /^\/window\/(call\/(list|names|search|recall|status|myMemory|callers|history|forget|remember|patch)\?subject=me|events)$/;
      expect(requests.filter((url) => !own.test(url.slice(served.url.length)) || !url.startsWith(served.url))).toEqual([]);
    },
  };
}

test('there are 200 payloads, no two the same', () => {
  expect(payloads.length).toBeGreaterThanOrEqual(200);
  expect(new Set(payloads).size).toBe(payloads.length);
});

test('the check would find an element that the window does not make', async () => {
  const { page } = await openWindow();
  expect(await page.evaluate(FOREIGN)).toEqual([]);
  await page.evaluate(`document.querySelector('main').append(document.createElement('a'))`);
  expect(await page.evaluate(FOREIGN)).toEqual(['<a></a>']);
});

describe('text that wants to be more than text (R-WIN-07)', () => {
  test('is text in the list and in each fact, in key, value, tag, category and client', async () => {
    const { page, unharmed } = await besieged();
    await page.keyboard.press('ArrowDown');
    const shown = (): Promise<unknown> =>
      page.evaluate(
        `JSON.stringify([document.querySelector('.detail h2')?.textContent, document.querySelector('.detail pre')?.textContent])`,
      );
    // A long value scrolls, and these are how the keys come to it.
    const shape = async (): Promise<string> =>
      (await shapeOf(page, '.detail')).join('\n').replace('PRE aria-label class role tabindex', 'PRE class');
    const shapes = new Set<string>();
    for (let index = payloads.length - 1; index >= 0; index -= 1) {
      // The store encodes text as UTF-8, which has no lone surrogates.
      const value = payloads[index]?.toWellFormed();
      await expect.poll(shown, { interval: 4, timeout: 45_000 }).toBe(JSON.stringify([keyOf(index), value]));
      shapes.add(await shape());
      await page.keyboard.press('j');
      if (index % 20 === 0) await unharmed();
    }
    // All of them have one shape, which is that of a harmless fact.
    await expect.poll(shown).toBe('["harmless","harmless"]');
    shapes.add(await shape());
    expect([...shapes]).toHaveLength(1);
    expect(new Set(await shapeOf(page, '.row')).size).toBeLessThan(8);
    await unharmed();
  });

  test('is text where it is found, edited, compared, peeked at, and about to be forgotten', async () => {
    const { page, unharmed } = await besieged();
    for (let index = 0; index < payloads.length; index += 12) {
      await page.keyboard.press('/');
      await page.keyboard.insertText(payloads[index] ?? '');
      await page.getByText(/^\d+ (results?|facts?)$/).waitFor();
      await unharmed();
      await page.keyboard.press('/');
      await page.keyboard.insertText(keyOf(index).slice(0, 3));
      await page
        .locator('.row', { hasText: `${keyOf(index).slice(0, 3)}/` })
        .first()
        .click();
      await page.keyboard.press(' ');
      await page.locator('.value-preview .value').waitFor();
      await page.keyboard.press('h');
      await page.locator('.history del').first().waitFor();
      await unharmed();
      await page.keyboard.press('h');
      await page.keyboard.press(' ');
    }
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    await page.locator('.row').nth(1).click();
    await page.keyboard.press('v');
    await page.getByRole('form', { name: /^Edit/ }).waitFor();
    await unharmed();
    await page.keyboard.press('Escape');
    await page.locator('.detail .chip').nth(1).click();
    await page.getByRole('button', { name: /^Clear the filter: tagged/ }).waitFor();
    await page.locator('.row').first().click();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').waitFor();
    await unharmed();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Shift+Backspace');
    await page.getByText(/will be deleted, including all earlier versions/).waitFor();
    await unharmed();
  });

  test('is text in what is refused, too', async () => {
    const { page, unharmed } = await besieged();
    await page.locator('.row').first().click();
    await page.keyboard.press('v');
    await page.getByLabel('Category', { exact: true }).fill('<img src=x onerror=globalThis.pwned=1>');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').waitFor();
    await unharmed();
  });
});
