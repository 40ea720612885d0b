import { EventEmitter } from 'node:events';
import type { BrowserWindow, IpcMain, IpcMainInvokeEvent, Session, WebContents, WebFrameMain } from 'electron';

/**
 * The part of Electron that the shell's tests need, with Electron's own types. Access to any other member throws an error with its
 * name, so that no test silently ignores a call. `npm run lane:desktop` tests the same in the real Electron.
 */
const only = <Part extends object>(name: string, part: Part): Part =>
  new Proxy(part, {
    get(target, member, receiver): unknown {
      if (member in target || typeof member === 'symbol' || member === 'then') return Reflect.get(target, member, receiver);
      throw new Error(`The stand-in for Electron has no ${name}.${member}.`);
    },
  });

type Handler = Parameters<IpcMain['handle']>[1];
const handlers = new Map<string, Handler>();

export const ipcMain = only<Pick<IpcMain, 'handle' | 'removeHandler'>>('ipcMain', {
  handle(channel, listener) {
    if (handlers.has(channel)) throw new Error(`Attempted to register a second handler for '${channel}'`);
    handlers.set(channel, listener);
  },
  removeHandler: (channel) => void handlers.delete(channel),
});

/** Imitates `ipcRenderer.invoke`. Arguments and results are cloned, as in Chromium. */
export async function invoke(
  event: Pick<IpcMainInvokeEvent, 'sender' | 'senderFrame'>,
  channel: string,
  ...args: unknown[]
): Promise<unknown> {
  const handler = handlers.get(channel);
  if (!handler) throw new Error(`No handler registered for '${channel}'`);
  return structuredClone((await handler(event as IpcMainInvokeEvent, ...structuredClone(args))) as unknown);
}

export const app = only('app', Object.assign(new EventEmitter(), { isPackaged: false, getAppPath: () => '/a/source/folder' }));

/** Electron's menus, trays and similar. Modules import them, but the tests do not use them. */
export const Menu = only('Menu', {});
export const Tray = only('Tray', {});
export const nativeImage = only('nativeImage', {});
export const screen = only('screen', {});
export const protocol = only('protocol', {});

/** A fake page of the window. */
export interface FakeContents {
  readonly contents: WebContents;
  readonly frame: WebFrameMain;
  readonly window: BrowserWindow;
  /** Messages sent to the page. */
  readonly sent: readonly unknown[][];
  /** Handlers set on its session, by the name of the setter. */
  readonly set: Readonly<Record<string, (...args: never[]) => unknown>>;
  emit(event: string, ...args: unknown[]): void;
}

export function fakeContents(url: string): FakeContents {
  const sent: unknown[][] = [];
  const set: Record<string, (...args: never[]) => unknown> = {};
  const keep = (name: string) => (handler: unknown) => void (set[name] = handler as (...args: never[]) => unknown);
  const frame = only('WebFrameMain', { url });
  const events = new EventEmitter();
  const session = only(
    'Session',
    Object.assign(new EventEmitter(), {
      setPermissionRequestHandler: keep('setPermissionRequestHandler'),
      setPermissionCheckHandler: keep('setPermissionCheckHandler'),
      setDevicePermissionHandler: keep('setDevicePermissionHandler'),
      webRequest: only('WebRequest', { onBeforeRequest: keep('onBeforeRequest') }),
    } satisfies { [Name in keyof Session]?: unknown }),
  );
  const contents = only(
    'WebContents',
    Object.assign(events, {
      mainFrame: frame,
      session,
      send: (...args: unknown[]) => void sent.push(structuredClone(args)),
      setWindowOpenHandler: keep('setWindowOpenHandler'),
    } satisfies { [Name in keyof WebContents]?: unknown }),
  );
  const window = only('BrowserWindow', { webContents: contents } satisfies { [Name in keyof BrowserWindow]?: unknown });
  return {
    // Each object has the members that the shell uses, and throws at any other.
    contents: contents as unknown as WebContents,
    frame: frame as unknown as WebFrameMain,
    window: window as unknown as BrowserWindow,
    sent,
    set,
    emit: (event, ...args) => void events.emit(event, ...args),
  };
}
