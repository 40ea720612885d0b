import { BrowserWindow, Menu, screen } from 'electron';
import { isReachable, type WindowBounds } from './desktop-state.ts';
import { editItems } from './edit-items.ts';
import { WINDOW_URL } from './pages.ts';
import { type PageOptions, webPreferences } from './web-preferences.ts';

const SIZE = { width: 920, height: 620, minWidth: 640, minHeight: 420 };
const RELOAD_MS = 10_000;

interface Options extends PageOptions {
  /** Position and size at the last close. */
  readonly place: WindowBounds | undefined;
}

/** Creates the window. It is shown once its page is ready. */
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
  // Electron has no default context menu.
  window.webContents.on('context-menu', (_event, clicked) => {
    const items = editItems(clicked);
    if (items.length > 0) Menu.buildFromTemplate(items).popup({ window });
  });
  let reloadedAt = -Infinity;
  window.webContents.on('render-process-gone', (_event, { reason }) => {
    // Reloads a crashed page. A page that crashes again soon is reloaded only when the owner opens the window.
    if (reason === 'clean-exit' || window.isDestroyed() || performance.now() - reloadedAt < RELOAD_MS) return;
    reloadedAt = performance.now();
    // Reloading while Chromium is still destroying the page would crash the program.
    setImmediate(() => {
      if (!window.isDestroyed()) window.reload();
    });
  });
  void window.loadURL(WINDOW_URL);
  return window;
}
