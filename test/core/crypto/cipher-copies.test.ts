import type * as Crypto from 'node:crypto';
import { createDecipheriv } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { KeyRing, SealingKey, openEntry, sealEntry } from '../../../src/core/crypto/cipher.ts';

// Two copies of a machine that was copied while the program ran hold the same state of the random generator.
vi.mock('node:crypto', async (original) => ({
  ...(await original<typeof Crypto>()),
  randomFillSync: (bytes: Buffer) => bytes.fill(7),
}));

const NONCE_AT = 9;
const BODY_AT = 21;

const opened = (): SealingKey => {
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
const body = (value: string) => ({ key: 'k', value, tags: [], author: { client: 'a', transport: 'b', token: 'c' } });
const nonceOf = (sealed: Buffer): string => sealed.subarray(NONCE_AT, BODY_AT).toString('hex');

test('two copies of a running machine share no nonce for different texts or places (R-SEAL-06)', () => {
  const key = opened();
  const nonces = [
    sealEntry(key, place(), body('one')),
    sealEntry(key, place(), body('two')),
    sealEntry(key, place(2), body('one')),
    // The same bytes, cut elsewhere.
    sealEntry(key, { ...place(), category: 'cc' }, body('one')),
  ].map(nonceOf);
  expect(new Set(nonces).size).toBe(nonces.length);
  expect(nonceOf(sealEntry(key, place(), body('one')))).toBe(nonces[0]);
});

test('so what one of them seals opens nothing that the other sealed (R-SEAL-06)', () => {
  const [one, other] = [opened(), opened()];
  const known = sealEntry(one, place(), body('a text that an attacker knows'));
  const secret = sealEntry(other, place(2), body('a text that nobody may read!!'));
  const decipher = createDecipheriv('aes-256-gcm', one.segment(1), known.subarray(NONCE_AT, BODY_AT));
  const stream = decipher.update(Buffer.alloc(known.length - BODY_AT));
  const guessed = Buffer.from(secret.subarray(BODY_AT).map((byte, at) => byte ^ (stream[at] ?? 0)));
  expect(guessed.includes('a text that nobody may read!!')).toBe(false);
  expect(openEntry(new KeyRing(other), place(2), secret).value).toBe('a text that nobody may read!!');
});
