import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fileSource } from '../../src/core/crypto/keys/file-source.ts';
import { openStore } from '../../src/core/store/open-store.ts';
import { PostgresStore } from '../../src/core/store/postgres/postgres-store.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { readConfig } from '../../src/main/config/config.ts';
import { SettingsEditor } from '../../src/main/config/settings-editor.ts';
import { updatesAt } from '../../src/main/egress/updates.ts';
import { manualClock } from '../support/clock.ts';
import { startFakeInternet } from '../support/fake-internet.ts';
import { theOwner } from '../support/memory.ts';
import { startPostgres } from '../support/postgres.ts';
import { withKey } from '../support/store.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { accessibilityViolations, openWindow, type WindowOptions } from '../support/window.ts';
import { goTo, toast } from './pages.ts';

const region = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

const opened = async (over: WindowOptions = {}) => {
  const all = await openWindow({ clock: manualClock(), ...over });
  await goTo(all.page, 'Settings');
  await region(all.page, 'Key').getByRole('status').waitFor();
  return all;
};

test('browser sessions are listed and ended after a confirmation (R-WIN-46)', async () => {
  const { page, served } = await opened();
  const link = /#link=(.+)$/.exec(served.listener.windowLink() ?? '')?.[1];
  const headers = { 'Content-Type': 'application/json', 'User-Agent': 'Firefox/142.0 Linux' };
  const other = await fetch(`${served.url}/window/open`, { method: 'POST', headers, body: JSON.stringify({ link }) });
  expect(other.status).toBe(200);
  await page.reload();
  await goTo(page, 'Settings');
  const sessions = region(page, 'Browser sessions');
  await expect.poll(() => sessions.getByRole('listitem').count()).toBe(2);
  await sessions.getByRole('button', { name: 'End Firefox 142 on Linux' }).click();
  const question = page.getByRole('dialog', { name: 'End the session of Firefox 142 on Linux?' });
  await question.getByRole('button', { name: 'End session' }).click();
  await expect.poll(() => sessions.getByRole('listitem').count()).toBe(1);
  expect((await served.perform(theOwner, 'windowSessions', {})).sessions).toMatchObject([
    { browser: expect.stringMatching(/Chrome/) as string },
  ]);
});

describe('the key', () => {
  test('is shown with its place, and can be locked and unlocked', async () => {
    const { page, served } = await opened();
    const key = region(page, 'Key');
    await key.getByText('Sealed. The key for this memory is in the environment (HELMDECK_MEMORY_KEY).').waitFor();
    await key.getByRole('button', { name: 'Lock' }).click();
    await key.getByText('This memory is locked.').waitFor();
    expect((await served.perform(theOwner, 'status', {})).store.key.at).toBe('locked');
    expect(await key.getByRole('button', { name: 'Rotate the key…' }).count()).toBe(0);
    await key.getByRole('button', { name: 'Unlock' }).click();
    await key.getByRole('button', { name: 'Lock', exact: true }).waitFor();
    expect((await served.perform(theOwner, 'status', {})).store.key.at).toBe('ok');
  });

  test('has a recovery key, which is shown once (R-WIN-21)', async () => {
    const { page } = await opened();
    const key = region(page, 'Key');
    await key.getByText('You have no recovery key.').waitFor();
    await key.getByRole('button', { name: 'Create a recovery key…' }).click();
    await page.getByRole('dialog', { name: 'Create a recovery key?' }).getByRole('button', { name: 'Create' }).click();
    const shown = page.getByRole('dialog', { name: 'Your recovery key' });
    const words = (await shown.locator('pre').textContent()) ?? '';
    expect(words.length).toBeGreaterThan(40);
    await shown.getByRole('button', { name: 'I have written it down' }).click();
    await expect.poll(() => page.content()).not.toMatch(words);
    await key.getByText('You have a recovery key. If you create a new recovery key, the current one stops working.').waitFor();
  });

  test('is rotated, with progress and a message at the end', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const source = fileSource(folder);
    await source.save?.('current', Buffer.alloc(32, 5));
    const store = await openStore({ folder, clock, sources: () => [source] });
    const { page } = await opened({ store, clock, seed: (as) => as()('remember', { key: 'k', value: 'v' }) });
    const before = readFileSync(join(folder, 'memory.key'), 'utf8');
    await region(page, 'Key').getByRole('button', { name: 'Rotate the key…' }).click();
    await page.getByRole('dialog', { name: 'Rotate the key?' }).getByRole('button', { name: 'Rotate' }).click();
    await toast(page).getByText('The key has been rotated.').waitFor();
    expect(readFileSync(join(folder, 'memory.key'), 'utf8')).not.toBe(before);
    await store[Symbol.asyncDispose]();
  });

  test('shows why it cannot be rotated', async () => {
    const { page } = await opened();
    await region(page, 'Key').getByRole('button', { name: 'Rotate the key…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
    expect(await region(page, 'Key').getByRole('alert').textContent()).toMatch(/HELMDECK_MEMORY_KEY/);
  });

  test('is required for backups', async () => {
    const clock = manualClock();
    const store = new RamStore(clock);
    const { page } = await opened({ store, clock });
    await region(page, 'Key').getByText('This memory is not saved.').waitFor();
    expect(await page.getByRole('button', { name: 'Back up now' }).count()).toBe(0);
    await store[Symbol.asyncDispose]();
  });
});

describe('safety', () => {
  test('lists backups with path and date', async () => {
    const { page, served } = await opened({ seed: (as) => as()('remember', { key: 'k', value: 'v' }) });
    const safety = region(page, 'Safety');
    await safety.getByText('No backups yet.').waitFor();
    await safety.getByRole('button', { name: 'Back up now' }).click();
    await safety.getByText('Backed up and verified.').waitFor();
    const [made] = (await served.perform(theOwner, 'backups', {})).backups;
    const line = safety.getByRole('list', { name: 'Backups' }).getByRole('listitem');
    expect(await line.innerText()).toMatch(made?.file ?? 'none');
    expect(await line.innerText()).toMatch('3 June 2026 at 14:02');
  });

  test('backs up and verifies a memory in a database (R-PGUP-08)', async () => {
    const server = await startPostgres();
    onTestFinished(() => server[Symbol.asyncDispose]());
    const clock = manualClock();
    const store = await PostgresStore.open({ folder: tempFolder(), database: server.newMemory(), clock, sources: withKey() });
    onTestFinished(() => store[Symbol.asyncDispose]());
    const { page } = await opened({ store, clock, seed: (as) => as()('remember', { key: 'k', value: 'v' }) });
    const safety = region(page, 'Safety');
    await safety.getByRole('button', { name: 'Back up now' }).click();
    await safety.getByText('Backed up and verified.').waitFor();
    await safety.getByRole('button', { name: 'Verify' }).click();
    await expect.poll(() => safety.getByRole('status').innerText()).toMatch(/\d+ entries verified\.$/);
  });

  test('verifies all entries', async () => {
    const { page } = await opened({ seed: (as) => as()('remember', { key: 'k', value: 'v' }) });
    await region(page, 'Safety').getByRole('button', { name: 'Verify' }).click();
    await expect.poll(() => region(page, 'Safety').getByRole('status').innerText()).toMatch(/^\d+ entries verified\.$/);
  });
});

test('shows the used part of the quota', async () => {
  const { page } = await opened({ seed: (as) => as()('remember', { key: 'k', value: 'v' }) });
  const room = region(page, 'Space');
  await room.getByText('Facts: 1 of 10,000').waitFor();
  await room.getByText('Size, including earlier versions: 1 KiB of 64 MiB').waitFor();
  expect(await room.getByRole('meter', { name: 'Facts' }).getAttribute('max')).toBe('10000');
});

describe('a setting', () => {
  const kept = (environment: Record<string, string> = {}) => {
    const folder = tempFolder();
    const config = readConfig({ environment, platform: 'linux', home: () => folder });
    return { path: join(folder, 'config.json'), settings: new SettingsEditor({ ...config, folder }, { environment }) };
  };

  test('is changed in the file and takes effect at the next start (R-SET-01, R-HTTP-13)', async () => {
    const { path, settings } = kept();
    const { page } = await opened({ settings, allowedErrors: /400/ });
    const choices = region(page, 'Preferences');
    const row = choices.getByRole('listitem').filter({ hasText: 'HELMDECK_LOCK_AFTER' });
    await row.getByText('never').waitFor();
    await choices.getByRole('button', { name: 'Change HELMDECK_LOCK_AFTER' }).click();
    const dialog = page.getByRole('dialog', { name: 'Minutes of inactivity before the memory locks' });
    const [field, hint] = await Promise.all([dialog.getByRole('textbox').boundingBox(), dialog.locator('.hint').boundingBox()]);
    expect(hint?.y).toBeGreaterThanOrEqual((field?.y ?? 0) + (field?.height ?? 0));
    expect(await accessibilityViolations(page)).toEqual([]);
    await dialog.getByLabel('HELMDECK_LOCK_AFTER').fill('10h');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('HELMDECK_LOCK_AFTER must be a whole number').waitFor();
    await dialog.getByLabel('HELMDECK_LOCK_AFTER').fill('10');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await row.getByText('after restart 10').waitFor();
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ HELMDECK_LOCK_AFTER: 10 });

    await choices.getByRole('button', { name: 'Change HELMDECK_SECRETS' }).click();
    await page.getByRole('dialog').getByLabel('HELMDECK_SECRETS').selectOption('warn');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await choices.getByText('after restart warn').waitFor();
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ HELMDECK_LOCK_AFTER: 10, HELMDECK_SECRETS: 'warn' });
  });

  test('that takes effect immediately needs no restart (R-MEAN-26)', async () => {
    const applied: (string | undefined)[] = [];
    const folder = tempFolder();
    const config = readConfig({ environment: {}, platform: 'linux', home: () => folder });
    const apply = { HELMDECK_MEANING: (value: string | undefined) => void applied.push(value) };
    const { page } = await opened({ settings: new SettingsEditor({ ...config, folder }, { environment: {} }, apply) });
    const row = region(page, 'Preferences').getByRole('listitem').filter({ hasText: 'HELMDECK_MEANING' });
    await row.getByRole('button').click();
    await page.getByText('Choose Default to use the default (bundled, or off').waitFor();
    await page.getByRole('dialog').getByLabel('HELMDECK_MEANING').selectOption('off');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await toast(page).getByText('Saved.', { exact: true }).waitFor();
    await row.getByText('off from the file').waitFor();
    expect(applied).toEqual(['off']);
  });

  test('from the environment, or about keys and code, is read-only (R-SET-01)', async () => {
    const { page } = await opened({ settings: kept({ HELMDECK_QUOTA_FACTS: '7' }).settings });
    await region(page, 'Preferences').getByText('7 from the environment').waitFor();
    expect(await page.getByRole('button', { name: 'Change HELMDECK_QUOTA_FACTS' }).count()).toBe(0);
    await region(page, 'Preferences')
      .getByRole('listitem')
      .filter({ hasText: 'HELMDECK_QUOTA_BYTES' })
      .getByText('64 MiB')
      .waitFor();
    await region(page, 'Other settings')
      .getByText(/^Not set: \d+$/)
      .click();
    await region(page, 'Other settings').getByText('HELMDECK_MEMORY_KEY_FILE').waitFor();
    expect(await region(page, 'Other settings').getByRole('button').count()).toBe(0);
  });
});

describe('facts in a file', () => {
  const lineOf = (over: object): string => JSON.stringify({ key: 'k', value: 'v', ...over });
  const bring = async (page: Page, lines: readonly string[]): Promise<void> => {
    const path = join(tempFolder(), 'facts.jsonl');
    writeFileSync(path, lines.join('\n'));
    await page.getByLabel('File to import').setInputFiles(path);
  };

  test('are exported in the format of the command line and imported unchanged', async () => {
    const { page, as } = await opened({
      async seed(ask) {
        for (let index = 0; index < 450; index += 1) {
          await ask()('remember', { key: `k${index}`, value: `${index} ☃`, category: 'c', tags: ['t'] });
        }
      },
    });
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export…' }).click()]);
    await toast(page).getByText('The exported file is not encrypted').waitFor();
    expect(download.suggestedFilename()).toBe('helmdeck-memory-me.jsonl');
    const lines = readFileSync((await download.path()) ?? '', 'utf8')
      .trimEnd()
      .split('\n');
    expect(lines).toHaveLength(450);
    expect(JSON.parse(lines[7] ?? '')).toMatchObject({ key: 'k7', value: '7 ☃', category: 'c', tags: ['t'] });
    await as()('forget', { scope: 'facts' });
    await bring(page, lines);
    await page.getByText('facts.jsonl: 450 new, 0 changed, 0 unchanged.').waitFor();
    await page.getByRole('button', { name: 'Import 450 facts' }).click();
    await page.getByText('Imported: 450 new').waitFor();
    expect(await as()('recall', { key: 'k7' })).toMatchObject({ value: '7 ☃', client: 'window' });
  });

  test('are previewed before an import, and each rejected line is listed (R-WIN-25)', async () => {
    const { page, as } = await opened({ seed: (ask) => ask()('remember', { key: 'known', value: 'v' }) });
    await bring(page, [
      lineOf({ key: 'new' }),
      'no JSON',
      '',
      lineOf({ key: 'known', value: 'other' }),
      lineOf({ ttl_seconds: 5 }),
    ]);
    await page.getByText('facts.jsonl: 1 new, 1 changed, 0 unchanged, 2 lines rejected.').waitFor();
    const refused = await page.getByRole('list', { name: 'Rejected lines' }).getByRole('listitem').allTextContents();
    expect(refused).toEqual([
      expect.stringMatching(/^Line 2: The line is not JSON/),
      expect.stringMatching(/^Line 5: ttl_seconds/),
    ]);
    expect((await as()('status', {})).facts).toBe(1);
    await page.getByRole('button', { name: 'Import 2 facts' }).click();
    await page.getByText('Imported: 1 new, 1 changed').waitFor();
    expect((await as()('recall', { key: 'known' })).value).toBe('other');
  });

  test('stay unchanged when the import is cancelled', async () => {
    const { page, as } = await opened();
    await bring(page, [lineOf({})]);
    await page.getByRole('group', { name: 'Import facts.jsonl' }).getByRole('button', { name: 'Cancel' }).click();
    expect((await as()('status', {})).facts).toBe(0);
    await bring(page, ['not JSON either']);
    await page.getByText('1 line rejected').waitFor();
    expect(await page.getByRole('button', { name: 'Import 0 facts' }).isDisabled()).toBe(true);
  });
});

describe('the version', () => {
  test('is shown, and updates are checked only when the button is pressed (R-NEWS-01, R-NEWS-02)', async () => {
    const world = await startFakeInternet();
    const url = 'https://releases.example.com/notes/1.10.0';
    let newest: object | undefined;
    world.respond('releases.example.com', (_request, response) =>
      newest ? response.end(JSON.stringify(newest)) : response.writeHead(503).end(),
    );
    const { page, requests } = await opened({ updates: updatesAt('https://releases.example.com/newest.json', world.egress) });
    const version = region(page, 'Version');
    await version.getByText('Helmdeck Memory 1.2.3').waitFor();
    expect(await version.innerText()).toMatch('The program contacts releases.example.com only when you press this button.');
    expect(world.requests).toEqual([]);
    const check = version.getByRole('button', { name: 'Check for updates' });
    await check.click();
    await version.getByRole('alert').getByText('releases.example.com responded with status 503').waitFor();
    newest = { version: '1.2.3', url };
    await check.click();
    await version.getByText('You have the latest version.').waitFor();
    expect(await version.getByRole('alert').count()).toBe(0);
    newest = { version: '1.10.0', url };
    await page.keyboard.press('Control+k');
    await page.keyboard.type('check for');
    await page.keyboard.press('Enter');
    await version.getByText('Version 1.10.0 is available.').waitFor();
    expect(await version.getByRole('link').count()).toBe(0);
    await version.getByRole('button', { name: 'Copy the link' }).click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(url);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(world.requests).toHaveLength(3);
    expect(requests.filter((asked) => asked.includes('releases'))).toEqual([]);
  });

  test('of a build without an update address has no button (R-NEWS-01)', async () => {
    const { page } = await opened();
    const version = region(page, 'Version');
    await version.getByText("This build can't check for updates").waitFor();
    expect(await version.getByRole('button').count()).toBe(0);
  });
});
