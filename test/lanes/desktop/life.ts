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
  aTakenPort,
  ELECTRON,
  environmentOf,
  eventually,
  isThere,
  isVisible,
  known,
  labels,
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

/** While a page dies, playwright may lose an answer of the main process. */
const pageProcessNow = (app: ElectronApplication): Promise<number> => pageProcess(app).catch(() => 0);

const NOT_SAVED = 'What you typed in the window is not saved.';

async function typeUnsaved(page: Page): Promise<void> {
  await askFrom(page, 'me', 'remember', { key: 'edited', value: 'saved' });
  await rows(page, /edited/).click();
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByLabel('Value').fill('not saved');
  await page.getByRole('button', { name: 'Discard' }).waitFor();
}

/** Starting, staying, ending. */
export const life: readonly Check[] = [
  {
    name: 'npm start -- --desktop runs it, in the sandbox, and ends with it (R-DESK-12)',
    async run({ folder }) {
      if (args.length > 0) throw new Missing('an ordinary user; Electron starts for root only without its sandbox');
      const environment = { ...environmentOf({ folder: aFolder(folder) }), ELECTRON_OVERRIDE_DIST_PATH: dirname(ELECTRON) };
      const child = spawn(process.execPath, ['src/main/start.ts', '--desktop'], { env: environment, stdio: 'pipe' });
      let said = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()));
      const ended = once(child, 'close');
      await eventually('it runs', () => /^Helmdeck Memory is running\. Agents reach it at http/m.test(said));
      child.kill('SIGTERM');
      const [code] = (await ended) as [number | null];
      must(`it ended well (${code}: ${said})`, code === 0);
      return said.trim();
    },
  },
  {
    name: 'a first start without any key shows its window, and says what is kept (R-DESK-01)',
    async run({ folder }) {
      const { app } = await start({ folder: aFolder(folder), environment: { HELMDECK_MEMORY_KEY: undefined } });
      // No keychain answers on this bus, and the desktop makes no key file by itself.
      await eventually('it says so', async () => (await labels(app))[0]?.endsWith('Nothing is kept.') === true);
      const [line] = await labels(app);
      await app.close();
      return `${line}`;
    },
  },
  {
    name: 'a memory that is set to lock itself does when its owner is away or the machine sleeps (R-LOCK-01)',
    async run({ folder }) {
      const given = { folder: aFolder(folder), environment: { HELMDECK_LOCK_AFTER: '1' } };
      const { app, page } = await start(given);
      // Nobody touches this screen, so that its owner soon was away for a minute.
      const locked = async (): Promise<boolean> => (await labels(app))[0]?.startsWith('Locked') === true;
      await eventually('it locks', locked, 60_000 + PATIENCE_MS);
      await page
        .getByText(/its owner was away for a minute \(HELMDECK_LOCK_AFTER\)/i)
        .first()
        .waitFor();
      // As whoever comes back.
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
    name: 'keys open the window from anywhere, and who has them already is no secret (R-DESK-16)',
    async run({ folder }) {
      const environment = { HELMDECK_SHORTCUT: 'Ctrl+Shift+F9' };
      const first = await start({ folder: aFolder(folder), environment });
      await eventually('it says so', async () => (await labels(first.app)).includes('Ctrl+Shift+F9 Opens It from Anywhere'));
      must('they are held', await known(first.app, ({ globalShortcut }) => globalShortcut.isRegistered('Ctrl+Shift+F9')));
      const second = await start({ folder: aFolder(folder), environment });
      const opensNothing = async () =>
        (await labels(second.app)).some((label) => label.startsWith('Ctrl+Shift+F9 Opens Nothing'));
      await eventually('the second says that they are taken', opensNothing);
      await first.app.close();
      await second.app.close();
      return 'held, and taken';
    },
  },
  {
    name: 'what is set in the file is told as such (R-DESK-15)',
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
      must('each says where it stands', of('HELMDECK_QUOTA_FACTS') === 'file' && of('HELMDECK_ADDR') === 'environment');
      return 'file and environment';
    },
  },
  {
    name: 'a pack of the owner runs in a process of its own (R-PACK-10)',
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
      must('no second desktop came', windows === 1);
      await app.close();
      return JSON.stringify(crossed.ok && crossed.value);
    },
  },
  {
    name: 'a second start shows the window of the first, and ends (R-DESK-04)',
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      using _host = await aTrayHost();
      const { app } = await start(given);
      await answerDialogs(app, 0);
      await closeWindow(app);
      await eventually('the window is away', async () => !(await isVisible(app)));
      const { code, said } = await startAlone(given);
      must(`the second ends well and says why (${said})`, code === 0 && said.includes('runs already'));
      await eventually('the window is back', () => isVisible(app));
      await app.close();
      return 'one program';
    },
  },
  {
    name: 'closing the window keeps agents served, and says so once (R-DESK-05)',
    async run({ folder }) {
      using _host = await aTrayHost();
      const { app, folder: at } = await start({ folder: aFolder(folder) });
      const asked = await answerDialogs(app, 0);
      await eventually('agents can come', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      await using agent = await anAgent(at);
      for (let time = 0; time < 2; time += 1) {
        await closeWindow(app);
        await eventually('the window is away', async () => !(await isVisible(app)));
        const { isError } = await agent.client.callTool({ name: 'memory_store', arguments: { key: 'k', value: `${time}` } });
        must('agents are served', isError !== true);
        await press(app, 'Open Memory');
        await eventually('the window is back', () => isVisible(app));
      }
      must('it said so once', (await asked()).length === 1);
      await app.close();
      return 'twice closed, once told';
    },
  },
  {
    name: 'whoever quits is asked once whether an edit that is not saved may go, and may stay (R-STAY-01)',
    async run({ folder }) {
      using _host = await aTrayHost();
      const given = { folder: aFolder(folder) };
      const { app, page, pid, ended } = await start(given);
      await typeUnsaved(page);
      const quit = (): Promise<void> => act(app, ({ app: program }) => program.quit());
      const asked = await answerDialogs(app, 0);
      // Away in the tray, it is shown again: nobody decides about what they do not see.
      await closeWindow(app);
      await eventually('the window is away', async () => !(await isVisible(app)));
      await press(app, 'Quit Helmdeck Memory');
      await eventually('it asked', async () => (await asked()).some((message) => message === NOT_SAVED));
      must('what would go is shown', await isVisible(app));
      must('it stays', (await page.getByLabel('Value').inputValue()) === 'not saved');
      // A dialog that stands open is not asked again behind.
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
      must('a signal ends it all the same', (await ended) === 0);
      const took = performance.now() - from;
      must('nothing points there', !isThere(given.folder, 'endpoint.json') && !isThere(given.folder, 'memory.db-wal'));

      const second = await start(given);
      await typeUnsaved(second.page);
      await answerDialogs(second.app, 1);
      await act(second.app, ({ app: program }) => program.quit());
      must('a yes is a yes', (await second.ended) === 0);
      return `asked once; a signal took ${took.toFixed(0)} ms`;
    },
  },
  {
    name: 'a page that hangs or died with an edit keeps nobody from quitting (R-STAY-01)',
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
    name: 'a page that dies is made anew, and agents are served all the while (R-USE-04)',
    async run({ folder }) {
      const { app, folder: at } = await start({ folder: aFolder(folder) });
      await eventually('agents can come', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
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
    name: 'a page that dies twice in a row is there again when its window is opened (R-STAY-02)',
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
      must('it ended well', (await ended) === 0);
      return 'opened twice';
    },
  },
  {
    name: 'where no desktop shows icons the window is not hidden (R-DESK-05)',
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
    name: 'whoever wants it to end when the window closes says so, and it ends in order (R-DESK-05, R-DESK-06)',
    async run({ folder }) {
      const { app, ended, folder: at } = await start({ folder: aFolder(folder) });
      await answerDialogs(app, 1);
      await closeWindow(app);
      must('it ended well', (await ended) === 0);
      must('nothing points there', !isThere(at, 'endpoint.json') && !isThere(at, 'memory.db-wal'));
      return 'quit';
    },
  },
  ...(['SIGTERM', 'SIGINT', 'SIGHUP'] as const).map((signal): Check => ({
    name: `${signal} ends it in order, and what was acknowledged is there at the next start (R-DESK-06)`,
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      const first = await start(given);
      await eventually('agents can come', async () => (await labels(first.app))[0]?.startsWith('Listening on') === true);
      const agent = await anAgent(given.folder);
      await agent.client.callTool({ name: 'memory_store', arguments: { key: 'kept', value: 'v' } });
      const from = performance.now();
      process.kill(first.pid, signal);
      const end = await first.ended;
      const took = performance.now() - from;
      await Promise.resolve(agent[Symbol.asyncDispose]()).catch(() => undefined);
      must(`it ended well (${end})`, end === 0);
      must('nothing points there', !isThere(given.folder, 'endpoint.json') && !isThere(given.folder, 'memory.db-wal'));
      const { app, page } = await start(given);
      must('it is there', (await askFrom(page, 'me', 'recall', { key: 'kept' })).ok);
      await app.close();
      return `${took.toFixed(0)} ms`;
    },
  })),
  {
    name: 'more signals while it ends cut nothing short (R-DESK-06)',
    async run({ folder }) {
      const given = { folder: aFolder(folder) };
      mkdirSync(join(given.folder, 'data'), { mode: 0o700 });
      writeFileSync(join(given.folder, 'data/desktop.json'), '{"startsHidden": true}', { mode: 0o600 });
      // Without a window, whose page would have to be closed first and so held the second quit up.
      const environment = environmentOf(given);
      const child = spawn(ELECTRON, [...args, ROOT, '--at-login'], { env: environment, stdio: ['ignore', 'pipe', 'ignore'] });
      let said = '';
      child.stdout.on('data', (text: Buffer) => (said += text.toString()));
      const ended = once(child, 'close');
      await eventually('it runs', () => /^Helmdeck Memory is running\. Agents reach it at http/m.test(said));
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
      // Behind the last step Electron takes its own ears down, and a signal may end what has nothing left to close.
      must(`it ended by itself or by the signals (${code})`, code === 0 || signal === 'SIGTERM' || signal === 'SIGINT');
      must('nothing points there', !isThere(given.folder, 'endpoint.json') && !isThere(given.folder, 'memory.db-wal'));
      return `${signals} signals`;
    },
  },
  {
    name: 'a signal while it starts ends it in order too (R-DESK-06)',
    async run({ folder }) {
      const ends: string[] = [];
      const isHeard = (): boolean => ends.some((end) => end.endsWith(': 0'));
      // A slow machine hears it later.
      for (let after = 50; after <= 800 || (!isHeard() && after < PATIENCE_MS / 4); after += 75) {
        const given = { folder: aFolder(folder) };
        const { code, said } = await startAlone(given, after);
        // Before it hears signals there is nothing to close.
        must(
          `it ended well after ${after} ms (${code}: ${said})`,
          (code === 0 || code === null) && !said.includes('cannot start'),
        );
        must('nothing points there', !isThere(given.folder, 'endpoint.json') && !isThere(given.folder, 'memory.db-wal'));
        ends.push(`${after}: ${code ?? 'signal'}`);
      }
      must('it was heard at least once', isHeard());
      return ends.join(', ');
    },
  },
  {
    name: 'a port that is taken is a state with a remedy, in menu and window, and no end (R-DESK-07)',
    async run({ folder }) {
      const taken = await aTakenPort();
      const { app, page } = await start({ folder: aFolder(folder), address: taken.address });
      await eventually('it says so', async () => /is taken by/.test((await labels(app))[0] ?? ''));
      await page.getByText(/^Agents can't connect\. .* is taken by .*; stop it, or set HELMDECK_ADDR/).waitFor();
      must('the window works', (await askFrom(page, 'me', 'remember', { key: 'a', value: 'b' })).ok);
      await press(app, 'Try Again');
      must('it is still taken', /is taken by/.test((await labels(app))[0] ?? ''));
      await taken[Symbol.asyncDispose]();
      await page.getByRole('button', { name: 'Try again' }).click();
      await eventually('agents can come', async () => (await labels(app))[0] === `Listening on ${taken.address}.`);
      await page.getByText(/^Agents can't connect/).waitFor({ state: 'hidden' });
      await app.close();
      return taken.address;
    },
  },
  {
    name: 'an agent whose entry is gone is said by icon and menu as soon as the window is opened, and how to mend it (R-DESK-44)',
    async run({ folder }) {
      const home = aFolder(folder);
      // No Claude Code of this machine is asked: its file is what it reads.
      writeFileSync(join(home, '.claude.json'), '{}');
      const environment = { HOME: home, PATH: '/usr/bin:/bin', XDG_CONFIG_HOME: undefined };
      const { app, page } = await start({ folder: aFolder(folder), environment });
      const first = async (): Promise<string> => (await labels(app))[0] ?? '';
      await answerDialogs(app, 1);
      const connected = await askFrom(page, 'me', 'connectClient', { client: 'claude-code' });
      must(`it is connected (${JSON.stringify(connected)})`, connected.ok);
      await eventually('nobody is needed', async () => /^Listening on \S+$/.test(await first()));
      writeFileSync(join(home, '.claude.json'), '{}');
      await press(app, 'Open Memory');
      await eventually('it says so', async () => /Claude Code has lost the entry/.test(await first()));
      const again = await askFrom(page, 'me', 'connectClient', { client: 'claude-code' });
      must('it is mended', again.ok);
      await eventually('nobody is needed any more', async () => /^Listening on \S+$/.test(await first()));
      await app.close();
      return 'lost, and mended';
    },
  },
  {
    name: 'after the machine slept agents are served, and let in where they could not come before (R-STAY-05)',
    async run({ folder }) {
      const taken = await aTakenPort();
      const { app, folder: at } = await start({ folder: aFolder(folder), address: taken.address });
      const sleep = (): Promise<void> =>
        act(app, ({ powerMonitor }) => void (powerMonitor.emit('suspend'), powerMonitor.emit('resume')));
      const first = async (): Promise<string> => (await labels(app))[0] ?? '';
      await eventually('nobody can come', async () => /is taken by/.test(await first()));
      await sleep();
      must('it is still taken', /is taken by/.test(await first()));
      await taken[Symbol.asyncDispose]();
      await sleep();
      await eventually('agents can come', async () => (await first()) === `Listening on ${taken.address}.`);
      await using agent = await anAgent(at);
      for (let night = 0; night < 3; night += 1) {
        await sleep();
        const { isError } = await agent.client.callTool({ name: 'memory_store', arguments: { key: 'k', value: `${night}` } });
        must('the same agent goes on', isError !== true);
      }
      must('it listens as before', (await first()) === `Listening on ${taken.address}.`);
      await app.close();
      return 'five nights';
    },
  },
  {
    name: 'a folder that another program has open stops the start with a sentence (R-DESK-04)',
    async run({ folder }) {
      const at = aFolder(folder);
      const { app } = await start({ folder: at });
      // As headless does, which asks no single instance of Electron's.
      const environment = { ...environmentOf({ folder: at }) };
      let said = '';
      try {
        execFileSync(process.execPath, ['src/main/headless.ts'], { env: environment, stdio: 'pipe', timeout: PATIENCE_MS });
      } catch (error) {
        said = String((error as { stderr: Buffer }).stderr);
      }
      must(`it says so (${said})`, said.includes('Another Helmdeck Memory is using this data folder'));
      await app.close();
      return 'refused';
    },
  },
  {
    name: 'it starts at login and stays in the tray only when told, by two settings (R-DESK-09)',
    async run({ folder }) {
      const entry = join(process.env['XDG_CONFIG_HOME'] ?? '', 'autostart/helmdeck-memory.desktop');
      const given = { folder: aFolder(folder) };
      const { app } = await start(given);
      await eventually('it runs', async () => (await labels(app))[0]?.startsWith('Listening on') === true);
      const checked = (): Promise<(boolean | undefined)[]> =>
        known(app, ({ Menu }) =>
          (Menu.getApplicationMenu()?.items[0]?.submenu?.items ?? [])
            .filter(({ label }) => label === 'Start at Login' || label.startsWith('Stay in the Tray'))
            .map((item) => item.checked),
        );
      must('both are off at first', (await checked()).join() === 'false,false' && !existsSync(entry));
      await press(app, 'Start at Login');
      await press(app, 'Stay in the Tray When Started at Login');
      await eventually('both are on', async () => (await checked()).join() === 'true,true');
      const exec = /^Exec=(.*)$/m.exec(readFileSync(entry, 'utf8'))?.[1];
      must(`the session starts it (${exec})`, exec === `"${ELECTRON}" "${ROOT}" "--at-login"`);
      await app.close();

      // As the session would: no window, but agents are served, and a start by hand shows it.
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
      await eventually('it is taken back', () => !existsSync(entry));
      await quiet.close();
      return 'two settings';
    },
  },
  {
    name: 'what could not be done is said in a dialog, and no tick stays that is not so (R-DESK-03)',
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
        await eventually('it says so', async () => (await asked()).length === time + 1);
        must('nothing is ticked', (await icon()).ticked.length === 0);
      }
      must(
        'by its name',
        (await asked()).every((message) => message === 'That could not be done.'),
      );
      await pressInIcon(app, 'Stay in the Tray When Started at Login');
      await eventually('what can be done is', async () => (await icon()).ticked.length === 1);
      await app.close();
      must('it ended well', (await ended) === 0);
      return 'said twice';
    },
  },
  {
    name: 'it remembers where its window stood, and what it writes only its owner can read (R-DESK-01)',
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
      // Chromium's links point nowhere; a link has no mode of its own.
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
