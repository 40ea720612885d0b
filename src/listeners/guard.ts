import { Failure } from '../contract/failure.ts';

/**
 * Throws if the Host header is not an address of this server, or if the request comes from a web page of another origin. Does not
 * authenticate the caller. Takes raw headers, because Node joins or drops repeated headers.
 */
export type Guard = (rawHeaders: readonly string[]) => void;

const OWN_NAMES = ['127.0.0.1', 'localhost', '[::1]'];
const HTTP_PORT = 80;

/**
 * Creates a guard against web pages that attack this server from the owner's browser (R-HTTP-04, R-HTTP-05). An attacker can
 * point a domain name at this machine, so the Host header must match exactly. Browsers mark requests from other origins with the
 * headers Origin or Sec-Fetch-Site. The server's own origin is allowed, because some clients send the server's address as Origin.
 */
export function createGuard(port: number, allowedHosts: readonly string[] = []): Guard {
  const hosts: ReadonlySet<string> = new Set([
    ...OWN_NAMES.map((name) => `${name}:${port}`),
    ...(port === HTTP_PORT ? OWN_NAMES : []),
    ...allowedHosts,
  ]);
  return createGuardFor({
    isOwnHost: (host) => hosts.has(host),
    // `https` is accepted too, because a proxy in front of this server may use TLS.
    schemes: ['http', 'https'],
    hint: `use http://127.0.0.1:${port} and let your HTTP library set the Host header`,
  });
}

interface OwnOrigin {
  /** Whether a Host header is an address of this server. */
  readonly isOwnHost: (host: string) => boolean;
  /** Schemes of the server's own origin. */
  readonly schemes: readonly string[];
  /** Says in the error message what to do about a wrong Host header. */
  readonly hint: string;
}

/** Creates a guard for a server whose names are not known in advance. */
export function createGuardFor({ isOwnHost, schemes, hint }: OwnOrigin): Guard {
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
          // Two Origin headers are refused, because a proxy and this server could use different ones.
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
    if (hostCount !== 1 || host === undefined || !isOwnHost(host)) {
      throw new Failure('forbidden_host', `The Host header is not an address of Helmdeck Memory; ${hint}.`);
    }
    // Sec-Fetch-Site is `none` when the owner types the address or opens the link from a terminal.
    if (site !== undefined && site !== 'same-origin' && site !== 'none') throw foreignOrigin();
    if (origin !== undefined && !schemes.some((scheme) => origin === `${scheme}://${host}`)) throw foreignOrigin();
  };
}

/** Returns the header name in lower case, or '' for names of other lengths than Host, Origin and Sec-Fetch-Site, to save time. */
function lowerCaseNameAt(rawHeaders: readonly string[], index: number): string {
  const name = rawHeaders[index] ?? '';
  return name.length === 4 || name.length === 6 || name.length === 14 ? name.toLowerCase() : '';
}

const foreignOrigin = (): Failure =>
  new Failure('forbidden_origin', 'Web pages cannot call Helmdeck Memory; call it from a program, without an Origin header.');

const SCHEME = /^bearer +([!-~]+) *$/i;
const AUTHORIZATION = 'authorization';

/**
 * Returns the token from the Authorization header, which is the only place where a token is accepted (R-HTTP-08). Does not verify
 * the token.
 */
export function readBearerToken(rawHeaders: readonly string[]): string {
  let credentials: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== AUTHORIZATION.length || name.toLowerCase() !== AUTHORIZATION) continue;
    // Two Authorization headers are refused, because a proxy and this server could use different ones.
    if (credentials !== undefined) throw new Failure('invalid_token', 'There are two Authorization headers; send exactly one.');
    credentials = rawHeaders[index + 1] ?? '';
  }
  const token = credentials === undefined ? undefined : SCHEME.exec(credentials)?.[1];
  if (token !== undefined) return token;
  throw new Failure('missing_bearer', 'This request needs a token; send it as "Authorization: Bearer <token>".');
}
