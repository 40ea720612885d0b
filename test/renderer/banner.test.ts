import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { openStore } from '../../src/core/store/open-store.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { DAY, manualClock, HOUR, MINUTE, SECOND } from '../support/clock.ts';
import { theOwner } from '../support/memory.ts';
import { A_KEY, aDraft, manualKeySource } from '../support/store.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWindow, type WindowOptions } from '../support/window.ts';
import { goTo } from './pages.ts';

const banner = (page: Page) => page.locator('.banner');
const PAGES = ['Activity', 'Learned', 'Packs', 'Connect', 'Settings', /^All/] as const;

/** A memory whose key source the test controls. */
async function keyed(over: WindowOptions = {}) {
  const clock = manualClock();
  const source = manualKeySource({ at: 'found', key: Buffer.from(A_KEY, 'hex') });
  const store = await openStore({ folder: tempFolder(), clock, sources: () => [source] });
  await store.space({ subject: 'me' }, 'fact').put(aDraft());
  const all = await openWindow({ clock, store, ...over });
  return { ...all, source, store, clock, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}

test('a healthy memory has no banner', async () => {
  const { page } = await openWindow();
  await page.getByText('No facts yet.').waitFor();
  expect(await banner(page).count()).toBe(0);
});

test('every page shows that the memory is locked, with a button that unlocks it (R-WIN-23)', async () => {
  await using opened = await keyed();
  const { page, served, advance: pass } = opened;
  await page.getByRole('option', { name: /frontend-framework/ }).click();
  await page.getByText('React over Vue (Konflux project constraint)').waitFor();
  await served.perform(theOwner, 'lock', {});
  await page.mouse.move(10, 10);
  await pass(6 * SECOND);
  await banner(page).getByText('This memory is locked. The owner locked it.').waitFor();
  await expect.poll(() => page.content()).not.toMatch(/React over Vue|frontend-framework/);
  for (const name of PAGES) {
    await page.getByRole('navigation', { name: 'Sections' }).getByRole('button', { name, exact: true }).click();
    await banner(page).getByRole('button', { name: 'Unlock' }).waitFor();
  }
  await banner(page).getByRole('button', { name: 'Unlock' }).click();
  await expect.poll(() => banner(page).count()).toBe(0);
  await page.getByRole('option', { name: /frontend-framework/ }).waitFor();
});

test('an idle window hides its content at a lock and shows it after the unlock (R-LOCK-02)', async () => {
  await using opened = await keyed();
  const { page, served, advance: pass } = opened;
  await page.getByRole('option', { name: /frontend-framework/ }).click();
  await page.getByText('React over Vue (Konflux project constraint)').waitFor();
  await pass(10 * MINUTE);
  await served.perform(theOwner, 'lock', {});
  await banner(page).getByText('This memory is locked.').waitFor();
  await expect.poll(() => page.content()).not.toMatch(/React over Vue|frontend-framework/);
  await served.perform(theOwner, 'unlock', {});
  await page.getByRole('option', { name: /frontend-framework/ }).waitFor();
  expect(await banner(page).count()).toBe(0);
});

test('a window hides its content when its session ends (R-LOCK-02)', async () => {
  await using opened = await keyed({ allowedErrors: /401/ });
  const { page, advance: pass } = opened;
  await page.getByRole('option', { name: /frontend-framework/ }).click();
  await page.getByText('React over Vue (Konflux project constraint)').waitFor();
  await pass(10 * MINUTE);
  await pass(12 * HOUR);
  // The event stream ends with the session, and the window reconnects.
  await pass(MINUTE);
  await banner(page).getByText('This window is disconnected.').waitFor();
  await expect.poll(() => page.content()).not.toMatch(/React over Vue|frontend-framework/);
});

test.each([
  [{ at: 'absent' }, 'The key for this memory is missing.'],
  [{ at: 'found', key: Buffer.alloc(32, 7) }, 'This memory was sealed with another key.'],
  [{ at: 'locked', why: 'the keyring is closed' }, 'The keyring is closed. Unlock the keychain of the test'],
  [{ at: 'unavailable', why: 'the keyring is asleep' }, 'The keyring is asleep. Start Helmdeck Memory in a session'],
] as const)('the banner reports the key state %j with a remedy (R-WIN-23)', async (reading, says) => {
  await using opened = await keyed();
  const { page, store, source, advance: pass } = opened;
  store.lock();
  source.set(reading);
  await store.unlock();
  await page.mouse.move(10, 10);
  await pass(6 * SECOND);
  await banner(page).getByText(says).waitFor();
  source.set({ at: 'found', key: Buffer.from(A_KEY, 'hex') });
  await banner(page)
    .getByRole('button', { name: /Try again|Unlock/ })
    .click();
  await expect.poll(() => banner(page).count()).toBe(0);
});

test('every page reports a clock that jumped, and the owner confirms the date there (R-WIN-23, R-TIME-09)', async () => {
  await using opened = await keyed();
  const { page, store, advance: pass, clock } = opened;
  await page.getByRole('option', { name: /frontend-framework/ }).waitFor();
  clock.jump(200 * DAY);
  await page.mouse.move(10, 10);
  await pass(6 * SECOND);
  await banner(page).getByText("This computer's date jumped forward.").waitFor();
  await goTo(page, 'Settings');
  await banner(page)
    .getByText(/the clock of this machine says|The clock of this machine says/)
    .waitFor();
  await banner(page).getByRole('button', { name: 'Confirm the date…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Is this date correct?' });
  await dialog.getByText('If this date is correct, 1 fact has expired and will be permanently deleted.').waitFor();
  expect(store.status().clock.at).toBe('ahead');
  await dialog.getByRole('button', { name: 'Confirm' }).click();
  await expect.poll(() => banner(page).count()).toBe(0);
  expect(store.status().clock).toEqual({ at: 'ok' });
});

test('a memory without a key reports that it is not saved', async () => {
  const clock = manualClock();
  const store = new RamStore(clock);
  const { page } = await openWindow({ clock, store });
  await banner(page).getByText('This memory is not saved.').waitFor();
  await goTo(page, 'Settings');
  expect(await banner(page).textContent()).toMatch('helmdeck-memory key init --file');
  await store[Symbol.asyncDispose]();
});

test('every page reports that the program has ended, while the owner is present (R-WIN-23)', async () => {
  const {
    page,
    served,
    advance: pass,
  } = await openWindow({ clock: manualClock(), allowedErrors: /Failed to load resource|ERR_/ });
  await goTo(page, 'Activity');
  await served.listener.close();
  await page.mouse.move(10, 10);
  await pass(6 * SECOND);
  await expect
    .poll(() => banner(page).allInnerTexts())
    .toEqual(['This window is disconnected. Helmdeck Memory is not running. Start it and open the window with the new link.']);
});

test('an idle window sends no requests (R-WIN-24)', async () => {
  const { page, requests, advance: pass } = await openWindow({ clock: manualClock() });
  await page.getByText('No facts yet.').waitFor();
  await goTo(page, 'Connect');
  await page.getByText('Connect an agent').waitFor();
  await pass(HOUR);
  await page.waitForTimeout(200);
  const before = requests.length;
  for (let hour = 0; hour < 3; hour += 1) await pass(HOUR);
  await page.waitForTimeout(200);
  expect(requests.slice(before)).toEqual([]);
  await page.mouse.move(30, 30);
  await pass(6 * SECOND);
  await expect.poll(() => requests.length).toBeGreaterThan(before);
});
