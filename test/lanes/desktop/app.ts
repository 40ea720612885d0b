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
/** What hangs is found all the same; a machine that is slow or busy fails nothing. */
export const PATIENCE_MS = 60_000;

/** Root has no sandbox; only tests ever start it so. */
export const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];

export interface Running {
  readonly app: ElectronApplication;
  readonly page: Page;
  readonly folder: string;
  readonly pid: number;
  /** Exit code or signal. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Whatever a check leaves behind must not outlive the lane. */
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

interface Start {
  readonly folder: string;
  readonly address?: string;
  /** Undefined takes a setting away. */
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
    HELMDECK_MEMORY_KEY: 'ab'.repeat(32),
    ...environment,
  };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** Starts the desktop and fulfils when its window shows something. */
export async function start(given: Start): Promise<Running> {
  const { packed } = given;
  const app = await _electron.launch({
    executablePath: packed ?? ELECTRON,
    args: [...args, ...(packed === undefined ? [ROOT] : []), ...(given.args ?? [])],
    env: environmentOf(given),
    timeout: PATIENCE_MS,
    // Else it would be taken away.
    chromiumSandbox: args.length === 0,
  });
  const child = app.process();
  // Nobody else reads them, and a full pipe would hold it up.
  for (const stream of [child.stdout, child.stderr]) stream?.resume();
  const ended = once(child, 'exit').then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals | null);
  children.add(child);
  const page = await app.firstWindow({ timeout: PATIENCE_MS });
  page.setDefaultTimeout(PATIENCE_MS);
  await page.getByRole('navigation', { name: 'Sections' }).waitFor();
  return { app, page, folder: given.folder, pid: child.pid ?? 0, ended };
}

/** Starts it as a second one would be: without anybody who drives it. `signalAfter` milliseconds it is told to end. */
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

/** The list's own rows, among other things that have options. */
export const rows = (page: Page, name = /./): Locator =>
  page.getByRole('listbox', { name: 'Facts' }).getByRole('option', { name });

/** As the window itself asks. */
export const askFrom = (page: Page, ...asked: readonly unknown[]): Promise<BridgeResponse> =>
  page.evaluate((given) => {
    const { helmdeck } = globalThis as unknown as { helmdeck: { call(...all: readonly unknown[]): Promise<BridgeResponse> } };
    return helmdeck.call(...given);
  }, asked);

const isLost = (error: unknown): boolean => /garbage collected/.test(String(error));

/** What the main process knows. Node may drop an answer before it is heard: a question changes nothing, so it is put again. */
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

/** What the main process is made to do. It was done also where its answer is dropped; what came of it is looked at elsewhere. */
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

/** A word of the menu, pressed. */
export const press = (app: ElectronApplication, label: string): Promise<void> =>
  act(
    app,
    ({ Menu }, wanted) => {
      const item = Menu.getApplicationMenu()?.items[0]?.submenu?.items.find((one) => one.label === wanted);
      if (!item?.enabled) throw new Error(`The menu has no ${wanted}.`);
      item.click();
    },
    label,
  );

export const labels = (app: ElectronApplication): Promise<string[]> =>
  known(app, ({ Menu }) => Menu.getApplicationMenu()?.items[0]?.submenu?.items.map(({ label }) => label) ?? []);

/** What the icon shows and offers. */
export interface Icon {
  readonly labels: readonly string[];
  /** Words with a tick. */
  readonly ticked: readonly string[];
  /** Empty where it could not be read. */
  readonly picture: string;
}

/** What the system is given to show by the clock, and cannot be asked for again. */
interface ByTheClock {
  tray?: Electron.Tray;
  menu?: Electron.Menu;
  image?: Electron.NativeImage;
}

/** Looks from now on at what the icon is given; a word of the menu gives it all of it anew. */
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

/** A word of the icon's menu, pressed; how it stands may be told behind it, and change at any moment. */
export const pressInIcon = (app: ElectronApplication, word: string): Promise<void> =>
  act(
    app,
    (_all, wanted) => {
      const { menu } = (globalThis as unknown as { given: ByTheClock }).given;
      const item = menu?.items.find(({ label }) => label === wanted || label.startsWith(`${wanted} (`));
      if (!item?.enabled) throw new Error(`The icon has no ${wanted}.`);
      item.click();
    },
    word,
  );

/** The icon itself, pressed. */
export const pressIcon = (app: ElectronApplication): Promise<void> =>
  act(app, () => void (globalThis as unknown as { given: ByTheClock }).given.tray?.emit('click'));

/** What the next dialogs of the system are answered, and what they asked. */
export async function answerDialogs(app: ElectronApplication, response: number): Promise<() => Promise<string[]>> {
  await act(
    app,
    ({ dialog }, given) => {
      const asked: string[] = [];
      Object.assign(globalThis, { asked });
      // The overload with a window has its text behind it.
      dialog.showMessageBox = (...shown: unknown[]) => {
        asked.push((shown.at(-1) as { message: string }).message);
        return Promise.resolve({ response: given, checkboxChecked: false });
      };
    },
    response,
  );
  return () => known(app, () => (globalThis as unknown as { asked: string[] }).asked);
}

/** An agent of the owner's, with a token of its own. */
export async function anAgent(folder: string, client = 'lane'): Promise<{ client: Client; url: string } & AsyncDisposable> {
  const program = await findOwnerClient(join(folder, 'data'));
  if (!program) throw new Error('Nobody listens.');
  const { token } = await program.call('mintToken', { name: client, client });
  const { url } = program;
  program[Symbol.dispose]();
  const agent = new Client({ name: client, version: '1.0.0' });
  const headers = { Authorization: `Bearer ${token}` };
  await agent.connect(new StreamableHTTPClientTransport(new URL(`${url}/api/v1/mcp`), { requestInit: { headers } }));
  return { client: agent, url, [Symbol.asyncDispose]: () => agent.close() };
}

/** Fails with its name unless it comes true soon. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>, patience = PATIENCE_MS): Promise<void> {
  const end = performance.now() + patience;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`It did not come true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function must(what: string, holds: boolean): void {
  if (!holds) throw new Error(`It is not so: ${what}`);
}

/** A port that somebody else holds until it is disposed. */
export async function aTakenPort(): Promise<{ address: string } & AsyncDisposable> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('It has no port.');
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
