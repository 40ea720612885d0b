import { Failure } from '../contract/failure.ts';

const SCHEME = /^bearer +([!-~]+) *$/i;
const NAME = 'authorization';

/** The token of a request: from its one Authorization header and nowhere else (R-HTTP-08). Whose it is, `Tokens` knows. */
export function readBearerToken(rawHeaders: readonly string[]): string {
  let credentials: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== NAME.length || name.toLowerCase() !== NAME) continue;
    // Which of two counts would depend on who reads them.
    if (credentials !== undefined) throw new Failure('invalid_token', 'There are two Authorization headers; send exactly one.');
    credentials = rawHeaders[index + 1] ?? '';
  }
  const token = credentials === undefined ? undefined : SCHEME.exec(credentials)?.[1];
  if (token !== undefined) return token;
  throw new Failure('missing_bearer', 'This needs a token; send it as "Authorization: Bearer <token>".');
}

/** When a token that was verified ends, in milliseconds since 1970. */
export function tokenExpiryMs(token: string): number {
  const payload = token.split('.')[1] ?? '';
  // Whoever verified it has read the same claims.
  const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp: number };
  return exp * 1000;
}
