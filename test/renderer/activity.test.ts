import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { DAY, HOUR, manualClock, SECOND } from '../support/clock.ts';
import { openWindow, type WindowOptions } from '../support/window.ts';
import { goTo, toast } from './pages.ts';

const lines = async (page: Page): Promise<string[]> =>
  (await page.locator('main .line > span').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim());

/** Opens the activity of a memory in which codex wrote two facts on the second day. */
async function opened(over: WindowOptions = {}) {
  const clock = manualClock();
  const all = await openWindow({
    clock,
    async seed(as) {
      await as({ client: 'claude-code' })('remember', { key: 'editor', value: 'Helix' });
      await clock.advance(DAY);
      await as({ client: 'codex' })('remember', { key: 'editor', value: 'Emacs' });
      await as({ client: 'codex' })('remember', { key: 'shell', value: 'tcsh' });
      await clock.advance(HOUR);
      await as({ client: 'cursor' })('forget', { scope: 'category:nothing' });
      await as({ client: 'cursor' })('remember', { key: 'mine', value: 'x' });
      await as({ client: 'cursor' })('forget', { scope: 'key:mine' });
    },
    ...over,
  });
  await goTo(all.page, 'Activity');
  await all.page.locator('main .line').first().waitFor();
  return all;
}

test('activity lists who did what and when, newest first, grouped by day', async () => {
  const { page } = await opened();
  expect(await lines(page)).toEqual([
    '15:02 cursor forgot mine',
    '15:02 cursor stored mine',
    '14:02 codex stored shell',
    '14:02 codex stored editor',
    '14:02 claude-code stored editor',
  ]);
  expect(await page.locator('main h2').allTextContents()).toEqual(['4 June 2026', '3 June 2026']);
  expect(await page.locator('main time').first().getAttribute('title')).toBe('4 June 2026 at 15:02');
});

test('activity shows new rows at once', async () => {
  const { page, as } = await opened();
  await as({ client: 'zed' })('remember', { key: 'new', value: 'x' });
  await expect.poll(async () => (await lines(page))[0]).toBe('15:02 zed stored new');
});

test('Show earlier loads earlier rows, even while new ones arrive', async () => {
  const { page, as } = await opened({
    seed: (ask) => Promise.all(Array.from({ length: 220 }, (_, index) => ask()('remember', { key: `k${index}`, value: 'x' }))),
  });
  await expect.poll(async () => (await lines(page)).length).toBe(100);
  const writing = Array.from({ length: 10 }, (_, index) => as()('remember', { key: `n${index}`, value: 'x' }));
  await page.getByRole('button', { name: 'Show earlier' }).click();
  await Promise.all(writing);
  await expect.poll(async () => (await lines(page)).length, { timeout: 45_000 }).toBe(200);
  await page.getByRole('button', { name: 'Show earlier' }).click();
  await expect.poll(async () => (await lines(page)).length, { timeout: 45_000 }).toBe(230);
  expect(await page.getByRole('button', { name: 'Show earlier' }).count()).toBe(0);
});

test('a brief names the facts that an agent was shown, and each name opens the fact (R-WIN-56)', async () => {
  const clock = manualClock();
  const { page, as, advance } = await openWindow({
    clock,
    async seed(of) {
      const codex = of({ client: 'codex' });
      await codex('remember', { key: 'preferences/manager', value: 'Use pnpm, never npm.', category: 'preferences' });
      // The first page of the list does not show the older fact.
      for (let index = 0; index < 60; index += 1) {
        await clock.advance(SECOND);
        await of({ client: 'claude-code' })('remember', { key: `notes/${index}`, value: `Note ${index}.`, category: 'notes' });
      }
      await of({ client: 'claude-code' })('brief', { session: 'one' });
    },
  });
  await goTo(page, 'Activity');
  const row = page.locator('main .line').filter({ hasText: 'was shown' });
  expect(await row.innerText()).toBe('14:03 claude-code was shown 1 fact at the start of a session: preferences/manager');
  await advance(2 * HOUR);
  await row.getByRole('button', { name: 'preferences/manager' }).click();
  const fact = page.getByRole('complementary', { name: 'Fact' });
  await fact.getByText('Use pnpm, never npm.').waitFor();
  await fact.getByText('Shown to agents 1 time in 30 days, last to claude-code 2 hours ago').waitFor();
  // The keys of Facts work at once, and another brief updates the count.
  await page.keyboard.press('h');
  await fact.getByText('No earlier versions').waitFor();
  await as({ client: 'gemini-cli' })('brief', { session: 'two' });
  await fact.getByText('Shown to agents 2 times in 30 days, last to gemini-cli just now').waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'Activity' }).waitFor();
});

test('activity of an unused memory says that it is empty', async () => {
  const { page } = await openWindow();
  await goTo(page, 'Activity');
  await page.getByText('No activity in the last 30 days.').waitFor();
  expect(await page.getByRole('button', { name: /^Undo/ }).count()).toBe(0);
});

describe("undoing a client's changes (R-WIN-20)", () => {
  const dialog = (page: Page) => page.getByRole('dialog', { name: "Undo a client's changes" });

  test('shows a preview before it deletes and restores facts', async () => {
    const { page, as } = await opened();
    await page.getByRole('button', { name: 'Undo from here… Changes by codex since 14:02' }).last().click();
    await dialog(page).getByText('1 new fact will be forgotten').waitFor();
    await dialog(page).getByText('1 changed fact will be restored').waitFor();
    await dialog(page).getByText('Facts written: shell, editor').waitFor();
    expect((await as()('recall', { key: 'editor' })).value).toBe('Emacs');
    await dialog(page).getByRole('button', { name: 'Undo' }).click();
    await toast(page).getByText('Undone: 1 fact forgotten, 1 restored.').waitFor();
    expect((await as()('list', { values: true })).facts.map(({ value }) => value)).toEqual(['Helix']);
    await expect.poll(async () => (await lines(page)).filter((line) => line.includes('window undid'))).toHaveLength(2);
  });

  test('keeps writes before the chosen row, even in the same millisecond (R-WIN-20, R-OPS-07)', async () => {
    const { page, as } = await opened();
    await page.getByRole('button', { name: 'Undo from here… Changes by codex since 14:02' }).first().click();
    await dialog(page).getByText('1 new fact will be forgotten').waitFor();
    await dialog(page).getByText('Facts written: shell', { exact: true }).waitFor();
    await dialog(page).getByRole('button', { name: 'Undo' }).click();
    await toast(page).getByText('Undone: 1 fact forgotten, 0 restored.').waitFor();
    expect((await as()('list', { values: true })).facts.map(({ value }) => value)).toEqual(['Emacs']);
  });

  test('starts at the millisecond of the chosen row', async () => {
    const clock = manualClock();
    const { page, as } = await openWindow({
      clock,
      async seed(of) {
        await clock.advance(150);
        await of({ client: 'codex' })('remember', { key: 'wanted', value: 'v' });
        await clock.advance(150);
        await of({ client: 'codex' })('remember', { key: 'unwanted', value: 'v' });
      },
    });
    await goTo(page, 'Activity');
    await page
      .getByRole('button', { name: /^Undo from here/ })
      .first()
      .click();
    await dialog(page).getByText('1 new fact will be forgotten').waitFor();
    await dialog(page).getByRole('button', { name: 'Undo' }).click();
    await toast(page).getByText('Undone: 1 fact forgotten').waitFor();
    expect((await as()('list', {})).facts.map(({ key }) => key)).toEqual(['wanted']);
  });

  test('lets the owner choose client and time, and disables Undo if nothing would change', async () => {
    const { page } = await opened();
    await page.getByRole('button', { name: "Undo a client's changes…" }).click();
    expect(await dialog(page).getByLabel('Client').locator('option').allTextContents()).toEqual([
      'cursor',
      'codex',
      'claude-code',
    ]);
    await dialog(page).getByLabel('Client').selectOption('claude-code');
    await dialog(page).getByText('claude-code has no changes to undo since this time.').waitFor();
    expect(await dialog(page).getByRole('button', { name: 'Undo' }).isDisabled()).toBe(true);
    await dialog(page).getByLabel('Client').selectOption('codex');
    await dialog(page).getByText('1 new fact will be forgotten').waitFor();
    await dialog(page).getByLabel('From').fill('2026-06-04T14:30:00');
    await dialog(page).getByText('codex has no changes to undo').waitFor();
    await dialog(page).getByLabel('From').fill('');
    expect(await dialog(page).getByRole('button', { name: 'Undo' }).isDisabled()).toBe(true);
  });

  test('closes on Escape without a change and restores the focus', async () => {
    const { page, as } = await opened();
    const button = page.getByRole('button', { name: "Undo a client's changes…" });
    await button.focus();
    await page.keyboard.press('Enter');
    await dialog(page).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => dialog(page).count()).toBe(0);
    expect(await button.evaluate((element: { matches: (is: string) => boolean }) => element.matches(':focus'))).toBe(true);
    expect((await as()('status', {})).facts).toBe(2);
  });
});
