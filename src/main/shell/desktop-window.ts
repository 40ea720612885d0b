import { join } from 'node:path';
import { app, type BrowserWindow, dialog, type MessageBoxOptions } from 'electron';
import type { ConsentQuestion } from './consent.ts';
import type { DesktopState } from './desktop-state.ts';
import { hasTrayHost } from './tray-host.ts';
import { createWindow } from './window.ts';

const UNSAVED: ConsentQuestion = {
  message: 'Quit and lose unsaved text?',
  detail: 'Text that you typed in the window is not saved.',
  yes: 'Quit',
};

interface Deps {
  /** Path of the folder with the built files. */
  readonly root: string;
  readonly stored: DesktopState;
}

/** Opens, hides and reopens the desktop's window, and shows dialogs over it. */
export class DesktopWindow {
  readonly #deps: Deps;
  readonly #firstShown = Promise.withResolvers<void>();
  #window: BrowserWindow | undefined;
  #asking = false;
  /** True if the page contains text that the owner typed and has not saved. */
  unsaved = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get current(): BrowserWindow | undefined {
    return this.#window;
  }

  get firstShown(): Promise<void> {
    return this.#firstShown.promise;
  }

  /** Shows the window in front of all others. A new window is shown only after its page has been rendered. */
  open(): void {
    const window = this.#window;
    if (!window) {
      this.#window = this.#create();
      this.#window.once('ready-to-show', () => {
        this.open();
        this.#firstShown.resolve();
      });
      return;
    }
    // Reload a crashed page. A page that crashed twice in a row is reloaded only here.
    if (window.webContents.isCrashed()) window.reload();
    if (window.isMinimized()) window.restore();
    window.show();
    window.focus();
  }

  /** Closes the window without asking its page, because the page may not respond. */
  destroy(): void {
    if (!this.#window) return;
    this.#deps.stored.update({ place: this.#window.getNormalBounds() });
    this.#window.destroy();
  }

  /** Asks the owner whether to quit and lose unsaved text. Returns false while the same question is already open. */
  async confirmLoss(): Promise<boolean> {
    if (this.#asking) return false;
    this.#asking = true;
    this.open();
    const confirmed = await this.ask(UNSAVED);
    this.#asking = false;
    return confirmed;
  }

  async ask({ message, detail, yes }: ConsentQuestion): Promise<boolean> {
    return (
      (await this.showDialog({ type: 'warning', message, detail, buttons: ['Cancel', yes], defaultId: 0, cancelId: 0 })) === 1
    );
  }

  /** Shows a dialog and returns the index of the pressed button. */
  async showDialog(options: MessageBoxOptions): Promise<number> {
    const { response } = await (this.#window ? dialog.showMessageBox(this.#window, options) : dialog.showMessageBox(options));
    return response;
  }

  #create(): BrowserWindow {
    const { root, stored } = this.#deps;
    const window = createWindow({
      preload: join(root, 'out/preload/index.cjs'),
      place: stored.choices.place,
      devTools: !app.isPackaged,
    });
    window.on('close', (event) => {
      event.preventDefault();
      stored.update({ place: window.getNormalBounds() });
      void this.#hide(window);
    });
    window.once('closed', () => (this.#window = undefined));
    window.webContents.on('render-process-gone', () => (this.unsaved = false));
    return window;
  }

  /**
   * Hides the window instead of closing it, so that agents can still use the program. Without a tray, minimizes the window,
   * because the owner could not reach a hidden window.
   */
  async #hide(window: BrowserWindow): Promise<void> {
    const hasTray = await hasTrayHost();
    if (!this.#deps.stored.choices.told && !(await this.#confirmKeepRunning(hasTray))) return app.quit();
    if (window.isDestroyed()) return;
    if (hasTray) window.hide();
    else window.minimize();
  }

  async #confirmKeepRunning(hasTray: boolean): Promise<boolean> {
    const button = await this.showDialog({
      type: 'info',
      message: 'Keep Helmdeck Memory running?',
      detail: hasTray
        ? 'Agents can then still use this memory. To see the window again, click the tray icon or start Helmdeck Memory again.'
        : 'Agents can then still use this memory. This desktop has no tray, so the window is minimized. To see the window again, restore it or start Helmdeck Memory again.',
      buttons: ['Keep Running', 'Quit'],
      defaultId: 0,
      cancelId: 0,
    });
    this.#deps.stored.update({ told: true });
    return button === 0;
  }
}
