import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { manualClock } from '../support/clock.ts';
import { accessibilityViolations, openWindow, type WindowOptions } from '../support/window.ts';
import { brokenIn, type States } from './pages.ts';

const aMemory = (over: WindowOptions = {}) =>
  openWindow({
    clock: manualClock(),
    async seed(as) {
      for (let index = 0; index < 20; index += 1) {
        await as({ client: 'claude-code' })('remember', {
          key: `project/area-${index % 3}/topic-${index}`,
          value: `The person prefers option ${index}, from a long conversation about deployment and how it is deployed.`,
          category: ['preferences', 'decisions'][index % 2] ?? '',
          tags: ['deploy', 'a tag of several words'],
          ttl_seconds: index % 4 === 0 ? 7200 : 0,
        });
      }
      await as({ client: 'codex' })('remember', { key: 'changed', value: 'The first value' });
      await as({ client: 'codex' })('remember', { key: 'changed', value: 'The second value' });
      await as({ subject: 'somebody-else' })('remember', { key: 'theirs', value: 'x' });
    },
    ...over,
  });

const rows = (page: Page) => page.getByRole('listbox', { name: 'Facts' }).getByRole('option');
const detail = (page: Page) => page.getByRole('complementary', { name: 'Fact' });

const states: States = [
  ['after opening', ({ page }) => rows(page).first().waitFor()],
  [
    'with a selected fact',
    async ({ page }) => {
      await page.keyboard.press('ArrowDown');
      await detail(page).getByText('The second value').waitFor();
    },
  ],
  ['with its history', async ({ page }) => (await page.keyboard.press('h'), detail(page).locator('ins').first().waitFor())],
  ['with a preview', async ({ page }) => (await page.keyboard.press(' '), page.locator('.value-preview').waitFor())],
  [
    'with the lifetime editor',
    async ({ page }) => {
      await page.keyboard.press(' ');
      await page.keyboard.press('e');
      await page.getByRole('form', { name: /^Lifetime/ }).waitFor();
    },
  ],
  [
    'editing',
    async ({ page }) => {
      await page.keyboard.press('Escape');
      await page.keyboard.press('v');
      await page.getByRole('form', { name: /^Edit/ }).waitFor();
    },
  ],
  [
    'editing with a conflict and an error',
    async ({ page, as }) => {
      await page.keyboard.type('More. ');
      await as({ client: 'codex' })('remember', { key: 'changed', value: 'The third value' });
      await page.getByText('changed this fact while you were editing').waitFor();
      await page.getByLabel('Category', { exact: true }).fill('Not A Category');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('alert').waitFor();
    },
  ],
  [
    'after forgetting',
    async ({ page }) => {
      await page.getByRole('button', { name: 'Discard' }).click();
      await page.keyboard.press('Backspace');
      await page.getByRole('button', { name: 'Undo' }).waitFor();
    },
  ],
  ['with the palette', async ({ page }) => (await page.keyboard.press('Control+k'), page.getByRole('dialog').waitFor())],
  [
    'with the keyboard shortcuts',
    async ({ page }) => {
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    },
  ],
  [
    'before forgetting all facts',
    async ({ page }) => {
      await page.keyboard.press('Escape');
      await page.keyboard.press('Shift+Backspace');
      await page.getByText(/facts will be deleted/).waitFor();
    },
  ],
  [
    'with search results',
    async ({ page }) => {
      await page.keyboard.press('Escape');
      await page.keyboard.press('/');
      await page.keyboard.type('option deployed');
      await page.locator('.why').first().waitFor();
      await page.keyboard.press('Enter');
    },
  ],
  [
    'with a filter',
    async ({ page }) => {
      await detail(page).getByRole('button', { name: 'a tag of several words' }).click();
      await page.getByRole('button', { name: /^Clear the filter: tagged/ }).waitFor();
    },
  ],
  [
    'without search results',
    async ({ page }) => {
      await page.keyboard.press('/');
      await page.keyboard.type('konfluks');
      await page.getByText('No facts tagged').waitFor();
    },
  ],
];

describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
  test('every state passes the accessibility rules (R-WIN-09)', async () => {
    expect(await brokenIn(states, await aMemory({ colorScheme }), colorScheme)).toEqual({});
  });

  test('an empty memory and a closed window pass the accessibility rules', async () => {
    const { page, served } = await openWindow({ colorScheme });
    await page.getByText('No facts yet.').waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.evaluate('sessionStorage.clear()');
    await page.goto(`${served.url}/`);
    await page.getByRole('heading', { name: 'This window is closed' }).waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
  });
});

test('the accessibility check finds a missing label', async () => {
  const { page } = await openWindow();
  await page.evaluate(
    'document.querySelector("main input").removeAttribute("aria-label"), document.querySelector("main input").removeAttribute("placeholder")',
  );
  expect((await accessibilityViolations(page)).join()).toMatch(/^label: /);
});

/** Elements whose content is wider than they are, and rows whose content is too tall. */
const OVERFLOWING = `[...document.querySelectorAll('.window, .sidebar, .list, .heading, .row, .detail, .footer, dialog, .popover')]
  .filter((place) => place.clientWidth > 0 && (place.scrollWidth > place.clientWidth + 1 || (place.matches('.row') && place.scrollHeight > place.clientHeight + 1)))
  .map((place) => place.className)`;

describe('text of 200 % (R-WIN-09)', () => {
  test.each([
    { width: 920, height: 620 },
    { width: 640, height: 420 },
  ])('fits a window of $width × $height', async (viewport) => {
    const opened = await aMemory({ fontSize: 32, viewport });
    const { page } = opened;
    await rows(page).first().waitFor();
    expect(await page.evaluate(OVERFLOWING)).toEqual([]);
    const row = await rows(page).first().boundingBox();
    expect(row?.height).toBeGreaterThanOrEqual(60);
    expect((await page.getByRole('listbox', { name: 'Facts' }).boundingBox())?.height).toBeGreaterThanOrEqual(2 * 60);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await detail(page).getByText('The second value').waitFor();
    expect(await page.evaluate(OVERFLOWING)).toEqual([]);
    await detail(page).getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Value').fill('x');
    await page.getByRole('button', { name: 'Save' }).click();
    await detail(page).locator('pre').getByText('x', { exact: true }).waitFor();
    await detail(page).getByRole('button', { name: 'Change lifetime' }).click();
    const keep = page.getByRole('button', { name: 'Save' });
    await keep.scrollIntoViewIfNeeded();
    expect(await page.evaluate(OVERFLOWING)).toEqual([]);
    await keep.click();
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('option');
    await page.locator('.why').first().waitFor();
    expect(await page.evaluate(OVERFLOWING)).toEqual([]);
    expect(await accessibilityViolations(page)).toEqual([]);
  });
});

test('the selected row stands out with forced colours (R-WIN-09)', async () => {
  const { page } = await aMemory({ forcedColors: 'active' });
  await rows(page).first().waitFor();
  await page.keyboard.press('ArrowDown');
  const background = (selected: boolean) =>
    page.evaluate(`getComputedStyle(document.querySelector('.row[aria-selected=${selected}]')).backgroundColor`);
  expect(await background(true)).not.toBe(await background(false));
  expect(await accessibilityViolations(page)).toEqual([]);
});

test('live regions are polite, and reduced motion turns off transitions', async () => {
  const { page } = await aMemory();
  const live = await page.evaluate(
    `[...document.querySelectorAll('[aria-live]')].map((place) => [place.className, place.ariaLive, place.role])`,
  );
  expect(live).toEqual([
    ['status', 'polite', 'status'],
    ['toast', 'polite', 'status'],
  ]);
  expect(await page.evaluate(`getComputedStyle(document.querySelector('.toast')).transitionDuration`)).toBe('0s');
  await rows(page).first().click();
  await page.keyboard.press('Backspace');
  await page.getByRole('status').filter({ hasText: 'Forgotten.' }).waitFor();
});

test('each row tells a screen reader its position and the number of rows', async () => {
  const { page } = await aMemory();
  await rows(page).first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  const list = page.getByRole('listbox', { name: 'Facts' });
  const active = await list.getAttribute('aria-activedescendant');
  const option = page.locator(`#${active}`);
  expect(await option.getAttribute('aria-selected')).toBe('true');
  expect([await option.getAttribute('aria-posinset'), await option.getAttribute('aria-setsize')]).toEqual(['2', '21']);
  expect(await page.getByRole('listbox', { name: 'Facts' }).getByRole('option', { selected: true }).count()).toBe(1);
});
