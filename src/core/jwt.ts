import { compactVerify, type CryptoKey, errors, SignJWT } from 'jose';
import { explain } from '../contract/explain.ts';
import { Failure } from '../contract/failure.ts';
import { TokenClaims } from '../contract/token.ts';

/** The one algorithm. A token that asks for another, or for none, is not ours (R-AUTH). */
const ALGORITHM = 'HS256';
/** All else in a header asks for something: another key, an extension, a place to fetch from. */
const HEADER_NAMES: ReadonlySet<string> = new Set(['alg', 'typ']);
const SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const invalidToken = (what: string): Failure => new Failure('invalid_token', what);

const notOurs = (): Failure =>
  invalidToken('This token was not made for this memory, or it was changed on the way; ask the owner of the memory for one.');

/** A secret is a text on both sides: whoever shares it can sign with any library. */
export const signingKey = (secret: string): Promise<CryptoKey> =>
  crypto.subtle.importKey('raw', new TextEncoder().encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);

export const signToken = (claims: TokenClaims, key: CryptoKey): Promise<string> =>
  new SignJWT({ ...claims }).setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' }).sign(key);

/** What the token says, once it is proved that a holder of the secret says so. Whether it still holds is not asked here. */
export async function readToken(token: string, key: CryptoKey): Promise<TokenClaims> {
  if (!SHAPE.test(token) || !token.split('.').every(canonical)) throw notOurs();
  const payload = await verified(token, key);
  const claims = TokenClaims.safeParse(parse(payload));
  if (claims.success) return claims.data;
  const whole = claims.error.issues[0]?.path.length === 0;
  throw invalidToken(
    whole
      ? 'This token is not valid, because its claims are not one JSON object that says everything once; make it anew.'
      : `This token is not valid, because its claim ${explain(claims.error)}`,
  );
}

async function verified(token: string, key: CryptoKey): Promise<Uint8Array> {
  try {
    const { payload, protectedHeader } = await compactVerify(token, key, { algorithms: [ALGORITHM] });
    const header = parse(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url'));
    if (Object.keys(protectedHeader).every((name) => HEADER_NAMES.has(name)) && header !== undefined) return payload;
  } catch (error) {
    // Their texts may repeat what was sent.
    if (!(error instanceof errors.JOSEError)) throw error;
  }
  throw notOurs();
}

/** Unused bits at the end of a part could be set: another text for the same token, which a list of texts would not know. */
const canonical = (part: string): boolean => Buffer.from(part, 'base64url').toString('base64url') === part;

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
