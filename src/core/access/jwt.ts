import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import { Failure } from '../../contract/failure.ts';
import { TOKEN_DAYS } from '../../contract/limits.ts';
import { explainIssue } from '../../contract/schema.ts';
import { AUDIENCE, ISSUER, TokenClaims, type TokenScope } from '../../contract/token.ts';
import { DAY_MS, SECOND_MS } from '../../contract/units.ts';

/** HMAC with SHA-256. Tokens with another algorithm, or without one, are rejected (R-AUTH). */
const ALGORITHM = 'HS256';
/**
 * The allowed fields of a token header. Other fields name keys, extensions or URLs to fetch, so tokens with such fields are
 * rejected.
 */
const HEADER_NAMES: ReadonlySet<string> = new Set(['alg', 'typ']);
const SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const invalidToken = (message: string): Failure => new Failure('invalid_token', message);

const foreignToken = (): Failure =>
  invalidToken('This token was not created for this memory, or it was altered; ask the owner of the memory for a new token.');

/** Creates the key that signs tokens. The secret is text, so that the owner can sign tokens with any JWT library. */
export const signingKey = (secret: string): KeyObject => createSecretKey(secret, 'utf8');

export function signToken(claims: TokenClaims, key: KeyObject): string {
  const content = [{ alg: ALGORITHM, typ: 'JWT' }, claims].map((part) => encode(JSON.stringify(part))).join('.');
  return `${content}.${encode(signatureOf(content, key))}`;
}

/** Creates the running program's own token, signed with a secret that nothing else knows. */
export function ownersToken(now: number): { token: string; claims: TokenClaims } {
  const iat = Math.floor(now / SECOND_MS);
  const claims: TokenClaims = {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'me',
    client: 'command-line',
    scopes: ['admin'],
    iat,
    // A time so far in the future that the program exits before it.
    exp: iat + (100 * TOKEN_DAYS * DAY_MS) / SECOND_MS,
    jti: randomBytes(8).toString('hex'),
  };
  return { token: signToken(claims, signingKey(randomBytes(32).toString('base64url'))), claims };
}

/** Verifies the signature and returns the claims. Does not check expiry or revocation. */
export function verifyToken(token: string, key: KeyObject): TokenClaims {
  if (!SHAPE.test(token)) throw foreignToken();
  const claims = TokenClaims().safeParse(parse(payloadOf(token, key)));
  if (claims.success) return claims.data;
  const whole = claims.error.issues[0]?.path.length === 0;
  throw invalidToken(
    whole
      ? 'This token is not valid, because its claims are not a JSON object without duplicate names; create it again.'
      : `This token is not valid, because its claim ${explainIssue(claims.error)}`,
  );
}

/** Returns the payload of a token. Verifies the signature before it parses any part of the token. */
function payloadOf(token: string, key: KeyObject): Buffer {
  const parts = token.split('.');
  const [header, payload, signature] = parts.map((part) => Buffer.from(part, 'base64url')) as [Buffer, Buffer, Buffer];
  // Unused bits in base64url allow several spellings of the same token. Reject all but the canonical one, because their digests
  // differ.
  const canonical = [header, payload, signature].every((bytes, index) => encode(bytes) === parts[index]);
  const wanted = signatureOf(token.slice(0, token.lastIndexOf('.')), key);
  if (!canonical || signature.length !== wanted.length || !timingSafeEqual(signature, wanted)) throw foreignToken();
  if (!isAllowedHeader(parse(header))) throw foreignToken();
  return payload;
}

const isAllowedHeader = (header: unknown): boolean =>
  typeof header === 'object' &&
  header !== null &&
  'alg' in header &&
  header.alg === ALGORITHM &&
  Object.keys(header).every((name) => HEADER_NAMES.has(name));

const signatureOf = (content: string, key: KeyObject): Buffer => createHmac('sha256', key).update(content).digest();

const encode = (part: string | Buffer): string => Buffer.from(part).toString('base64url');

/** Parses JSON. Returns undefined for invalid JSON and for objects with duplicate names. */
function parse(bytes: Uint8Array): unknown {
  try {
    const json = utf8.decode(bytes);
    const value: unknown = JSON.parse(json);
    return hasDuplicateNames(json) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** Whether an object has duplicate names. Such JSON is rejected, because parsers disagree about which value counts. */
function hasDuplicateNames(json: string): boolean {
  const open: Set<string>[] = [];
  for (const [mark, text, colon] of json.matchAll(/[{}]|("(?:[^"\\]|\\.)*")\s*(:?)/g)) {
    if (mark === '{') open.push(new Set());
    else if (mark === '}') open.pop();
    else if (text !== undefined && colon !== '') {
      const name = String(JSON.parse(text));
      const names = open.at(-1);
      if (names?.has(name)) return true;
      names?.add(name);
    }
  }
  return false;
}

export interface TokenIdentity {
  readonly id: string;
  readonly subject: string;
  readonly client: string;
  readonly scopes: ReadonlySet<TokenScope>;
  /** The token is valid from `from` until `until`, both in milliseconds since 1970. */
  readonly from: number;
  readonly until: number;
  readonly quarantined?: true;
  /** The id of the token without which this token is not valid. */
  readonly of?: string;
  /** The packs that the client is offered. Undefined means all packs. */
  readonly packs?: ReadonlySet<string>;
}

export function verifiedOf(
  { sub, client, scopes, exp, nbf = -Infinity, iat = -Infinity, jti, quarantine = false, of }: TokenClaims,
  digest: string,
): TokenIdentity {
  return {
    // Identify a token without an id by its digest, which also serves to revoke the token.
    id: jti ?? `sha256-${digest.slice(0, 22)}`,
    subject: sub,
    client,
    scopes: new Set(scopes),
    from: Math.max(nbf, iat) * SECOND_MS,
    until: exp * SECOND_MS,
    ...(quarantine && { quarantined: true }),
    ...(of !== undefined && { of }),
  };
}
