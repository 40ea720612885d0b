import { app, type WebContents } from 'electron';
import { allowOnlyExport } from './export.ts';
import { SCHEME } from './pages.ts';

/** Restricts all pages: no navigation, new windows, permissions, or network requests, and no download except the export. */
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
  // In addition to the page's content security policy.
  session.webRequest.onBeforeRequest(({ url }, answer) => answer({ cancel: !LOCAL.has(new URL(url).protocol) }));
}

/** The window's copy buttons need this permission. */
const isAllowed = (permission: string): boolean => permission === 'clipboard-sanitized-write';
