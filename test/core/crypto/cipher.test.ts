import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  BrokenSeal,
  type EntryContent,
  KeyRing,
  SEGMENT_RECORDS,
  type SealContext,
  SealingKey,
  openEntry,
  sealEntry,
} from '../../../src/core/crypto/cipher.ts';
import { START } from '../../support/clock.ts';
import { anAuthor } from '../../support/store.ts';

const sealing = (byte: number): SealingKey => {
  const key = new SealingKey(Buffer.alloc(32, byte));
  key.openSegment(1);
  return key;
};
const key = sealing(1);
const ring = new KeyRing(key);

const aPlace: SealContext = {
  namespace: { subject: 'me' },
  kind: 'fact',
  keyHash: Buffer.alloc(16, 3),
  category: 'preferences',
  createdAt: START,
  updatedAt: START + 1,
  expiresAt: START + 2,
};
const aBody: EntryContent = { key: 'a key', value: 'a value', tags: ['one', '', 'two'], author: anAuthor };

describe('a seal', () => {
  test('opens in its place, whatever was sealed (R-SEAL-01)', () => {
    const words = fc.string({ unit: 'grapheme', maxLength: 200 });
    const body = fc.record({
      key: words,
      value: words,
      tags: fc.array(words, { maxLength: 32 }),
      author: fc.record(
        { client: words, transport: words, token: words, definedBy: words },
        { requiredKeys: ['client', 'transport', 'token'] },
      ),
    });
    fc.assert(
      fc.property(body, (one) => {
        expect(openEntry(ring, aPlace, sealEntry(key, aPlace, one))).toEqual(one);
      }),
      { numRuns: 2000 },
    );
  });

  test.each<{ what: string; moved: Partial<SealContext> }>([
    { what: 'another subject', moved: { namespace: { subject: 'm' } } },
    { what: 'a session of the subject', moved: { namespace: { subject: 'me', session: 's' } } },
    { what: 'a subject and session that spell the same', moved: { namespace: { subject: 'm', session: 'e' } } },
    { what: 'another kind', moved: { kind: 'audit' } },
    { what: 'the history', moved: { kind: 'history' } },
    { what: 'another key', moved: { keyHash: Buffer.alloc(16, 4) } },
    { what: 'another category', moved: { category: 'preference' } },
    { what: 'an earlier beginning', moved: { createdAt: START - 1 } },
    { what: 'a later change', moved: { updatedAt: START + 2 } },
    { what: 'a later end', moved: { expiresAt: START + 3 } },
    { what: 'an end beyond what can be counted', moved: { expiresAt: 2 ** 62 } },
    { what: 'swapped times', moved: { createdAt: START + 1, updatedAt: START } },
  ])('does not open under $what (R-SEAL-02, R-SEAL-03)', ({ moved }) => {
    expect(() => openEntry(ring, { ...aPlace, ...moved }, sealEntry(key, aPlace, aBody))).toThrow(BrokenSeal);
  });

  test('does not open when any byte of it is changed (R-SEAL-05)', () => {
    const sealed = sealEntry(key, aPlace, aBody);
    for (let at = 0; at < sealed.length; at += 1) {
      for (const flip of [1, 0x80, 0xff]) {
        const changed = Buffer.from(sealed);
        changed[at] = (changed[at] ?? 0) ^ flip;
        expect(() => openEntry(ring, aPlace, changed), `byte ${at}`).toThrow(BrokenSeal);
      }
    }
  });

  test('of an entry that two clients signed opens as nothing else: its format is sealed in (R-DEFINE-03)', () => {
    const body = { ...aBody, author: { ...anAuthor, definedBy: 'codex' } };
    const sealed = sealEntry(key, aPlace, body);
    expect(openEntry(ring, aPlace, sealed)).toEqual(body);
    expect([sealed[0], sealEntry(key, aPlace, aBody)[0]]).toEqual([2, 1]);
    sealed[0] = 1;
    expect(() => openEntry(ring, aPlace, sealed)).toThrow(BrokenSeal);
  });

  test('does not open when it is cut or longer, however short its tag (R-SEAL-05)', () => {
    const sealed = sealEntry(key, aPlace, aBody);
    for (let length = 0; length < sealed.length; length += 1) {
      expect(() => openEntry(ring, aPlace, sealed.subarray(0, length)), `${length} bytes`).toThrow(BrokenSeal);
    }
    expect(() => openEntry(ring, aPlace, Buffer.concat([sealed, Buffer.alloc(1)]))).toThrow(BrokenSeal);
  });

  test('does not open with another key, and does with the one that is being left (R-KEY-09)', () => {
    const other = sealing(2);
    const sealed = sealEntry(key, aPlace, aBody);
    expect(() => openEntry(new KeyRing(other), aPlace, sealed)).toThrow(BrokenSeal);
    expect(openEntry(new KeyRing(other, key), aPlace, sealed)).toEqual(aBody);
  });

  test('is never the same twice (R-SEAL-07)', () => {
    const nonces = new Set<string>();
    const many = sealing(3);
    // More than one page of the nonce pool.
    for (let turn = 0; turn < 5000; turn += 1) nonces.add(sealEntry(many, aPlace, aBody).subarray(9, 21).toString('hex'));
    expect(nonces.size).toBe(5000);
  });
});

describe('a sealing key', () => {
  test('seals no more than a segment holds, and says when it is full (R-SEAL-06)', () => {
    const one = sealing(4);
    for (let record = 0; record < SEGMENT_RECORDS; record += 1) one.nextSegment();
    expect(one.recordsLeft).toBe(0);
    expect(() => one.nextSegment()).toThrow(/No segment/);
    const before = sealEntry(key, aPlace, aBody);
    key.openSegment(2);
    const after = sealEntry(key, aPlace, aBody);
    expect([before.readUInt32BE(5), after.readUInt32BE(5)]).toEqual([1, 2]);
    expect(openEntry(ring, aPlace, before)).toEqual(openEntry(ring, aPlace, after));
  });

  test('derives a key of its own for each segment, and finds each again (R-SEAL-06)', () => {
    const exported = Array.from({ length: 3000 }, (_, segment) => key.segment(segment).export().toString('hex'));
    expect(new Set(exported).size).toBe(3000);
    expect(key.segment(0).export().toString('hex')).toBe(exported[0]);
  });

  test('hashes a key differently for every namespace and every master (R-SEAL-07)', () => {
    const hashes = [
      key.hash({ subject: 'a' }, 'k'),
      key.hash({ subject: 'a' }, 'K'),
      key.hash({ subject: 'b' }, 'k'),
      key.hash({ subject: 'a', session: 'k' }, ''),
      key.hash({ subject: 'a', session: 'b' }, 'k'),
      key.hash({ subject: 'ab' }, 'k'),
      sealing(9).hash({ subject: 'a' }, 'k'),
    ].map((hash) => hash.toString('hex'));
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(key.hash({ subject: 'a' }, 'k').toString('hex')).toBe(hashes[0]);
  });

  test('recognises its proof and no other (R-KEY-07)', () => {
    expect(key.matchesProof(key.proof())).toBe(true);
    expect(key.matchesProof(sealing(2).proof())).toBe(false);
    expect(key.matchesProof(Buffer.alloc(0))).toBe(false);
  });

  test.each([0, 16, 31, 33])('has 32 bytes: %i are refused', (length) => {
    expect(() => new SealingKey(Buffer.alloc(length))).toThrow(RangeError);
  });
});
