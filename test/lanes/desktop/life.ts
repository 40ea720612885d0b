import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ElectronApplication, Page } from 'playwright-core';
import type { SettingsReport } from '../../../src/contract/settings.ts';
import { template } from '../../../src/main/own-packs/template.ts';
import { type Check, Missing } from '../faults/lane.ts';
import {
  act,
  aFolder,
  anAgent,
  answerDialogs,
  args,
  askFrom,
  bundledModelWorks,
  aTakenPort,
  ELECTRON,
  environmentOf,
  eventually,
  isThere,
  isVisible,
  known,
  labels,
  modelProcesses,
  must,
  PATIENCE_MS,
  press,
  pressInIcon,
  ROOT,
  rows,
  start,
  startAlone,
  textOf,
  watchIcon,
} from './app.ts';
import { aTrayHost } from './tray-host.ts';

const closeWindow = (app: ElectronApplication): Promise<void> =>
  act(app, ({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.close());

const pageProcess = (app: ElectronApplication): Promise<number> =>
  known(app, ({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.webContents.getOSProcessId() ?? 0);

/** While a page dies, playwright can lose a result from the main process. */
const pageProcessNow = (app: ElectronApplication): Promise<number> => pageProcess(app).catch(() => 0);

const NOT_SAVED = 'Quit and lose unsaved text?';

async function typeUnsaved(page: Page): Promise<void> {
  await askFrom(page, 'me', 'remember', { key: 'edited', value: 'saved' });
  await rows(page, /edited/).click();
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByLabel('Value').fill('not saved');
  await page.getByRole('button', { name: 'Discard' }).waitFor();
}

/** Start, lifetime and exit. */
export const life: readonly Check[] = [
  {
    name: 'npm start -- --desktop runs the desktop in the sandbox and exits with it (R-DESK-12)',
    async run({ folder }) {
      if (args.length > 0) throw new Missing('an ordinary user; Electron starts for root only without its sandbox');
      const environment = { ...environmentOf({ folder: aFolder(folder) }), ELECTRON_OVERRIDE_DIST_PATH: dirname(ELECTRON) };
      const child = spawn(process.execPath, ['src/main/roots/start.ts', '--desktop'], { env: environment, stdio: 'pipe' });
      let said = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()));
      const ended = once(child, 'close');
      await eventually('it runs', () => /^Helmdeck Memory is running\. Agents connect to http/m.test(said));
      child.kill('SIGTERM');
      const [code] = (await ended) as [number | null];
      must(`it exited with code 0 (${code}: ${said})`, code === 0);
      return said.trim();
    },
  },
  {
    name: 'a first start without a key shows the window and says that nothing is stored (R-DESK-01)',
    async run({ folder }) {
      const { app } = await start({ folder: aFolder(folder), environment: { HELMDECK_MEMORY_KEY: undefined } });
      // This bus has no keychain, and the desktop creates no key file on its own.
      await eventually(
        'the text appears',
        async () => (await labels(app))[0]?.endsWith('Facts are lost when Helmdeck Memory quits.') === true,
      );
      const [line] = await labels(app);
      await app.close();
      return `${line}`;
    },
  },
  {
    name: 'auto-lock locks the memory when the owner is away or the machine sleeps (R-LOCK-01)',
    async run({ folder }) {
      const given = { folder: aFolder(folder), environment: { HELMDECK_LOCK_AFTER: '1' } };
      const { app, page } = await start(given);
      // This display has no input, so the owner counts as away after a minute.
      const locked = async (): Promise<boolean> => (await labels(app))[0]?.startsWith('Locked') === true;
      await eventually('it locks', locked, 60_000 + PATIENCE_MS);
      await page
        .getByText(/the owner was away for a minute \(HELMDECK_LOCK_AFTER\)/i)
        .first()
        .waitFor();
      // The owner returns.
      await act(app, ({ powerMonitor }) => Object.assign(powerMonitor, { getSystemIdleTime: () => 0 }));
      const asked = await answerDialogs(app, 1);
      await page.getByRole('button', { name: 'Unlock' }).first().click();
      await eventually('it is open again', async () => !(await locked()));
      must('its owner was asked', (await asked()).join() === 'Unlock the memory?');
      await act(app, ({ powerMonitor }) => powerMonitor.emit('suspend'));
      await eventually('it locks at once', locked);
      await app.close();
      return 'locked twice';
    },
  },
  {
    name: 'a global shortcut opens the window, and a taken shortcut is reported (R-DESK-16)',
    async run({ folder }) {
      const environment = { HELMDECK_SHORTCUT: 'Ctrl+Shift+F9' };
      const first = await start({ folder: aFolder(folder), environment });
      await eventually('the text appears', async () => (await labels(first.app)).includes('Shortcut: Ctrl+Shift+F9'));
      must('they are held', await known(first.app, ({ globalShortcut }) => globalShortcut.isRegistered('Ctrl+Shift+F9')));
      const second = await start({ folder: aFolder(folder), environment });
      const opensNothing = async () =>
        (await labels(second.app)).some((label) => label.startsWith('Shortcut Ctrl+Shift+F9 Is Not Available'));
      await eventually('the second says that they are taken', opensNothing);
      await first.app.close();
      await second.app.close();
      return 'held, and taken';
    },
  },
  {
    name: 'settings from the file are shown with their source (R-DESK-15)',
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      mkdirSync(join(given.folder, 'data'), { mode: 0o700 });
      writeFileSync(join(given.folder, 'data/config.json'), '{"HELMDECK_QUOTA_FACTS": 7}', { mode: 0o600 });
      const { app, page } = await start(given);
      const crossed = await askFrom(page, 'me', 'settings', {});
      await app.close();
      const { file, settings } = (crossed.ok ? crossed.value : {}) as SettingsReport;
      const of = (name: string) => settings.find((row) => row.name === name)?.from;
      must(`the file is named (${file})`, file === join(given.folder, 'data/config.json'));
      must('each setting names its source', of('HELMDECK_QUOTA_FACTS') === 'file' && of('HELMDECK_ADDR') === 'environment');
      return 'file and environment';
    },
  },
  {
    name: 'the bundled model runs in a process of its own, which a lock ends (R-MEAN-21)',
    async run({ folder }) {
      const running = await start({ folder: aFolder(folder), environment: { HELMDECK_MEANING: 'bundled' } });
      must('the model is not loaded before it is needed', (await modelProcesses(running.app)) === 0);
      const told = await bundledModelWorks(running);
      await running.app.close();
      return told;
    },
  },
  {
    name: 'an own pack runs in a separate process (R-PACK-10)',
    async run({ folder }) {
      const given = { folder: aFolder(folder), environment: { HELMDECK_PACKS: 'test.own' } };
      const packs = join(given.folder, 'data', 'packs');
      mkdirSync(packs, { recursive: true, mode: 0o700 });
      writeFileSync(join(packs, 'test.own.mjs'), template('test.own'), { mode: 0o600 });
      const { app, page } = await start(given);
      await answerDialogs(app, 1);
      const crossed = await askFrom(page, 'me', 'runPack', { name: 'test.own', input: { who: 'Ada' } });
      must(`it answers (${JSON.stringify(crossed)})`, crossed.ok && JSON.stringify(crossed.value).includes('Hello, Ada.'));
      const windows = await known(app, ({ BrowserWindow }) => BrowserWindow.getAllWindows().length);
      must('no second desktop started', windows === 1);
      await app.close();
      return JSON.stringify(crossed.ok && crossed.value);
    },
  },
  {
    name: 'a second start shows the window of the first and exits (R-DESK-04)',
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      using _host = await aTrayHost();
      const { app } = await start(given);
      await answerDialogs(app, 0);
      await closeWindow(app);
      await eventually('the window is hidden', async () => !(await isVisible(app)));
      const { code, said } = await startAlone(given);
      must(`the second exits with code 0 and says why (${said})`, code === 0 && said.includes('is already running'));
      await eventually('the window is back', () => isVisible(app));
      await app.close();
      return 'one program';
    },
  },
  {
    name: 'closing the window keeps serving agents, and one notice says so (R-DESK-05)',
    async run({ folder }) {
      using _host = await aTrayHost();
      const { app, folder: at } = await start({ folder: aFolder(folder) });
      const asked = await answerDialogs(app, 0);
      await eventually('agents can connect', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      await using agent = await anAgent(at);
      for (let time = 0; time < 2; time += 1) {
        await closeWindow(app);
        await eventually('the window is hidden', async () => !(await isVisible(app)));
        const { isError } = await agent.client.callTool({ name: 'memory_store', arguments: { key: 'k', value: `${time}` } });
        must('agents are served', isError !== true);
        await press(app, 'Open Memory');
        await eventually('the window is back', () => isVisible(app));
      }
      must('it said so once', (await asked()).length === 1);
      await app.close();
      return 'closed twice, one notice';
    },
  },
  {
    name: 'quitting with an unsaved edit asks once, and the owner can cancel (R-STAY-01)',
    async run({ folder }) {
      using _host = await aTrayHost();
      const given = { folder: aFolder(folder) };
      const { app, page, pid, ended } = await start(given);
      await typeUnsaved(page);
      const quit = (): Promise<void> => act(app, ({ app: program }) => program.quit());
      const asked = await answerDialogs(app, 0);
      // The hidden window is shown again, so that the owner sees the edit before deciding.
      await closeWindow(app);
      await eventually('the window is hidden', async () => !(await isVisible(app)));
      await press(app, 'Quit Helmdeck Memory');
      await eventually('it asked', async () => (await asked()).some((message) => message === NOT_SAVED));
      must('the unsaved edit is shown', await isVisible(app));
      must('it stays', (await page.getByLabel('Value').inputValue()) === 'not saved');
      // An open dialog is not shown a second time.
      await act(app, ({ dialog }) => {
        Object.assign(globalThis, { open: 0 });
        dialog.showMessageBox = () => {
          (globalThis as unknown as { open: number }).open += 1;
          return new Promise(() => undefined);
        };
      });
      const open = (): Promise<number> => known(app, () => (globalThis as unknown as { open: number }).open);
      for (let time = 0; time < 3; time += 1) await quit();
      await eventually('it asked', async () => (await open()) > 0);
      await quit();
      must('it asked once', (await open()) === 1);
      const from = performance.now();
      process.kill(pid, 'SIGTERM');
      must('a signal still stops the program', (await ended) === 0);
      const took = performance.now() - from;
      must(
        'endpoint.json and the log are deleted',
        !isThere(given.folder, 'endpoint.json') && !isThere(given.folder, 'memory.db-wal'),
      );

      const second = await start(given);
      await typeUnsaved(second.page);
      await answerDialogs(second.app, 1);
      await act(second.app, ({ app: program }) => program.quit());
      must('a confirmed action is done', (await second.ended) === 0);
      return `asked once; a signal took ${took.toFixed(0)} ms`;
    },
  },
  {
    name: 'a page that hangs or crashed with an edit does not prevent quitting (R-STAY-01)',
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      const first = await start(given);
      await typeUnsaved(first.page);
      await answerDialogs(first.app, 1);
      void first.page.evaluate('for (;;);').catch(() => undefined);
      await act(first.app, ({ app }) => app.quit());
      must('with a page that hangs it ended well', (await first.ended) === 0);

      const second = await start(given);
      await typeUnsaved(second.page);
      const asked = await answerDialogs(second.app, 0);
      const pid = await pageProcess(second.app);
      process.kill(pid, 'SIGKILL');
      await eventually('the page has another process', async () => ![0, pid].includes(await pageProcessNow(second.app)));
      must('nothing is left to ask about', (await asked()).length === 0);
      await act(second.app, ({ app }) => app.quit());
      must('with a page that died it ended well', (await second.ended) === 0);
      return 'twice';
    },
  },
  {
    name: 'a crashed page is reloaded, and agents are served meanwhile (R-USE-04)',
    async run({ folder }) {
      const { app, folder: at } = await start({ folder: aFolder(folder) });
      await eventually('agents can connect', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      await using agent = await anAgent(at);
      const before = await pageProcess(app);
      process.kill(before, 'SIGKILL');
      await eventually('the page has another process', async () => ![0, before].includes(await pageProcessNow(app)));
      const { isError } = await agent.client.callTool({ name: 'memory_store', arguments: { key: 'k', value: 'v' } });
      must('agents are served', isError !== true);
      await app.close();
      return 'made anew';
    },
  },
  {
    name: 'a page that crashes twice in a row is reloaded when its window is opened (R-STAY-02)',
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      const { app, ended } = await start(given);
      const first = await pageProcess(app);
      process.kill(first, 'SIGKILL');
      await eventually('the page has another process', async () => ![0, first].includes(await pageProcessNow(app)));
      process.kill(await pageProcess(app), 'SIGKILL');
      const isDead = (): Promise<boolean> =>
        known(app, ({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.webContents.isCrashed() !== false);
      await eventually('it stays dead', isDead);
      await eventually('the menu is complete', async () => (await labels(app)).includes('Open Memory'));
      for (const open of [() => press(app, 'Open Memory'), () => startAlone(given)]) {
        await open();
        await eventually('it shows the memory again', () =>
          known(app, ({ BrowserWindow }) => {
            const contents = BrowserWindow.getAllWindows()[0]?.webContents;
            if (!contents || contents.isCrashed() || contents.isLoading()) return false;
            return contents.executeJavaScript(`document.querySelector('nav') !== null`) as Promise<boolean>;
          }),
        );
        process.kill(await pageProcess(app), 'SIGKILL');
        await eventually('it is dead again', isDead);
      }
      await act(app, ({ app: program }) => program.quit());
      must('it exited with code 0', (await ended) === 0);
      return 'opened twice';
    },
  },
  {
    name: 'without a tray the window is minimised instead of hidden (R-DESK-05)',
    async run({ folder }) {
      const { app } = await start({ folder: aFolder(folder) });
      await act(app, ({ BrowserWindow }) => {
        const [window] = BrowserWindow.getAllWindows();
        Object.assign(globalThis, { did: [] as string[] });
        const { did } = globalThis as unknown as { did: string[] };
        if (window) Object.assign(window, { hide: () => did.push('hide'), minimize: () => did.push('minimize') });
      });
      await answerDialogs(app, 0);
      await closeWindow(app);
      const did = (): Promise<string[]> => known(app, () => (globalThis as unknown as { did: string[] }).did);
      await eventually('the window was put away', async () => (await did()).length > 0);
      must('it was made small', (await did()).join() === 'minimize');
      await app.close();
      return 'made small instead';
    },
  },
  {
    name: 'with the setting to quit on close, closing the window exits in order (R-DESK-05, R-DESK-06)',
    async run({ folder }) {
      const { app, ended, folder: at } = await start({ folder: aFolder(folder) });
      await answerDialogs(app, 1);
      await closeWindow(app);
      must('it exited with code 0', (await ended) === 0);
      must('endpoint.json and the log are deleted', !isThere(at, 'endpoint.json') && !isThere(at, 'memory.db-wal'));
      return 'quit';
    },
  },
  ...(['SIGTERM', 'SIGINT', 'SIGHUP'] as const).map((signal): Check => ({
    name: `${signal} stops it in order, and acknowledged writes are there at the next start (R-DESK-06)`,
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      const first = await start(given);
      await eventually('agents can connect', async () => (await labels(first.app))[0]?.startsWith('Listening on') === true);
      const agent = await anAgent(given.folder);
      await agent.client.callTool({ name: 'memory_store', arguments: { key: 'kept', value: 'v' } });
      const from = performance.now();
      process.kill(first.pid, signal);
      const end = await first.ended;
      const took = performance.now() - from;
      await Promise.resolve(agent[Symbol.asyncDispose]()).catch(() => undefined);
      must(`it exited with code 0 (${end})`, end === 0);
      must(
        'endpoint.json and the log are deleted',
        !isThere(given.folder, 'endpoint.json') && !isThere(given.folder, 'memory.db-wal'),
      );
      const { app, page } = await start(given);
      must('it is there', (await askFrom(page, 'me', 'recall', { key: 'kept' })).ok);
      await app.close();
      return `${took.toFixed(0)} ms`;
    },
  })),
  {
    name: 'more signals during shutdown do not interrupt it (R-DESK-06)',
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      mkdirSync(join(given.folder, 'data'), { mode: 0o700 });
      writeFileSync(join(given.folder, 'data/desktop.json'), '{"startsHidden": true}', { mode: 0o600 });
      // Without a window, because closing its page would delay the second quit.
      const environment = environmentOf(given);
      const child = spawn(ELECTRON, [...args, ROOT, '--at-login'], { env: environment, stdio: ['ignore', 'pipe', 'ignore'] });
      let said = '';
      child.stdout.on('data', (text: Buffer) => (said += text.toString()));
      const ended = once(child, 'close');
      await eventually('it runs', () => /^Helmdeck Memory is running\. Agents connect to http/m.test(said));
      const agent = await anAgent(given.folder);
      await agent.client.callTool({ name: 'memory_store', arguments: { key: 'kept', value: 'v' } });
      let signals = 0;
      const again = setInterval(() => {
        signals += 1;
        child.kill(signals % 2 === 0 ? 'SIGINT' : 'SIGTERM');
      }, 1);
      const [code, signal] = (await ended) as [number | null, NodeJS.Signals | null];
      clearInterval(again);
      await Promise.resolve(agent[Symbol.asyncDispose]()).catch(() => undefined);
      // After the last step Electron removes its signal handlers, so a signal can kill the process. Nothing is left to close then.
      must(`it exited on its own or was killed by a signal (${code})`, code === 0 || signal === 'SIGTERM' || signal === 'SIGINT');
      must(
        'endpoint.json and the log are deleted',
        !isThere(given.folder, 'endpoint.json') && !isThere(given.folder, 'memory.db-wal'),
      );
      return `${signals} signals`;
    },
  },
  {
    name: 'a signal during the start also stops it in order (R-DESK-06)',
    async run({ folder }) {
      const ends: string[] = [];
      const isHeard = (): boolean => ends.some((end) => end.endsWith(': 0'));
      // A slow machine receives it later.
      for (let after = 50; after <= 800 || (!isHeard() && after < PATIENCE_MS / 4); after += 75) {
        const given = { folder: aFolder(folder) };
        const { code, said } = await startAlone(given, after);
        // Before it handles signals, there is nothing to close.
        must(
          `it exited with code 0 after ${after} ms (${code}: ${said})`,
          (code === 0 || code === null) && !said.includes('cannot start'),
        );
        must(
          'endpoint.json and the log are deleted',
          !isThere(given.folder, 'endpoint.json') && !isThere(given.folder, 'memory.db-wal'),
        );
        ends.push(`${after}: ${code ?? 'signal'}`);
      }
      must('a handler received the signal at least once', isHeard());
      return ends.join(', ');
    },
  },
  {
    name: 'a taken port is reported with a remedy in menu and window, and does not end the program (R-DESK-07)',
    async run({ folder }) {
      const taken = await aTakenPort();
      const { app, page } = await start({ folder: aFolder(folder), address: taken.address });
      await eventually('the text appears', async () => /is in use by/.test((await labels(app))[0] ?? ''));
      await page.getByText(/^Agents can't connect\. .* is in use by .*; stop it, or set HELMDECK_ADDR/).waitFor();
      must('the window works', (await askFrom(page, 'me', 'remember', { key: 'a', value: 'b' })).ok);
      await press(app, 'Try Again');
      must('it is still taken', /is in use by/.test((await labels(app))[0] ?? ''));
      await taken[Symbol.asyncDispose]();
      await page.getByRole('button', { name: 'Try again' }).click();
      await eventually('agents can connect', async () => (await labels(app))[0] === `Listening on ${taken.address}.`);
      await page.getByText(/^Agents can't connect/).waitFor({ state: 'hidden' });
      await app.close();
      return taken.address;
    },
  },
  {
    name: 'icon and menu report the lost entry of an agent and its remedy as soon as the window is opened (R-DESK-44)',
    async run({ folder }) {
      const home = aFolder(folder);
      // Claude Code itself is not run; only its configuration file counts.
      writeFileSync(join(home, '.claude.json'), '{}');
      const environment = { HOME: home, PATH: '/usr/bin:/bin', XDG_CONFIG_HOME: undefined };
      const { app, page } = await start({ folder: aFolder(folder), environment });
      const first = async (): Promise<string> => (await labels(app))[0] ?? '';
      await answerDialogs(app, 1);
      const connected = await askFrom(page, 'me', 'connectClient', { client: 'claude-code' });
      must(`it is connected (${JSON.stringify(connected)})`, connected.ok);
      await eventually('no action is needed', async () => /^Listening on \S+$/.test(await first()));
      writeFileSync(join(home, '.claude.json'), '{}');
      await press(app, 'Open Memory');
      await eventually('the text appears', async () => /Claude Code is no longer connected/.test(await first()));
      const again = await askFrom(page, 'me', 'connectClient', { client: 'claude-code' });
      must('it is mended', again.ok);
      await eventually('no action is needed any more', async () => /^Listening on \S+$/.test(await first()));
      await app.close();
      return 'lost and repaired';
    },
  },
  {
    name: 'after sleep agents are served, and the listener retries a port that was taken (R-STAY-05)',
    async run({ folder }) {
      const taken = await aTakenPort();
      const { app, folder: at } = await start({ folder: aFolder(folder), address: taken.address });
      const sleep = (): Promise<void> =>
        act(app, ({ powerMonitor }) => void (powerMonitor.emit('suspend'), powerMonitor.emit('resume')));
      const first = async (): Promise<string> => (await labels(app))[0] ?? '';
      await eventually('agents cannot connect', async () => /is in use by/.test(await first()));
      await sleep();
      must('it is still taken', /is in use by/.test(await first()));
      await taken[Symbol.asyncDispose]();
      await sleep();
      await eventually('agents can connect', async () => (await first()) === `Listening on ${taken.address}.`);
      await using agent = await anAgent(at);
      for (let night = 0; night < 3; night += 1) {
        await sleep();
        const { isError } = await agent.client.callTool({ name: 'memory_store', arguments: { key: 'k', value: `${night}` } });
        must('the same agent still works', isError !== true);
      }
      must('it listens as before', (await first()) === `Listening on ${taken.address}.`);
      await app.close();
      return 'five nights';
    },
  },
  {
    name: 'a data folder in use by another program stops the start with a message (R-DESK-04)',
    async run({ folder }) {
      const at = aFolder(folder);
      const { app } = await start({ folder: at });
      // Headless, because it does not use Electron's single-instance lock.
      const environment = { ...environmentOf({ folder: at }) };
      let said = '';
      try {
        execFileSync(process.execPath, ['src/main/roots/headless.ts'], { env: environment, stdio: 'pipe', timeout: PATIENCE_MS });
      } catch (error) {
        said = String((error as { stderr: Buffer }).stderr);
      }
      must(`it says so (${said})`, said.includes('Another Helmdeck Memory process is using this data folder'));
      await app.close();
      return 'refused';
    },
  },
  {
    name: 'it starts at login and stays in the tray only if two settings say so (R-DESK-09)',
    async run({ folder }) {
      const entry = join(process.env['XDG_CONFIG_HOME'] ?? '', 'autostart/helmdeck-memory.desktop');
      const given = { folder: aFolder(folder) };
      const { app } = await start(given);
      await eventually('it runs', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      const checked = (): Promise<(boolean | undefined)[]> =>
        known(app, ({ Menu }) =>
          (Menu.getApplicationMenu()?.items[0]?.submenu?.items ?? [])
            .filter(({ label }) => label === 'Start at Login' || label.startsWith('Start in the Tray'))
            .map((item) => item.checked),
        );
      must('both are off at first', (await checked()).join() === 'false,false' && !existsSync(entry));
      await press(app, 'Start at Login');
      await press(app, 'Start in the Tray at Login');
      await eventually('both are on', async () => (await checked()).join() === 'true,true');
      const exec = /^Exec=(.*)$/m.exec(readFileSync(entry, 'utf8'))?.[1];
      must(`the session starts it (${exec})`, exec === `"${ELECTRON}" "${ROOT}" "--at-login"`);
      await app.close();

      // Start as the session does: no window, but agents are served. A manual start shows the window.
      const { _electron } = await import('playwright-core');
      const quiet = await _electron.launch({
        executablePath: ELECTRON,
        args: [...args, ROOT, '--at-login'],
        env: environmentOf(given),
        chromiumSandbox: args.length === 0,
      });
      await eventually('it runs', async () => (await labels(quiet))[0]?.startsWith('Listening on') === true);
      must('it shows no window', quiet.windows().length === 0);
      await startAlone(given);
      await eventually('a start by hand shows it', () => isVisible(quiet));
      await press(quiet, 'Start at Login');
      await eventually('the entry is removed', () => !existsSync(entry));
      await quiet.close();
      return 'two settings';
    },
  },
  {
    name: 'a failed menu action is reported in a dialog, and its item stays unchecked (R-DESK-03)',
    async run({ folder }) {
      const settings = join(folder, 'settings');
      mkdirSync(settings);
      writeFileSync(join(settings, 'autostart'), 'in the place of the folder');
      const { app, ended } = await start({ folder: aFolder(folder), environment: { XDG_CONFIG_HOME: settings } });
      await eventually('it runs', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      const icon = await watchIcon(app);
      const asked = await answerDialogs(app, 0);
      for (const [time, pick] of [pressInIcon, press].entries()) {
        await pick(app, 'Start at Login');
        await eventually('the text appears', async () => (await asked()).length === time + 1);
        must('no item is checked', (await icon()).ticked.length === 0);
      }
      must(
        'by its name',
        (await asked()).every((message) => message === 'Helmdeck Memory could not run the command.'),
      );
      await pressInIcon(app, 'Start in the Tray at Login');
      await eventually('what can be done is', async () => (await icon()).ticked.length === 1);
      await app.close();
      must('it exited with code 0', (await ended) === 0);
      return 'said twice';
    },
  },
  {
    name: 'it remembers the position of its window, and its files are private (R-DESK-01)',
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      const first = await start(given);
      await answerDialogs(first.app, 0);
      await act(first.app, ({ BrowserWindow }) =>
        BrowserWindow.getAllWindows()[0]?.setBounds({ x: 60, y: 70, width: 800, height: 500 }),
      );
      await closeWindow(first.app);
      await eventually('it is written', () => isThere(given.folder, 'desktop.json'));
      const below = readdirSync(join(given.folder, 'data'), { recursive: true, withFileTypes: true });
      // Skip Chromium's symbolic links: they have no mode and can dangle.
      const open = below
        .filter((entry) => !entry.isSymbolicLink())
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0);
      must(`only its owner can read it (${open.join()})`, open.length === 0);
      await first.app.close();
      const kept = JSON.parse(textOf(given.folder, 'desktop.json')) as { place: object };
      const second = await start(given);
      const bounds = await known(second.app, ({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.getNormalBounds());
      await second.app.close();
      must(
        `it stands there again (${JSON.stringify([kept.place, bounds])})`,
        JSON.stringify(bounds) === JSON.stringify(kept.place),
      );
      return JSON.stringify(bounds);
    },
  },
];
