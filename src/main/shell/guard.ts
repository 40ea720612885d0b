import { app, type WebContents } from 'electron';
import { allowOnlyExport } from './export.ts';
import { SCHEME } from './pages.ts';

/** Whatever is shown goes nowhere and asks for nothing: no navigation, no further windows, no permissions, no requests, and no download but its export. */
export function restrictWebContents(): void {
  app.on('web-contents-created', (_event, contents) => fenceIn(contents));
}

const LOCAL = new Set([`${SCHEME}:`, 'devtools:']);

function fenceIn(contents: WebContents): void {
  const stay = (event: { preventDefault(): void }): void => event.preventDefault();
  contents.on('will-navigate', stay);
  contents.on('will-redirect', stay);
  contents.on('will-frame-navigate', stay);
  contents.on('will-attach-webview', stay);
  contents.setWindowOpenHandler(() => ({ action: 'deny' }));
  const { session } = contents;
  session.setPermissionRequestHandler((_contents, permission, answer) => answer(isAllowed(permission)));
  session.setPermissionCheckHandler((_contents, permission) => isAllowed(permission));
  session.setDevicePermissionHandler(() => false);
  session.on('will-download', allowOnlyExport);
  // Behind the policy of the page, for what a page does not decide.
  session.webRequest.onBeforeRequest(({ url }, answer) => answer({ cancel: !LOCAL.has(new URL(url).protocol) }));
}

/** A value is copied when its owner asks for it. */
const isAllowed = (permission: string): boolean => permission === 'clipboard-sanitized-write';
