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

/**
 * A way back in when the key's place is gone. The recovery key is the private half of a pair; the database keeps only the
 * public half, and the master key locked up with it. So a rotation can lock up the new master key without knowing the
 * recovery key, and knowing an old master key does not open what came after it (R-KEY).
 */
const SECRET_BYTES = 32;
const CHECK_BYTES = 3;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Records of the first format carry no nonce: they were locked with this one. */
const FIRST_NONCE = Buffer.alloc(NONCE_BYTES);
const FIRST_FORMAT_BYTES = SECRET_BYTES + SECRET_BYTES + TAG_BYTES;
/** X25519 keys as Node reads them: a fixed beginning, then the 32 bytes. */
const PRIVATE_HEAD = Buffer.from('302e020100300506032b656e04220420', 'hex');
const PUBLIC_HEAD = Buffer.from('302a300506032b656e032100', 'hex');
/** Crockford's alphabet: no letter that looks like a digit. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Where the database keeps the public half, sealed, and the master keys locked up with it. */
export const RECOVERY_PUBLIC_KEY = 'recovery public key';
export const RECOVERY_WRAPPED_KEY = 'recovery';
export const RECOVERY_WRAPPED_RETIRING_KEY = 'recovery of the retiring key';
export const WRAPPED_KEY_NAMES: ReadonlySet<string> = new Set([RECOVERY_WRAPPED_KEY, RECOVERY_WRAPPED_RETIRING_KEY]);

export interface RecoveryPair {
  /** Shown once, never kept. */
  readonly recoveryKey: string;
  readonly publicKey: Buffer;
}

export function createRecoveryPair(): RecoveryPair {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  const secret = privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(-SECRET_BYTES);
  return { recoveryKey: spell(secret), publicKey: bytesOf(publicKey) };
}

/**
 * Only the recovery key opens the result. Two copies of a virtual machine can draw the same one-time pair, and then rotate to
 * different master keys. The nonce is derived from the master key, so even they never use one nonce for two master keys.
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

/** The master key; a failure that says what to check if the words are wrong or belong to another memory. */
export function unwrapKey(words: string, lockedUp: Buffer): Buffer {
  const privateKey = createPrivateKey({ key: Buffer.concat([PRIVATE_HEAD, read(words)]), type: 'pkcs8', format: 'der' });
  const other = lockedUp.subarray(0, SECRET_BYTES);
  const secret = sharedSecret(privateKey, readPublic(other), other, bytesOf(createPublicKey(privateKey)));
  const isFirstFormat = lockedUp.length === FIRST_FORMAT_BYTES;
  const body = lockedUp.subarray(isFirstFormat ? SECRET_BYTES : SECRET_BYTES + NONCE_BYTES, -TAG_BYTES);
  const nonce = isFirstFormat ? FIRST_NONCE : lockedUp.subarray(SECRET_BYTES, SECRET_BYTES + NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(lockedUp.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(body), decipher.final()]);
  } catch (cause) {
    throw new Failure(
      'invalid_input',
      'This recovery key belongs to another memory, or to this one before a newer recovery key was made; use the newest.',
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

/** 56 letters in groups of four, the last ones a check for typing errors. */
function spell(secret: Buffer): string {
  let bits = BigInt(`0x${Buffer.concat([secret, check(secret)]).toString('hex')}`);
  let text = '';
  for (let at = 0; at < ((SECRET_BYTES + CHECK_BYTES) * 8) / 5; at += 1) {
    text = LETTERS.charAt(Number(bits & 31n)) + text;
    bits >>= 5n;
  }
  return text.replace(/.{4}(?=.)/g, '$&-');
}

function read(words: string): Buffer {
  const letters = words.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1');
  const bytes = SECRET_BYTES + CHECK_BYTES;
  const wrong = new Failure(
    'invalid_input',
    'The recovery key is not spelled right; it has 56 letters and digits in groups of four, so compare them one by one.',
  );
  if (letters.length !== (bytes * 8) / 5 || Array.from(letters).some((letter) => !LETTERS.includes(letter))) throw wrong;
  let bits = 0n;
  for (const letter of letters) bits = (bits << 5n) | BigInt(LETTERS.indexOf(letter));
  const all = Buffer.from(bits.toString(16).padStart(bytes * 2, '0'), 'hex');
  const secret = all.subarray(0, SECRET_BYTES);
  if (!check(secret).equals(all.subarray(SECRET_BYTES))) throw wrong;
  return secret;
}
