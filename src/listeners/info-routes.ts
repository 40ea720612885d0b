import { Failure } from '../contract/failure.ts';
import { openApi } from './openapi.ts';
import { API_PATH, rejectQuery } from './rest-routes.ts';
import type { Route } from './route.ts';

/** Version and API description. */
export function infoRoutes(version: string): Route[] {
  // Built on the first request, because most runs never need it.
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
/** The minimum length makes it practically impossible to replay an earlier proof. */
const CHALLENGE = /^challenge=([\w-]{16,128})$/;

/** The response of /healthz, which needs no token. With a challenge, it proves to the owner's programs who we are (R-HTTP-11). */
export function healthResponse(query: string, prove: (challenge: string) => string): string {
  if (query === '') return HEALTHY;
  const challenge = CHALLENGE.exec(query)?.[1];
  if (challenge !== undefined) return JSON.stringify({ status: 'ok', proof: prove(challenge) });
  throw new Failure('invalid_input', 'The challenge must be 16 to 128 letters, digits, "_" or "-"; send that or no query.');
}
