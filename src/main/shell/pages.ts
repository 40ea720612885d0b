import { protocol, type Session } from 'electron';
import { CONTENT_SECURITY_POLICY } from '../../listeners/window/content-security-policy.ts';
import { readStaticFiles } from '../../listeners/window/static-files.ts';

export const SCHEME = 'helmdeck-window';
export const WINDOW_URL = `${SCHEME}://window/`;

/** Before the application is ready: a scheme with an origin of its own, which a file has not. */
export function registerScheme(): void {
  protocol.registerSchemesAsPrivileged([{ scheme: SCHEME, privileges: { standard: true, secure: true, supportFetchAPI: true } }]);
}

/** Where the window looks for its owner's colour; in what was built it is empty, and so it is in a browser. */
const ACCENT = '/accent.css';

/**
 * Serves the built window under its policy, in the owner's colour, and nothing else, whatever an address spells. Fulfils when its
 * script was asked for.
 */
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
