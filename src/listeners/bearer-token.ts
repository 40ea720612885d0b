import { Failure } from '../contract/failure.ts';

const SCHEME = /^bearer +([!-~]+) *$/i;
const NAME = 'authorization';

/** Reads the token from the one Authorization header, and from nowhere else (R-HTTP-08). Does not verify it. */
export function readBearerToken(rawHeaders: readonly string[]): string {
  let credentials: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== NAME.length || name.toLowerCase() !== NAME) continue;
    // Another parser might use the other of two headers.
    if (credentials !== undefined) throw new Failure('invalid_token', 'There are two Authorization headers; send exactly one.');
    credentials = rawHeaders[index + 1] ?? '';
  }
  const token = credentials === undefined ? undefined : SCHEME.exec(credentials)?.[1];
  if (token !== undefined) return token;
  throw new Failure('missing_bearer', 'This request needs a token; send it as "Authorization: Bearer <token>".');
}

/** The expiry of a verified token, in milliseconds since 1970. */
export function tokenExpiryMs(token: string): number {
  const payload = token.split('.')[1] ?? '';
  const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp: number };
  return exp * 1000;
}
