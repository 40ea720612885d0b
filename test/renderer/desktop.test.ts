import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import type { ListeningState } from '../../src/contract/status.ts';
import type { DesktopCalls, PreloadBridge } from '../../src/contract/window.ts';
import { toWindowResult } from '../../src/listeners/window/window-result.ts';
import { accentStyle } from '../../src/main/shell/accent.ts';
import type { ConsentQuestion } from '../../src/main/shell/consent.ts';
import { createWindowCalls } from '../../src/main/shell/window-calls.ts';
import { createClientHome } from '../support/clients.ts';
import { aPack } from '../support/packs.ts';
import { openWindow } from '../support/window.ts';
import { goTo, toast } from './pages.ts';

/** The window with the bridge of the desktop instead of the one for browsers. */
async function desktop({ colours, ...over }: { colours?: (page: Page) => Promise<unknown>; [name: string]: unknown } = {}) {
  const asked: ConsentQuestion[] = [];
  const unsaved: boolean[] = [];
  const shell: {
    yes: boolean;
    listening: ListeningState;
    atLogin: DesktopCalls['atLogin'];
    bundle: boolean;
    shown: number;
  } = {
    yes: true,
    bundle: true,
    shown: 0,
    atLogin: { starts: false, hidden: false },
    listening: { at: 'listening', url: 'http://127.0.0.1:1' },
  };
  const opened = await openWindow({
    async before(page: Page, { perform }) {
      await colours?.(page);
      const calls = createWindowCalls({
        perform,
        desktop: {
          listening: async () => shell.listening,
          resumeListening: async () => (shell.listening = { at: 'listening', url: 'http://127.0.0.1:1' }),
          async showBundle() {
            if (!shell.bundle) throw new Failure('unavailable', 'The bundle is missing.');
            shell.shown += 1;
            return { shown: true };
          },
          atLogin: async () => shell.atLogin,
        },
        chooseAtLogin: ({ starts = shell.atLogin.starts, hidden = shell.atLogin.hidden }) =>
          (shell.atLogin = { ...(starts !== undefined && { starts }), hidden }),
        setUnsaved: (given) => void unsaved.push(given),
        askOwner: async (question) => (asked.push(question), shell.yes),
      });
      const pipe = ((...given: Parameters<PreloadBridge['call']>) =>
        toWindowResult(calls(...given))) satisfies PreloadBridge['call'];
      await page.exposeFunction('pipe', pipe);
      await page.addInitScript(`
        const heard = new Set();
        globalThis.changed = (change) => heard.forEach((hear) => hear(change));
        globalThis.helmdeck = {
          place: 'desktop',
          call: (...given) => globalThis.pipe(...given),
          onChange: (hear) => (heard.add(hear), () => heard.delete(hear)),
        };
      `);
    },
    async seed(as) {
      for (const key of ['a', 'b', 'c']) await as()('remember', { key, value: 'v' });
    },
    ...over,
  });
  return { ...opened, asked, unsaved, shell };
}

const rows = (page: Page) => page.getByRole('listbox', { name: 'Facts' }).getByRole('option');

describe('on the desktop', () => {
  test('only the program asks before many facts are forgotten (R-DESK-40)', async () => {
    const { page, asked, shell, as } = await desktop();
    shell.yes = false;
    await rows(page).first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Shift+Backspace');
    await toast(page).getByText('You did not agree, so nothing was done.').waitFor();
    expect(asked).toMatchObject([{ message: 'Forget 3 entries?', detail: expect.stringMatching(/\nc\nb\na$/) as string }]);
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect((await as()('status', {})).facts).toBe(3);
    shell.yes = true;
    await page.keyboard.press('Shift+Backspace');
    await toast(page).getByText('3 facts forgotten.').waitFor();
    expect(asked).toHaveLength(2);
    expect((await as()('status', {})).facts).toBe(0);
  });

  test('only the program asks before it deletes records or changes keys (R-DESK-40)', async () => {
    const { page, asked } = await desktop({ packs: { packs: [aPack(() => ({ said: '' }))] } });
    await goTo(page, 'Packs');
    await page.getByRole('button', { name: 'Echo' }).click();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('Finished in').waitFor();
    await page.getByRole('button', { name: 'Clear cache and records…' }).click();
    await toast(page).getByText('1 entry forgotten.').waitFor();
    await goTo(page, 'Settings');
    await page.getByRole('button', { name: 'Rotate the key…' }).click();
    await expect.poll(() => asked.length).toBe(2);
    await page.getByRole('button', { name: 'Create a recovery key…' }).click();
    await page.getByRole('dialog', { name: 'Your recovery key' }).waitFor();
    expect(asked.map(({ yes }) => yes)).toEqual(['Forget', 'Rotate Key', 'Create Key']);
  });

  test('only the program asks before items of the Inbox delete something or are all dropped (R-DESK-40, R-WIN-54)', async () => {
    const { page, asked, shell, as } = await desktop();
    const stranger = as({ client: 'stranger', quarantined: true });
    await stranger('forget', { scope: 'category:user_facts' });
    await stranger('remember', { key: 'new', value: 'x' });
    await page.getByRole('button', { name: 'Inbox 2' }).click();
    shell.yes = false;
    await page.getByRole('button', { name: 'Allow: category:user_facts' }).click();
    await page.getByRole('alert').getByText('You did not agree, so nothing was done.').waitFor();
    expect(asked.map(({ message }) => message)).toEqual(['Forget 3 entries?']);
    expect((await as()('status', {})).facts).toBe(3);
    shell.yes = true;
    await page.getByRole('button', { name: 'Allow: category:user_facts' }).click();
    await toast(page).getByText('Done.').waitFor();
    expect((await as()('status', {})).facts).toBe(0);
    await page.getByRole('button', { name: 'Drop all…' }).click();
    await toast(page).getByText('1 item dropped.').waitFor();
    expect(asked.map(({ message }) => message).at(-1)).toBe('Drop everything in the Inbox?');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test('the window reports unsaved edits to the program (R-STAY-01)', async () => {
    const { page, unsaved } = await desktop();
    await expect.poll(() => unsaved).toEqual([false]);
    await rows(page).first().click();
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const value = page.getByLabel('Value');
    await value.fill('something else');
    await expect.poll(() => unsaved).toEqual([false, true]);
    // The edit stays while another page is open.
    await goTo(page, 'Settings');
    await page.keyboard.press('Control+1');
    expect(unsaved).toEqual([false, true]);
    await rows(page).first().click();
    await page.getByRole('button', { name: 'Discard' }).click();
    await expect.poll(() => unsaved).toEqual([false, true, false]);
  });

  test('a new accent colour of the system applies at once (R-DESK-43)', async () => {
    let colour = '0057b7';
    const { page } = await desktop({
      colours: (asked: Page) =>
        asked.route('**/accent.css*', (route) => route.fulfill({ contentType: 'text/css', body: accentStyle(colour) })),
    });
    const accent = () => page.evaluate(`getComputedStyle(document.querySelector('.list > input')).outlineColor`);
    await expect.poll(accent).toBe('rgb(0, 87, 183)');
    colour = '7a1fa2';
    await page.evaluate(`changed({ namespace: '', kind: 'accent' })`);
    await expect.poll(accent).toBe('rgb(122, 31, 162)');
  });

  test('two settings control the start at login, and both are off by default (R-DESK-09)', async () => {
    const { page, shell } = await desktop();
    await goTo(page, 'Settings');
    const [starts, hidden] = [page.getByLabel('Start Helmdeck Memory'), page.getByLabel('Start in the tray')];
    await starts.waitFor();
    expect([await starts.isChecked(), await hidden.isChecked()]).toEqual([false, false]);
    await starts.click();
    await expect.poll(() => shell.atLogin).toEqual({ starts: true, hidden: false });
    await hidden.click();
    await expect.poll(() => shell.atLogin).toEqual({ starts: true, hidden: true });
    shell.atLogin = { starts: false, hidden: true };
    await page.evaluate(`changed({ namespace: '', kind: 'login' })`);
    await expect.poll(() => starts.isChecked()).toBe(false);
    // The settings are hidden on a system without login items.
    shell.atLogin = { hidden: true };
    await page.evaluate(`changed({ namespace: '', kind: 'login' })`);
    await expect.poll(() => starts.count()).toBe(0);
  });

  test('cancels a run of a pack (R-WIN-40)', async () => {
    const slow = aPack(() => new Promise(() => undefined), { name: 'test.slow', title: 'Slow' });
    const { page } = await desktop({ packs: { packs: [slow] } });
    await goTo(page, 'Packs');
    await page.getByRole('button', { name: 'Slow' }).click();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await expect.poll(() => page.getByRole('alert').allTextContents()).toEqual([expect.stringMatching('The run was cancelled')]);
  });

  test('every page reports that agents have no access, and can resume it (R-DESK-07)', async () => {
    const { page, shell } = await desktop();
    const banner = page.getByRole('status', { name: 'Memory status' });
    shell.listening = { at: 'failed', why: 'the port is taken; end what has it' };
    await page.evaluate(`changed({ namespace: '', kind: 'listening' })`);
    await banner.getByText("Agents can't connect. the port is taken; end what has it").waitFor();
    await goTo(page, 'Settings');
    shell.listening = { at: 'paused' };
    await page.evaluate(`changed({ namespace: '', kind: 'listening' })`);
    await banner.getByText('Agent access is paused.').waitFor();
    await banner.getByRole('button', { name: 'Resume' }).click();
    await expect.poll(() => banner.textContent()).toBe('');
  });

  test('shows the bundle for Claude Desktop in the file manager (R-BUNDLE-07)', async () => {
    const { clients, put } = createClientHome();
    put(process.platform === 'darwin' ? 'Library/Application Support/Claude/x' : '.config/Claude/x', '');
    const { page, shell } = await desktop({ clients });
    await goTo(page, 'Connect');
    await page.getByRole('button', { name: 'Connect Claude Desktop' }).click();
    const dialog = page.getByRole('dialog', { name: 'Connect Claude Desktop' });
    await dialog.getByText('Use the bundle instead').click();
    await dialog.getByRole('button', { name: 'Show the bundle' }).click();
    await expect.poll(() => shell.shown).toBe(1);
    shell.bundle = false;
    await dialog.getByRole('button', { name: 'Show the bundle' }).click();
    await dialog.getByText('The bundle is missing.').waitFor();
  });
});
