import { protocol, type Session } from 'electron';
import { CONTENT_SECURITY_POLICY } from '../../listeners/window/content-security-policy.ts';
import { readStaticFiles } from '../../listeners/window/static-files.ts';

export const SCHEME = 'helmdeck-window';
export const WINDOW_URL = `${SCHEME}://window/`;

/** Registers a URL scheme for the window, because file URLs have no origin. Must be called before the application is ready. */
export function registerScheme(): void {
  protocol.registerSchemesAsPrivileged([{ scheme: SCHEME, privileges: { standard: true, secure: true, supportFetchAPI: true } }]);
}

/** Path of the style sheet with the system's accent colour. Browsers receive the built file, which is empty. */
const ACCENT = '/accent.css';

/** Serves only the files of the built window. Resolves when the window's script has been requested. */
export function servePages(session: Session, folder: string, accent: () => string): Promise<void> {
  const pages = readStaticFiles(folder);
  const { promise, resolve } = Promise.withResolvers<void>();
  session.protocol.handle(SCHEME, ({ url, method }) => {
    const { host, pathname } = new URL(url);
    const page = host === 'window' && method === 'GET' ? pages.get(pathname) : undefined;
    if (!page) return new Response('', { status: 404 });
    if (page.type.startsWith('text/javascript')) resolve();
    const headers = {
      'Content-Type': page.type,
      'Content-Security-Policy': CONTENT_SECURITY_POLICY,
      'X-Content-Type-Options': 'nosniff',
    };
    return new Response(pathname === ACCENT ? accent() : new Uint8Array(page.bytes), { headers });
  });
  return promise;
}
