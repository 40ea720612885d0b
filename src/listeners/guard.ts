import { Failure } from '../contract/failure.ts';

/**
 * Throws unless the request names one of our hosts and comes from a program or from our own origin. It does not authenticate.
 * Takes raw headers, because Node joins or drops repeated ones.
 */
export type Guard = (rawHeaders: readonly string[]) => void;

const OWN_NAMES = ['127.0.0.1', 'localhost', '[::1]'];
const HTTP_PORT = 80;

/**
 * Keeps web pages in the owner's browser out (R-HTTP-04, R-HTTP-05). An attacker can point a domain name at this machine, so the
 * Host header must match exactly. Browsers mark requests of other origins with Origin or Sec-Fetch-Site. Our own origin is allowed,
 * because some clients send our address as Origin.
 */
export function createGuard(port: number, allowedHosts: readonly string[] = []): Guard {
  const hosts: ReadonlySet<string> = new Set([
    ...OWN_NAMES.map((name) => `${name}:${port}`),
    ...(port === HTTP_PORT ? OWN_NAMES : []),
    ...allowedHosts,
  ]);
  return (rawHeaders) => {
    let host: string | undefined;
    let hostCount = 0;
    let origin: string | undefined;
    let site: string | undefined;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      switch (lowerCaseNameAt(rawHeaders, index)) {
        case 'host':
          hostCount += 1;
          host = rawHeaders[index + 1];
          break;
        case 'origin':
          // With two headers, a proxy could use the other one.
          if (origin !== undefined) throw foreignOrigin();
          origin = rawHeaders[index + 1] ?? '';
          break;
        case 'sec-fetch-site':
          if (site !== undefined) throw foreignOrigin();
          site = rawHeaders[index + 1] ?? '';
          break;
        default:
      }
    }
    if (hostCount !== 1 || host === undefined || !hosts.has(host)) {
      throw new Failure(
        'forbidden_host',
        `The Host header is not an address of this memory; use http://127.0.0.1:${port} and let your HTTP library set Host.`,
      );
    }
    // The value is `none` when the owner typed the address or opened the link from a terminal.
    if (site !== undefined && site !== 'same-origin' && site !== 'none') throw foreignOrigin();
    if (origin !== undefined && !isSameOrigin(origin, host)) throw foreignOrigin();
  };
}

/** Accepts https too, because a proxy in front of us may use TLS. */
const isSameOrigin = (origin: string, host: string): boolean => origin === `http://${host}` || origin === `https://${host}`;

/** Returns '' for names of other lengths, because toLowerCase costs more than the rest of the guard. */
function lowerCaseNameAt(rawHeaders: readonly string[], index: number): string {
  const name = rawHeaders[index] ?? '';
  return name.length === 4 || name.length === 6 || name.length === 14 ? name.toLowerCase() : '';
}

const foreignOrigin = (): Failure =>
  new Failure(
    'forbidden_origin',
    'Web pages of other origins cannot reach this memory; call it from a program, without an Origin header.',
  );

const SCHEME = /^bearer +([!-~]+) *$/i;
const AUTHORIZATION = 'authorization';

/** Reads the token from the one Authorization header, and from nowhere else (R-HTTP-08). Does not verify it. */
export function readBearerToken(rawHeaders: readonly string[]): string {
  let credentials: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== AUTHORIZATION.length || name.toLowerCase() !== AUTHORIZATION) continue;
    // With two headers, a proxy could use the other one.
    if (credentials !== undefined) throw new Failure('invalid_token', 'There are two Authorization headers; send exactly one.');
    credentials = rawHeaders[index + 1] ?? '';
  }
  const token = credentials === undefined ? undefined : SCHEME.exec(credentials)?.[1];
  if (token !== undefined) return token;
  throw new Failure('missing_bearer', 'This request needs a token; send it as "Authorization: Bearer <token>".');
}
