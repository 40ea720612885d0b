import { expect, test } from 'vitest';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { createClientHome } from '../support/clients.ts';
import { manualClock, SECOND } from '../support/clock.ts';
import { openWindow } from '../support/window.ts';

test('the first screen explains the program, the key and how to connect an agent (R-WIN-22)', async () => {
  const { clients, put } = createClientHome();
  put('.codex/config.toml', '');
  const { page } = await openWindow({ clock: manualClock(), firstRun: true, clients });
  await page.getByRole('heading', { name: 'One memory for all your agents' }).waitFor();
  await page.getByText('The memory is sealed. The key for this memory is in the environment').waitFor();
  await page.getByText('Found on this computer: Codex.').waitFor();
  expect(
    await page
      .getByRole('main')
      .evaluate((main: { scrollHeight: number; clientHeight: number }) => main.scrollHeight <= main.clientHeight),
  ).toBe(true);
  await page.getByText('Or connect an agent by hand, in a terminal').click();
  await page.getByRole('button', { name: 'Copy the lines for Claude Code' }).waitFor();
  expect(await page.getByRole('searchbox').count()).toBe(0);
  await page.getByRole('button', { name: 'Connect an agent' }).click();
  await page.getByRole('button', { name: 'Connect Codex' }).waitFor();
});

test('without a key, the first screen says that nothing is saved, and how to create a key', async () => {
  const clock = manualClock();
  const store = new RamStore(clock);
  const { page } = await openWindow({ clock, firstRun: true, store });
  await page.getByRole('main').getByText('This memory is not saved. There is no key').waitFor();
  expect(await page.getByRole('main').innerText()).toMatch('helmdeck-memory key init --file');
  await store[Symbol.asyncDispose]();
});

test('the first stored fact appears without a reload (R-WIN-22)', async () => {
  const { page, as } = await openWindow({ firstRun: true });
  await page.getByText('Where the key is').waitFor();
  await as()('remember', { key: 'editor', value: 'Helix' });
  await page.getByRole('option', { name: /editor/ }).waitFor();
  expect(await page.getByText('Where the key is').count()).toBe(0);
});

test('the first use of a token replaces the first screen', async () => {
  const { page, served, advance: pass } = await openWindow({ clock: manualClock(), firstRun: true });
  await page.getByText('Where the key is').waitFor();
  await served.tokens.verify(await served.token(), 'mcp');
  await page.mouse.move(10, 10);
  await pass(6 * SECOND);
  await page.getByText('No facts yet.').waitFor();
  expect(await page.getByText('Where the key is').count()).toBe(0);
});
