import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type * as Electron from 'electron';
import { _electron, type ElectronApplication, type Locator, type Page } from 'playwright-core';
import type { BridgeResponse } from '../../../src/contract/window.ts';
import { findOwnerClient } from '../../../src/listeners/endpoint.ts';

export const ELECTRON = process.env['HELMDECK_TEST_ELECTRON'] ?? '';
export const ROOT = join(import.meta.dirname, '../../..');
/** Long enough for a slow or busy machine; a hang is still detected. */
export const PATIENCE_MS = 60_000;

/** Chromium's sandbox does not work as root. Only tests start the desktop without it. */
export const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];

export interface Running {
  readonly app: ElectronApplication;
  readonly page: Page;
  readonly folder: string;
  readonly pid: number;
  /** Exit code or signal. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Kills every process that a check has left behind at the end of the lane. */
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

interface Start {
  readonly folder: string;
  readonly address?: string;
  /** Undefined removes a setting. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly args?: readonly string[];
  /** The packed application instead of the source folder in Electron. */
  readonly packed?: string;
}

export function environmentOf({ folder, address = '127.0.0.1:0', environment = {} }: Start): Record<string, string> {
  const names = ['DISPLAY', 'HOME', 'PATH', 'XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'DBUS_SESSION_BUS_ADDRESS'];
  const all = {
    ...Object.fromEntries(names.map((name) => [name, process.env[name]])),
    HELMDECK_DATA_DIR: join(folder, 'data'),
    HELMDECK_ADDR: address,
    HELMDECK_MEANING: 'off',
    HELMDECK_MEMORY_KEY: 'ab'.repeat(32),
    ...environment,
  };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** Starts the desktop and resolves when its window shows content. */
export async function start(given: Start): Promise<Running> {
  const { packed } = given;
  const app = await _electron.launch({
    executablePath: packed ?? ELECTRON,
    args: [...args, ...(packed === undefined ? [ROOT] : []), ...(given.args ?? [])],
    env: environmentOf(given),
    timeout: PATIENCE_MS,
    // Otherwise playwright would remove it.
    chromiumSandbox: args.length === 0,
  });
  const child = app.process();
  // Read the output, because a full pipe would block the program.
  for (const stream of [child.stdout, child.stderr]) stream?.resume();
  const ended = once(child, 'exit').then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals | null);
  children.add(child);
  const page = await app.firstWindow({ timeout: PATIENCE_MS });
  page.setDefaultTimeout(PATIENCE_MS);
  await page.getByRole('navigation', { name: 'Sections' }).waitFor();
  return { app, page, folder: given.folder, pid: child.pid ?? 0, ended };
}

/** Starts a second instance without playwright. Sends a signal after `signalAfter` milliseconds. */
export async function startAlone(given: Start, signalAfter?: number): Promise<{ code: number | null; said: string }> {
  const child = spawn(ELECTRON, [...args, ROOT], { env: environmentOf(given), stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()));
  children.add(child);
  const timers = [setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)];
  if (signalAfter !== undefined) timers.push(setTimeout(() => child.kill('SIGTERM'), signalAfter));
  const [code] = (await once(child, 'close')) as [number | null];
  for (const timer of timers) clearTimeout(timer);
  return { code, said };
}

/** The rows of the list of facts. Other elements have options too. */
export const rows = (page: Page, name = /./): Locator =>
  page.getByRole('listbox', { name: 'Facts' }).getByRole('option', { name });

/** Calls an operation from the page, as the window does. */
export const askFrom = (page: Page, ...asked: readonly unknown[]): Promise<BridgeResponse> =>
  page.evaluate((given) => {
    const { helmdeck } = globalThis as unknown as { helmdeck: { call(...all: readonly unknown[]): Promise<BridgeResponse> } };
    return helmdeck.call(...given);
  }, asked);

const isLost = (error: unknown): boolean => /garbage collected/.test(String(error));

/** Evaluates a function without side effects in the main process. Retries, because playwright can lose a result. */
export async function known<T, Given = void>(
  app: ElectronApplication,
  question: (electron: typeof Electron, given: Given) => T | Promise<T>,
  given?: Given,
): Promise<T> {
  for (;;) {
    try {
      return await app.evaluate(question as Parameters<typeof app.evaluate<T, Given>>[0], given as Given);
    } catch (error) {
      if (!isLost(error)) throw error;
    }
  }
}

/** Runs an action in the main process. If playwright loses the result, the action has still run; the caller checks its effect. */
export async function act<Given = void>(
  app: ElectronApplication,
  action: (electron: typeof Electron, given: Given) => unknown,
  given?: Given,
): Promise<void> {
  try {
    await app.evaluate(action as Parameters<typeof app.evaluate<unknown, Given>>[0], given as Given);
  } catch (error) {
    if (!isLost(error)) throw error;
  }
}

export const isVisible = (app: ElectronApplication): Promise<boolean> =>
  known(app, ({ BrowserWindow }) => BrowserWindow.getAllWindows().some((window) => window.isVisible()));

/** Clicks an item of the application menu. */
export const press = (app: ElectronApplication, label: string): Promise<void> =>
  act(
    app,
    ({ Menu }, wanted) => {
      const item = Menu.getApplicationMenu()?.items[0]?.submenu?.items.find((one) => one.label === wanted);
      if (!item?.enabled) throw new Error(`The menu has no enabled item ${wanted}.`);
      item.click();
    },
    label,
  );

export const labels = (app: ElectronApplication): Promise<string[]> =>
  known(app, ({ Menu }) => Menu.getApplicationMenu()?.items[0]?.submenu?.items.map(({ label }) => label) ?? []);

/** What the tray icon shows and offers. */
export interface Icon {
  readonly labels: readonly string[];
  /** Checked menu items. */
  readonly ticked: readonly string[];
  /** Empty if the picture cannot be read. */
  readonly picture: string;
}

/** The last menu and picture given to the tray icon. Electron has no getter for them. */
interface ByTheClock {
  tray?: Electron.Tray;
  menu?: Electron.Menu;
  image?: Electron.NativeImage;
}

/** Records from now on what the tray icon is given. Clicking a menu item makes the program set everything again. */
export async function watchIcon(app: ElectronApplication): Promise<() => Promise<Icon>> {
  await act(app, ({ Tray }) => {
    const given: ByTheClock = {};
    Object.assign(globalThis, { given });
    const setMenu: (menu: never) => void = Reflect.get(Tray.prototype, 'setContextMenu');
    Tray.prototype.setContextMenu = function (menu) {
      Object.assign(given, { tray: this, menu });
      setMenu.call(this, menu as never);
    };
    const setImage: (image: never) => void = Reflect.get(Tray.prototype, 'setImage');
    Tray.prototype.setImage = function (image) {
      Object.assign(given, { image });
      setImage.call(this, image as never);
    };
  });
  await press(app, 'Open Memory');
  const look = (): Promise<Icon> =>
    known(app, () => {
      const { menu, image } = (globalThis as unknown as { given: ByTheClock }).given;
      const items = menu?.items ?? [];
      return {
        labels: items.map(({ label }) => label),
        ticked: items.filter(({ checked }) => checked).map(({ label }) => label),
        picture: image === undefined || image.isEmpty() ? '' : image.toDataURL(),
      };
    });
  await eventually('the icon has a menu', async () => (await look()).labels.length > 0);
  return look;
}

/** Clicks an item of the icon's menu. Its label can end with a state that changes at any moment. */
export const pressInIcon = (app: ElectronApplication, word: string): Promise<void> =>
  act(
    app,
    (_all, wanted) => {
      const { menu } = (globalThis as unknown as { given: ByTheClock }).given;
      const item = menu?.items.find(({ label }) => label === wanted || label.startsWith(`${wanted} (`));
      if (!item?.enabled) throw new Error(`The icon has no enabled item ${wanted}.`);
      item.click();
    },
    word,
  );

/** Clicks the icon. */
export const pressIcon = (app: ElectronApplication): Promise<void> =>
  act(app, () => void (globalThis as unknown as { given: ByTheClock }).given.tray?.emit('click'));

/** Answers the next system dialogs, and returns their messages. */
export async function answerDialogs(app: ElectronApplication, response: number): Promise<() => Promise<string[]>> {
  await act(
    app,
    ({ dialog }, given) => {
      const asked: string[] = [];
      Object.assign(globalThis, { asked });
      // The overload with a window has its options second.
      dialog.showMessageBox = (...shown: unknown[]) => {
        asked.push((shown.at(-1) as { message: string }).message);
        return Promise.resolve({ response: given, checkboxChecked: false });
      };
    },
    response,
  );
  return () => known(app, () => (globalThis as unknown as { asked: string[] }).asked);
}

/** Connects an agent with its own token. */
export async function anAgent(folder: string, client = 'lane'): Promise<{ client: Client; url: string } & AsyncDisposable> {
  const program = await findOwnerClient(join(folder, 'data'));
  if (!program) throw new Error('Nobody listens.');
  const { token } = await program.call('mintToken', { name: client, client, quarantine: false });
  const { url } = program;
  program[Symbol.dispose]();
  const agent = new Client({ name: client, version: '1.0.0' });
  const headers = { Authorization: `Bearer ${token}` };
  await agent.connect(new StreamableHTTPClientTransport(new URL(`${url}/api/v1/mcp`), { requestInit: { headers } }));
  return { client: agent, url, [Symbol.asyncDispose]: () => agent.close() };
}

/** Waits for a condition; throws an error with its name if it does not hold in time. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>, patience = PATIENCE_MS): Promise<void> {
  const end = performance.now() + patience;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`Timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function must(what: string, holds: boolean): void {
  if (!holds) throw new Error(`Check failed: ${what}`);
}

/** Occupies a port until it is disposed. */
export async function aTakenPort(): Promise<{ address: string } & AsyncDisposable> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  return {
    address: `127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}

export const isThere = (folder: string, name: string): boolean => existsSync(join(folder, 'data', name));
export const textOf = (folder: string, name: string): string => readFileSync(join(folder, 'data', name), 'utf8');
export const aFolder = (below: string): string => mkdtempSync(join(below, 'data-'));

/** Number of processes that Electron runs for the bundled model. */
export const modelProcesses = (app: Running['app']): Promise<number> =>
  known(
    app,
    ({ app: electron }) =>
      electron.getAppMetrics().filter(({ type, name }) => type === 'Utility' && name === 'Helmdeck Memory model').length,
  );

/** Compares two sentences with the bundled model, and locks the memory. Electron must have a process for the model meanwhile. */
export async function bundledModelWorks({ app, page }: Running): Promise<string> {
  const sentences = { one: 'we ship on Fridays', other: 'when do we deploy?' };
  const compared = await askFrom(page, 'me', 'testEmbeddings', sentences);
  must(
    `it compares two sentences (${JSON.stringify(compared)})`,
    compared.ok && JSON.stringify(compared.value).includes('"dimensions":384'),
  );
  must('the model has a process', (await modelProcesses(app)) === 1);
  await askFrom(page, 'me', 'lock', {});
  await eventually('a lock ends the process', async () => (await modelProcesses(app)) === 0);
  return JSON.stringify(compared.ok && compared.value);
}
