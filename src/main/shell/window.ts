import { BrowserWindow, Menu, screen } from 'electron';
import { isReachable, type WindowBounds } from './desktop-state.ts';
import { editItems } from './edit-items.ts';
import { WINDOW_URL } from './pages.ts';
import { type PageOptions, webPreferences } from './web-preferences.ts';

const SIZE = { width: 920, height: 620, minWidth: 640, minHeight: 420 };
const RELOAD_MS = 10_000;

interface Options extends PageOptions {
  /** Where it stood last. */
  readonly place: WindowBounds | undefined;
}

/** The one window, not shown yet. */
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
  // Electron shows none by itself.
  window.webContents.on('context-menu', (_event, clicked) => {
    const items = editItems(clicked);
    if (items.length > 0) Menu.buildFromTemplate(items).popup({ window });
  });
  let reloaded = -Infinity;
  window.webContents.on('render-process-gone', (_event, { reason }) => {
    // All it held is in the memory; where it stood is all that is lost. A page that dies at once again waits until it is opened.
    if (reason === 'clean-exit' || window.isDestroyed() || performance.now() - reloaded < RELOAD_MS) return;
    reloaded = performance.now();
    // Chromium is still taking the page apart, and loading another into it at once would end the whole program.
    setImmediate(() => {
      if (!window.isDestroyed()) window.reload();
    });
  });
  void window.loadURL(WINDOW_URL);
  return window;
}
