import { type BrowserWindow, ipcMain, type IpcMainInvokeEvent } from 'electron';
import { Failure } from '../../contract/failure.ts';
import type { Crossed, WindowChange } from '../../contract/window.ts';
import { crossing } from '../../listeners/window/crossing.ts';
import type { Calls } from './calls.ts';
import { HOME } from './pages.ts';

interface Deps {
  /** The page may ask before the memory is open; it waits. */
  readonly calls: Promise<Calls>;
  readonly window: () => BrowserWindow | undefined;
}

export interface Bound extends Disposable {
  /** The page was answered for the first time. */
  readonly answered: Promise<void>;
  tell(change: WindowChange): void;
}

/** The window's one way in, for nobody but its own main frame. */
export function bindWindow({ calls, window }: Deps): Bound {
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  ipcMain.handle('call', (event, subject: unknown, name: unknown, input: unknown, word: unknown): Promise<Crossed> => {
    return crossing(answer(event, subject, name, input, word)).finally(resolve);
  });

  async function answer(event: IpcMainInvokeEvent, ...asked: Parameters<Calls>): Promise<unknown> {
    // Before it waits: whoever asks is looked at as it asks.
    if (!isOurs(event, window())) throw new Failure('forbidden_origin', 'Only the window of Helmdeck Memory may ask this.');
    const call = await calls;
    return call(...asked);
  }

  return {
    answered,
    tell: (change) => window()?.webContents.send('changed', change),
    [Symbol.dispose]: () => ipcMain.removeHandler('call'),
  };
}

/** Another frame, or a page that took its place, is not the window. */
const isOurs = ({ senderFrame, sender }: IpcMainInvokeEvent, window: BrowserWindow | undefined): boolean =>
  senderFrame !== null && sender === window?.webContents && senderFrame === sender.mainFrame && senderFrame.url.startsWith(HOME);
