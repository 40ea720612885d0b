import type * as Crypto from 'node:crypto';
import { createDecipheriv } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { KeyRing, SealingKey, openEntry, sealEntry } from '../../../src/core/crypto/cipher.ts';

// Two copies of a running virtual machine have the same random generator state.
vi.mock('node:crypto', async (original) => ({
  ...(await original<typeof Crypto>()),
  randomFillSync: (bytes: Buffer) => bytes.fill(7),
}));

const NONCE_OFFSET = 9;
const CIPHERTEXT_OFFSET = 21;

const keyWithSegment = (): SealingKey => {
  const key = new SealingKey(Buffer.alloc(32, 1));
  key.openSegment(1);
  return key;
};
const place = (updatedAt = 1) => ({
  namespace: { subject: 'me' },
  kind: 'fact' as const,
  keyHash: Buffer.alloc(16, 2),
  category: 'c',
  createdAt: 1,
  updatedAt,
  expiresAt: 2,
});
const body = (value: string) => ({ key: 'k', value, tags: [], author: { client: 'a', origin: 'b', token: 'c' } });
const nonceOf = (sealed: Buffer): string => sealed.subarray(NONCE_OFFSET, CIPHERTEXT_OFFSET).toString('hex');

test('two copies of a running machine use different nonces for different texts or columns (R-SEAL-06)', () => {
  const key = keyWithSegment();
  const nonces = [
    sealEntry(key, place(), body('one')),
    sealEntry(key, place(), body('two')),
    sealEntry(key, place(2), body('one')),
    // Only the category differs.
    sealEntry(key, { ...place(), category: 'cc' }, body('one')),
  ].map(nonceOf);
  expect(new Set(nonces).size).toBe(nonces.length);
  expect(nonceOf(sealEntry(key, place(), body('one')))).toBe(nonces[0]);
});

test('an entry sealed by one copy does not reveal an entry sealed by the other (R-SEAL-06)', () => {
  const [one, other] = [keyWithSegment(), keyWithSegment()];
  const known = sealEntry(one, place(), body('a text that an attacker knows'));
  const secret = sealEntry(other, place(2), body('a text that must stay secret!'));
  const decipher = createDecipheriv('aes-256-gcm', one.segment(1), known.subarray(NONCE_OFFSET, CIPHERTEXT_OFFSET));
  const stream = decipher.update(Buffer.alloc(known.length - CIPHERTEXT_OFFSET));
  const guessed = Buffer.from(secret.subarray(CIPHERTEXT_OFFSET).map((byte, at) => byte ^ (stream[at] ?? 0)));
  expect(guessed.includes('a text that must stay secret!')).toBe(false);
  expect(openEntry(new KeyRing(other), place(2), secret).value).toBe('a text that must stay secret!');
});
