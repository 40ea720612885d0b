import { BrowserWindow, Menu, screen } from 'electron';
import { isReachable, type WindowBounds } from './desktop-state.ts';
import { editItems } from './edit-items.ts';
import { WINDOW_URL } from './pages.ts';
import { type PageOptions, webPreferences } from './web-preferences.ts';

const SIZE = { width: 920, height: 620, minWidth: 640, minHeight: 420 };
const RELOAD_MS = 10_000;

interface Options extends PageOptions {
  /** Position and size of the window when it was last closed. */
  readonly place: WindowBounds | undefined;
}

/** Creates the window without showing it. */
export function createWindow(options: Options): BrowserWindow {
  const { place } = options;
  const areas = screen.getAllDisplays().map(({ workArea }) => workArea);
  const window = new BrowserWindow({
    ...SIZE,
    ...(place && isReachable(place, areas) ? place : {}),
    show: false,
    title: 'Helmdeck Memory',
    autoHideMenuBar: true,
    webPreferences: webPreferences(options),
  });
  // Add a context menu, because Electron does not provide a default context menu.
  window.webContents.on('context-menu', (_event, clicked) => {
    const items = editItems(clicked);
    if (items.length > 0) Menu.buildFromTemplate(items).popup({ window });
  });
  let reloadedAt = -Infinity;
  window.webContents.on('render-process-gone', (_event, { reason }) => {
    // Reload a crashed page. If the page crashes again soon, it is reloaded only when the owner opens the window.
    if (reason === 'clean-exit' || window.isDestroyed() || performance.now() - reloadedAt < RELOAD_MS) return;
    reloadedAt = performance.now();
    // Wait before reloading: a reload while Chromium still destroys the page would crash the program.
    setImmediate(() => {
      if (!window.isDestroyed()) window.reload();
    });
  });
  void window.loadURL(WINDOW_URL);
  return window;
}
