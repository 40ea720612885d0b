import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { explainIssue } from '../../contract/explain.ts';
import { Failure } from '../../contract/failure.ts';
import { TokenClaims } from '../../contract/token.ts';

/** The one algorithm, HMAC with SHA-256. A token that asks for another, or for none, is not ours (R-AUTH). */
const ALGORITHM = 'HS256';
/** All else in a header asks for something: another key, an extension, a place to fetch from. */
const HEADER_NAMES: ReadonlySet<string> = new Set(['alg', 'typ']);
const SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const invalidToken = (what: string): Failure => new Failure('invalid_token', what);

const notOurs = (): Failure =>
  invalidToken('This token was not made for this memory, or it was changed on the way; ask the owner of the memory for one.');

/** A secret is a text on both sides: whoever shares it can sign with any library. */
export const signingKey = (secret: string): KeyObject => createSecretKey(secret, 'utf8');

export function signToken(claims: TokenClaims, key: KeyObject): string {
  const said = [{ alg: ALGORITHM, typ: 'JWT' }, claims].map((part) => spell(JSON.stringify(part))).join('.');
  return `${said}.${spell(signatureOf(said, key))}`;
}

/** What the token says, once it is proved that a holder of the secret says so. Whether it still holds is not asked here. */
export function verifyToken(token: string, key: KeyObject): TokenClaims {
  if (!SHAPE.test(token)) throw notOurs();
  const claims = TokenClaims().safeParse(parse(payloadOf(token, key)));
  if (claims.success) return claims.data;
  const whole = claims.error.issues[0]?.path.length === 0;
  throw invalidToken(
    whole
      ? 'This token is not valid, because its claims are not one JSON object that says everything once; make it anew.'
      : `This token is not valid, because its claim ${explainIssue(claims.error)}`,
  );
}

/** Nothing of a token is read before its signature is proved. */
function payloadOf(token: string, key: KeyObject): Buffer {
  const parts = token.split('.');
  const [header, payload, signature] = parts.map((part) => Buffer.from(part, 'base64url')) as [Buffer, Buffer, Buffer];
  // Unused bits at the end of a part could be set: another text for the same token, which a list of texts would not know.
  const canonical = [header, payload, signature].every((bytes, index) => spell(bytes) === parts[index]);
  const wanted = signatureOf(token.slice(0, token.lastIndexOf('.')), key);
  if (!canonical || signature.length !== wanted.length || !timingSafeEqual(signature, wanted)) throw notOurs();
  if (!isOurs(parse(header))) throw notOurs();
  return payload;
}

const isOurs = (header: unknown): boolean =>
  typeof header === 'object' &&
  header !== null &&
  'alg' in header &&
  header.alg === ALGORITHM &&
  Object.keys(header).every((name) => HEADER_NAMES.has(name));

const signatureOf = (said: string, key: KeyObject): Buffer => createHmac('sha256', key).update(said).digest();

const spell = (part: string | Buffer): string => Buffer.from(part).toString('base64url');

/** Undefined for what is not JSON, or says two things at once. */
function parse(bytes: Uint8Array): unknown {
  try {
    const json = utf8.decode(bytes);
    const value: unknown = JSON.parse(json);
    return saysTwice(json) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** Whether an object in it has two members of one name: which of them counts would depend on who reads it. */
function saysTwice(json: string): boolean {
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
