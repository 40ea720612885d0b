import { Failure } from '../contract/failure.ts';
import { openApi } from './openapi.ts';
import { API_PATH, rejectQuery } from './rest-routes.ts';
import type { Route } from './route.ts';

export function infoRoutes(version: string): Route[] {
  // The document is built on the first request, because it is rarely requested.
  let document: object | undefined;
  const info = (path: string, operation: string, read: () => object): Route => ({
    method: 'GET',
    path: API_PATH + path,
    transport: 'rest',
    operation,
    async handle({ query }) {
      rejectQuery(query);
      return read();
    },
  });
  return [
    info('/version', 'version', () => ({ version })),
    info('/openapi.json', 'openapi', () => (document ??= openApi(version))),
  ];
}

const HEALTHY = JSON.stringify({ status: 'ok' });
/** The minimum length makes equal challenges practically impossible, so that an earlier proof cannot be replayed. */
const CHALLENGE = /^challenge=([\w-]{16,128})$/;

/**
 * Returns the response of `/healthz`, which needs no token. If the query has a challenge, the response proves to the owner's
 * other programs that this is the program that wrote `endpoint.json` (R-HTTP-11). For other machines, `prove` is undefined,
 * because another program could forward a challenge to this server and pass the proof off as its own.
 */
export function healthResponse(query: string, prove: ((challenge: string) => string) | undefined): string {
  if (query === '') return HEALTHY;
  if (!prove) throw new Failure('invalid_input', 'This path has no query; leave it out.');
  const challenge = CHALLENGE.exec(query)?.[1];
  if (challenge !== undefined) return JSON.stringify({ status: 'ok', proof: prove(challenge) });
  throw new Failure(
    'invalid_input',
    'The challenge must have 16 to 128 letters, digits, "_" or "-"; send such a challenge, or no query.',
  );
}
