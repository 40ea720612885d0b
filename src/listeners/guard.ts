import { Failure } from '../contract/failure.ts';

/**
 * Throws unless the request was made by a program of this machine, or by a page of our own origin. It proves no identity: both
 * still need a token. Takes headers as they came: Node joins or drops what came twice.
 */
export type Guard = (rawHeaders: readonly string[]) => void;

const OWN_NAMES = ['127.0.0.1', 'localhost', '[::1]'];
const HTTP_PORT = 80;

/**
 * A page that the owner visits must not reach this memory through their browser (R-HTTP-04, R-HTTP-05). Its own name can be
 * made to point here, so only exact names of ours pass; and no browser hides from us what a page asked for: it sends Origin
 * or Sec-Fetch-Site. A page of our own origin is let through, as clients expect that send our address as their Origin.
 */
export function createGuard(port: number, allowedHosts: readonly string[] = []): Guard {
  const hosts: ReadonlySet<string> = new Set([
    ...OWN_NAMES.map((name) => `${name}:${port}`),
    ...(port === HTTP_PORT ? OWN_NAMES : []),
    ...allowedHosts,
  ]);
  return (rawHeaders) => {
    let host: string | undefined;
    let named = 0;
    let origin: string | undefined;
    let site: string | undefined;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      switch (nameAt(rawHeaders, index)) {
        case 'host':
          named += 1;
          host = rawHeaders[index + 1];
          break;
        case 'origin':
          // Whichever of two counts would depend on who reads them.
          if (origin !== undefined) throw fromAPage();
          origin = rawHeaders[index + 1] ?? '';
          break;
        case 'sec-fetch-site':
          if (site !== undefined) throw fromAPage();
          site = rawHeaders[index + 1] ?? '';
          break;
        default:
      }
    }
    if (named !== 1 || host === undefined || !hosts.has(host)) {
      throw new Failure(
        'forbidden_host',
        `This memory answers to its own address only; use http://127.0.0.1:${port} and leave the Host header to your HTTP library.`,
      );
    }
    // `none`: the owner typed the address, or followed the link in a terminal.
    if (site !== undefined && site !== 'same-origin' && site !== 'none') throw fromAPage();
    if (origin !== undefined && !isOwn(origin, host)) throw fromAPage();
  };
}

/** The page came from where it now asks; a proxy in front of us may speak TLS. */
const isOwn = (origin: string, host: string): boolean => origin === `http://${host}` || origin === `https://${host}`;

/** Lower case costs more than the rest of the guard: only headers of a length that counts get there. */
function nameAt(rawHeaders: readonly string[], index: number): string {
  const name = rawHeaders[index] ?? '';
  return name.length === 4 || name.length === 6 || name.length === 14 ? name.toLowerCase() : '';
}

const fromAPage = (): Failure =>
  new Failure(
    'forbidden_origin',
    'Web pages of other origins cannot reach this memory; call it from a program, without an Origin header.',
  );
