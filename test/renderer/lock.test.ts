import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { manualClock, SECOND } from '../support/clock.ts';
import { theOwner } from '../support/memory.ts';
import { aPack } from '../support/packs.ts';
import { openWindow } from '../support/window.ts';
import { goTo } from './pages.ts';

const SECRET = 'nobody-else-may-see-this';

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first().click();
const row = (page: Page) => page.getByRole('listbox', { name: 'Facts' }).getByRole('option').click();

/** Views that show content of the memory, and how to open them. */
const shown: readonly (readonly [string, (page: Page) => Promise<unknown>])[] = [
  ['a preview', async (page) => (await row(page), page.keyboard.press(' '))],
  ['a history', async (page) => (await row(page), page.keyboard.press('h'))],
  ['the lifetime editor', async (page) => (await row(page), page.keyboard.press('e'))],
  ['an editor', async (page) => (await row(page), page.keyboard.press('v'))],
  ['the search box', (page) => page.getByRole('searchbox').fill(SECRET)],
  ['a filter', (page) => page.getByRole('searchbox').fill(`tag:${SECRET}`)],
  ['an Undo message', async (page) => (await row(page), page.keyboard.press('Backspace'))],
  ['the dialog that forgets facts', async (page) => (await row(page), page.keyboard.press('Shift+Backspace'))],
  ['the undo dialog', async (page) => (await goTo(page, 'Activity'), press(page, /^Undo a client/))],
  [
    'an item of the Inbox and its editor',
    async (page) => {
      await page.getByRole('button', { name: /^Inbox/ }).click();
      await press(page, /^Edit and keep/);
    },
  ],
  [
    'an import preview',
    async (page) => {
      await goTo(page, 'Settings');
      await press(page, 'Import from another memory…');
      await page.getByLabel(/paste text/).fill(`- ${SECRET} is a fact in another memory`);
      await press(page, 'Preview');
    },
  ],
  [
    'the result of a pack',
    async (page) => {
      await goTo(page, 'Packs');
      await press(page, 'Echo');
      await press(page, 'Run');
    },
  ],
];

test.each(shown)('a lock removes %s from the screen (R-LOCK-02)', async (_what, go) => {
  const clock = manualClock();
  const {
    page,
    served,
    advance: pass,
  } = await openWindow({
    clock,
    packs: { packs: [aPack(() => ({ said: SECRET }))] },
    async seed(as) {
      await as({ client: SECRET })('remember', { key: SECRET, value: SECRET, tags: [SECRET] });
      await as({ client: SECRET, quarantined: true })('remember', { key: SECRET, value: `${SECRET} too` });
    },
  });
  await page.getByRole('listbox', { name: 'Facts' }).getByRole('option').waitFor();
  await go(page);
  await expect.poll(() => seen(page)).toMatch(SECRET);
  await served.perform(theOwner, 'lock', {});
  await page.locator('.banner').getByText('This memory is locked.').waitFor();
  await pass(SECOND);
  await expect.poll(() => seen(page)).not.toMatch(SECRET);
});

test('a lock removes a shown recovery key or token from the screen (R-LOCK-02)', async () => {
  const { page, served } = await openWindow({ clock: manualClock() });
  for (const [at, ask, make, shows] of [
    ['Settings', 'Create a recovery key…', 'Create', 'Your recovery key'],
    ['Connect', 'Create a token…', 'Create', /^The token of/],
  ] as const) {
    await goTo(page, at);
    await press(page, ask);
    const program = page.getByRole('textbox', { name: 'Program' });
    if (at === 'Connect') await program.fill('a-script');
    await page.getByRole('dialog').getByRole('button', { name: make }).click();
    await page.getByRole('dialog', { name: shows }).waitFor();
    await served.perform(theOwner, 'lock', {});
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    await served.perform(theOwner, 'unlock', {});
    await expect.poll(() => page.locator('.banner').count()).toBe(0);
  }
});

/** The text of the page, including the values of fields. */
const seen = (page: Page): Promise<string> =>
  page.evaluate(`document.body.innerHTML + [...document.querySelectorAll('input, textarea')].map(({ value }) => value).join()`);
