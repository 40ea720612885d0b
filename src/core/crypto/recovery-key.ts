import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { Failure } from '../../contract/failure.ts';

const SECRET_BYTES = 32;
const CHECK_BYTES = 3;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Nonce of wrapped keys in the first format, which stored no nonce. */
const FIRST_NONCE = Buffer.alloc(NONCE_BYTES);
const FIRST_FORMAT_BYTES = SECRET_BYTES + SECRET_BYTES + TAG_BYTES;
/** Fixed DER prefixes of X25519 keys. The 32 bytes of the key follow. */
const PRIVATE_HEAD = Buffer.from('302e020100300506032b656e04220420', 'hex');
const PUBLIC_HEAD = Buffer.from('302a300506032b656e032100', 'hex');
/** Crockford's base-32 alphabet, which has no letters that look like digits. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Names, in the `meta` table, of the encrypted public half and of the wrapped master keys. */
export const RECOVERY_PUBLIC_KEY = 'recovery public key';
export const RECOVERY_WRAPPED_KEY = 'recovery';
export const RECOVERY_WRAPPED_RETIRING_KEY = 'recovery of the retiring key';
export const WRAPPED_KEY_NAMES: ReadonlySet<string> = new Set([RECOVERY_WRAPPED_KEY, RECOVERY_WRAPPED_RETIRING_KEY]);

/**
 * The recovery key is the private half of a key pair. The database stores the public half, encrypted, and the master key wrapped
 * with the public half. So a rotation can wrap the new master key without the recovery key. The old master key does not decrypt
 * data written later (R-KEY).
 */
export interface RecoveryPair {
  /** The recovery key, which is shown once and never stored. */
  readonly recoveryKey: string;
  readonly publicKey: Buffer;
}

export function createRecoveryPair(): RecoveryPair {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  const secret = privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(-SECRET_BYTES);
  return { recoveryKey: spell(secret), publicKey: bytesOf(publicKey) };
}

/**
 * Wraps a master key, so that only the recovery key can unwrap it. Two copies of a virtual machine can generate the same
 * ephemeral key pair, and then rotate to different master keys. The nonce is therefore derived from the master key, so that two
 * master keys never share a nonce.
 */
export function wrapKey(master: Buffer, publicKey: Buffer, once = generateKeyPairSync('x25519')): Buffer {
  const own = bytesOf(once.publicKey);
  const secret = sharedSecret(once.privateKey, readPublic(publicKey), own, publicKey);
  const nonce = createHmac('sha256', master)
    .update('helmdeck-memory/1 recovery nonce')
    .update(own)
    .update(publicKey)
    .digest()
    .subarray(0, NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES });
  return Buffer.concat([own, nonce, cipher.update(master), cipher.final(), cipher.getAuthTag()]);
}

/** Unwraps and returns the master key. Throws a failure if the recovery key is mistyped or belongs to another memory. */
export function unwrapKey(recoveryKey: string, wrapped: Buffer): Buffer {
  const privateKey = createPrivateKey({ key: Buffer.concat([PRIVATE_HEAD, read(recoveryKey)]), type: 'pkcs8', format: 'der' });
  const other = wrapped.subarray(0, SECRET_BYTES);
  const secret = sharedSecret(privateKey, readPublic(other), other, bytesOf(createPublicKey(privateKey)));
  const isFirstFormat = wrapped.length === FIRST_FORMAT_BYTES;
  const body = wrapped.subarray(isFirstFormat ? SECRET_BYTES : SECRET_BYTES + NONCE_BYTES, -TAG_BYTES);
  const nonce = isFirstFormat ? FIRST_NONCE : wrapped.subarray(SECRET_BYTES, SECRET_BYTES + NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(wrapped.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(body), decipher.final()]);
  } catch (cause) {
    throw new Failure(
      'invalid_input',
      'This recovery key belongs to another memory, or was replaced by a newer recovery key; use the newest recovery key of this memory.',
      {
        cause,
      },
    );
  }
}

const sharedSecret = (privateKey: KeyObject, publicKey: KeyObject, sender: Buffer, recipient: Buffer): Buffer =>
  Buffer.from(
    hkdfSync(
      'sha256',
      diffieHellman({ privateKey, publicKey }),
      Buffer.concat([sender, recipient]),
      'helmdeck-memory/1 recovery',
      32,
    ),
  );

const bytesOf = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' }).subarray(-SECRET_BYTES);

const readPublic = (bytes: Buffer): KeyObject =>
  createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, bytes]), type: 'spki', format: 'der' });

const check = (secret: Buffer): Buffer =>
  createHash('sha256').update('helmdeck-memory/1 recovery check').update(secret).digest().subarray(0, CHECK_BYTES);

/** Formats a recovery key: 56 characters in groups of four. The last characters are a checksum that detects typing errors. */
function spell(secret: Buffer): string {
  let bits = BigInt(`0x${Buffer.concat([secret, check(secret)]).toString('hex')}`);
  let text = '';
  for (let at = 0; at < ((SECRET_BYTES + CHECK_BYTES) * 8) / 5; at += 1) {
    text = LETTERS.charAt(Number(bits & 31n)) + text;
    bits >>= 5n;
  }
  return text.replace(/.{4}(?=.)/g, '$&-');
}

function read(recoveryKey: string): Buffer {
  const letters = recoveryKey.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1');
  const bytes = SECRET_BYTES + CHECK_BYTES;
  const wrong = new Failure(
    'invalid_input',
    'The recovery key contains a typing error; it must have 56 letters and digits in groups of four, so compare them one by one.',
  );
  if (letters.length !== (bytes * 8) / 5 || Array.from(letters).some((letter) => !LETTERS.includes(letter))) throw wrong;
  let bits = 0n;
  for (const letter of letters) bits = (bits << 5n) | BigInt(LETTERS.indexOf(letter));
  const all = Buffer.from(bits.toString(16).padStart(bytes * 2, '0'), 'hex');
  const secret = all.subarray(0, SECRET_BYTES);
  if (!check(secret).equals(all.subarray(SECRET_BYTES))) throw wrong;
  return secret;
}
