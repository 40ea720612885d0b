import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { RamStore } from '../../src/core/store/ram-store.ts';
import type { EntryDraft } from '../../src/core/store/store.ts';
import { manualClock } from '../support/clock.ts';
import { aDraft } from '../support/store.ts';
import { openWindow } from '../support/window.ts';
import { payloads } from './payloads.ts';

/** The tags and attribute names of the elements. Hostile text must not change them. */
const shapeOf = (page: Page, selector: string): Promise<string[]> =>
  page.evaluate(
    `[...document.querySelectorAll(${JSON.stringify(`${selector}, ${selector} *`)})].map(
      (element) => [element.tagName, ...[...element.attributes].map(({ name }) => name).sort()].join(' '))`,
  );

/** Elements and attributes that the window never creates. */
const FOREIGN = `[...document.querySelectorAll('*')].filter((element) =>
  element.matches('a, area, audio, base, button[formaction], embed, foreignObject, frame, frameset, iframe, img, marquee, math, meta[http-equiv], noscript, object, portal, style, template, video, [src^="javascript:" i], [href^="javascript:" i], [srcdoc]') ||
  [...element.attributes].some(({ name }) => name.startsWith('on') || name === 'xlink:href'))
  .map(({ outerHTML }) => outerHTML.slice(0, 200))`;

/** The part of a payload that is valid in a key. A fact with an invalid key could not be requested. */
const asKey = (payload: string): string =>
  payload
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '')
    .normalize('NFC')
    .slice(0, 120)
    .replace(/\p{Cs}/gu, '')
    .trim();

const keyOf = (index: number): string => `${String(index).padStart(3, '0')}/${asKey(payloads[index] ?? '')}`;

/** The payload in every field. The store is written directly, so the test does not depend on input validation. */
const hostile = (payload: string, index: number): Partial<EntryDraft> => ({
  key: keyOf(index),
  value: payload,
  category: `${index}${payload}`,
  tags: [payload, `second ${payload}`],
  author: { client: payload, origin: 'mcp', token: 't' },
});

async function openHostile() {
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
    /** Checks that the payloads were shown as text only. */
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

test('there are 200 different payloads', () => {
  expect(payloads.length).toBeGreaterThanOrEqual(200);
  expect(new Set(payloads).size).toBe(payloads.length);
});

test('the check finds a foreign element', async () => {
  const { page } = await openWindow();
  expect(await page.evaluate(FOREIGN)).toEqual([]);
  await page.evaluate(`document.querySelector('main').append(document.createElement('a'))`);
  expect(await page.evaluate(FOREIGN)).toEqual(['<a></a>']);
});

describe('hostile text (R-WIN-07)', () => {
  test('stays text in the list and in each fact, in every field', async () => {
    const { page, unharmed } = await openHostile();
    await page.keyboard.press('ArrowDown');
    const shown = (): Promise<unknown> =>
      page.evaluate(
        `JSON.stringify([document.querySelector('.detail h2')?.textContent, document.querySelector('.detail pre')?.textContent])`,
      );
    // A long value is a tab stop, with these attributes. A suspicious fact has a warning.
    const shape = async (): Promise<string> =>
      (await shapeOf(page, '.detail'))
        .join('\n')
        .replace('PRE aria-label class role tabindex', 'PRE class')
        .replace('P class\nSTRONG\n', '');
    const shapes = new Set<string>();
    for (let index = payloads.length - 1; index >= 0; index -= 1) {
      // The store encodes text as UTF-8, which has no lone surrogates.
      const value = payloads[index]?.toWellFormed();
      await expect.poll(shown, { interval: 4, timeout: 45_000 }).toBe(JSON.stringify([keyOf(index), value]));
      shapes.add(await shape());
      await page.keyboard.press('j');
      if (index % 20 === 0) await unharmed();
    }
    // All facts have the same elements as a harmless fact.
    await expect.poll(shown).toBe('["harmless","harmless"]');
    shapes.add(await shape());
    expect([...shapes]).toHaveLength(1);
    expect(new Set(await shapeOf(page, '.row')).size).toBeLessThan(8);
    await unharmed();
  });

  test('stays text in search results, editor, history, preview and dialogs', async () => {
    const { page, unharmed } = await openHostile();
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

  test('stays text in an error message', async () => {
    const { page, unharmed } = await openHostile();
    await page.locator('.row').first().click();
    await page.keyboard.press('v');
    await page.getByLabel('Category', { exact: true }).fill('<img src=x onerror=globalThis.pwned=1>');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').waitFor();
    await unharmed();
  });
});
