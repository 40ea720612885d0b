import { type BrowserWindow, ipcMain, type IpcMainInvokeEvent } from 'electron';
import { Failure } from '../../contract/failure.ts';
import type { BridgeResponse, WindowChange } from '../../contract/window.ts';
import { toWindowResult } from '../../listeners/window/window-result.ts';
import { WINDOW_URL } from './pages.ts';
import type { WindowCall } from './window-calls.ts';

interface Deps {
  /** The page may ask before the memory is open; it waits. */
  readonly calls: Promise<WindowCall>;
  readonly window: () => BrowserWindow | undefined;
}

export interface WindowBinding extends Disposable {
  /** The page was answered for the first time. */
  readonly firstAnswer: Promise<void>;
  notify(change: WindowChange): void;
}

/** The window's one way in, for nobody but its own main frame. */
export function bindWindow({ calls, window }: Deps): WindowBinding {
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  ipcMain.handle('call', (event, subject: unknown, name: unknown, input: unknown, word: unknown): Promise<BridgeResponse> => {
    return toWindowResult(answer(event, subject, name, input, word)).finally(resolve);
  });

  async function answer(event: IpcMainInvokeEvent, ...asked: Parameters<WindowCall>): Promise<unknown> {
    // Before it waits: whoever asks is looked at as it asks.
    if (!isOurs(event, window())) throw new Failure('forbidden_origin', 'Only the window of Helmdeck Memory may ask this.');
    const call = await calls;
    return call(...asked);
  }

  return {
    firstAnswer: answered,
    notify: (change) => window()?.webContents.send('changed', change),
    [Symbol.dispose]: () => ipcMain.removeHandler('call'),
  };
}

/** Another frame, or a page that took its place, is not the window. */
const isOurs = ({ senderFrame, sender }: IpcMainInvokeEvent, window: BrowserWindow | undefined): boolean =>
  senderFrame !== null &&
  sender === window?.webContents &&
  senderFrame === sender.mainFrame &&
  senderFrame.url.startsWith(WINDOW_URL);
