import { chmodSync } from 'node:fs';
import { app, type DownloadItem, type WebContents } from 'electron';
import { SCHEME, WINDOW_URL } from './pages.ts';

/**
 * Restricts all pages: they cannot navigate, open windows, get permissions, send network requests, or download files other than
 * the export.
 */
export function restrictWebContents(): void {
  app.on('web-contents-created', (_event, contents) => restrict(contents));
}

const LOCAL = new Set([`${SCHEME}:`, 'devtools:']);

function restrict(contents: WebContents): void {
  const prevent = (event: { preventDefault(): void }): void => event.preventDefault();
  contents.on('will-navigate', prevent);
  contents.on('will-redirect', prevent);
  contents.on('will-frame-navigate', prevent);
  contents.on('will-attach-webview', prevent);
  contents.setWindowOpenHandler(() => ({ action: 'deny' }));
  const { session } = contents;
  session.setPermissionRequestHandler((_contents, permission, answer) => answer(isAllowed(permission)));
  session.setPermissionCheckHandler((_contents, permission) => isAllowed(permission));
  session.setDevicePermissionHandler(() => false);
  session.on('will-download', allowOnlyExport);
  // A second defence in addition to the page's content security policy.
  session.webRequest.onBeforeRequest(({ url }, answer) => answer({ cancel: !LOCAL.has(new URL(url).protocol) }));
}

/** Allows only the permission that the window's copy buttons need. */
const isAllowed = (permission: string): boolean => permission === 'clipboard-sanitized-write';

const EXPORT_URL = `blob:${WINDOW_URL}`;
const EXPORT_NAME = /^helmdeck-memory-[\w.-]+\.jsonl$/;

/**
 * Allows only the download of the window's export, and cancels all other downloads. The owner chooses the file in a system
 * dialog.
 */
function allowOnlyExport(event: { preventDefault(): void }, item: DownloadItem): void {
  if (!item.getURL().startsWith(EXPORT_URL)) {
    event.preventDefault();
    return;
  }
  const name = item.getFilename();
  item.setSaveDialogOptions({
    title: 'Export facts',
    defaultPath: EXPORT_NAME.test(name) ? name : 'helmdeck-memory.jsonl',
    filters: [{ name: 'Facts, one per line', extensions: ['jsonl'] }],
  });
  item.once('done', (_done, state) => {
    // Remove the access of other users, which an existing file may have allowed. For a new file, the umask prevents such access.
    if (state === 'completed' && process.platform !== 'win32') chmodSync(item.getSavePath(), 0o600);
  });
}
