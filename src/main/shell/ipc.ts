import { type BrowserWindow, ipcMain, type IpcMainInvokeEvent } from 'electron';
import { Failure } from '../../contract/failure.ts';
import type { BridgeResponse, WindowChange } from '../../contract/window.ts';
import { toWindowResult } from '../../listeners/window/window-result.ts';
import { WINDOW_URL } from './pages.ts';
import type { WindowCall } from './window-calls.ts';

interface Deps {
  /** Resolves when the memory is open. Calls that the page sends earlier wait for this promise. */
  readonly calls: Promise<WindowCall>;
  readonly window: () => BrowserWindow | undefined;
}

export interface WindowBinding extends Disposable {
  /** Resolves after the first response to the page. */
  readonly firstAnswer: Promise<void>;
  notify(change: WindowChange): void;
}

/** Handles calls from the window's main frame. Refuses calls from all other frames. */
export function bindWindow({ calls, window }: Deps): WindowBinding {
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  ipcMain.handle('call', (event, subject: unknown, name: unknown, input: unknown, callId: unknown): Promise<BridgeResponse> => {
    return toWindowResult(answer(event, subject, name, input, callId)).finally(resolve);
  });

  async function answer(event: IpcMainInvokeEvent, ...call: Parameters<WindowCall>): Promise<unknown> {
    // Check the frame before waiting, because the frame can navigate meanwhile.
    if (!isMainFrame(event, window()))
      throw new Failure('forbidden_origin', 'Only the window of Helmdeck Memory can make this call.');
    return (await calls)(...call);
  }

  return {
    firstAnswer: answered,
    notify: (change) => window()?.webContents.send('changed', change),
    [Symbol.dispose]: () => ipcMain.removeHandler('call'),
  };
}

/** True only for the window's main frame. False for subframes, other windows, and a page that navigated elsewhere. */
const isMainFrame = ({ senderFrame, sender }: IpcMainInvokeEvent, window: BrowserWindow | undefined): boolean =>
  senderFrame !== null &&
  sender === window?.webContents &&
  senderFrame === sender.mainFrame &&
  senderFrame.url.startsWith(WINDOW_URL);
