import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  BrokenSeal,
  type EntryContent,
  isNumbered,
  isOfSupersededFact,
  isSupersededFact,
  KeyRing,
  SEGMENT_RECORDS,
  SUPERSEDED_FACT_FORMATS,
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

const aContext: SealContext = {
  namespace: { subject: 'me' },
  kind: 'fact',
  keyHash: Buffer.alloc(16, 3),
  category: 'preferences',
  createdAt: START,
  updatedAt: START + 1,
  expiresAt: START + 2,
};
const content: EntryContent = { key: 'a key', value: 'a value', tags: ['one', '', 'two'], author: anAuthor };

describe('a seal', () => {
  test('opens entries of several namespaces, kinds and categories in turn (R-SEAL-01)', () => {
    const namespaces = [{ subject: 'me' }, { subject: 'me', session: 's' }, { subject: 'ü'.repeat(100) }];
    const categories = ['', 'ü', 'c'.repeat(127), 'c'.repeat(128), 'ü'.repeat(1000), 'c'.repeat(20_000)];
    const contexts = namespaces.flatMap((namespace) =>
      (['fact', 'history'] as const).flatMap((kind) =>
        categories.map((category) => ({ ...aContext, namespace, kind, category })),
      ),
    );
    const sealed = contexts.map((context) => sealEntry(key, context, content));
    for (const [index, context] of contexts.entries()) {
      const bytes = sealed[index] ?? Buffer.alloc(0);
      expect(openEntry(ring, context, bytes)).toEqual(content);
      const other = contexts[(index + 1) % contexts.length] ?? aContext;
      expect(() => openEntry(ring, other, bytes)).toThrow(BrokenSeal);
    }
  });

  test('opens any content with the columns it was sealed with (R-SEAL-01)', () => {
    const words = fc.string({ unit: 'grapheme', maxLength: 200 });
    const body = fc.record({
      key: words,
      value: words,
      tags: fc.array(words, { maxLength: 32 }),
      author: fc.record(
        { client: words, origin: words, token: words, definedBy: words },
        { requiredKeys: ['client', 'origin', 'token'] },
      ),
    });
    fc.assert(
      fc.property(body, (one) => {
        expect(openEntry(ring, aContext, sealEntry(key, aContext, one))).toEqual(one);
      }),
      { numRuns: 2000 },
    );
  });

  test.each<{ what: string; changed: Partial<SealContext> }>([
    { what: 'another subject', changed: { namespace: { subject: 'm' } } },
    { what: 'a session of the subject', changed: { namespace: { subject: 'me', session: 's' } } },
    { what: 'a subject and session with the same characters in total', changed: { namespace: { subject: 'm', session: 'e' } } },
    { what: 'another kind', changed: { kind: 'audit' } },
    { what: 'the kind of versions', changed: { kind: 'history' } },
    { what: 'another key', changed: { keyHash: Buffer.alloc(16, 4) } },
    { what: 'another category', changed: { category: 'preference' } },
    { what: 'an earlier creation time', changed: { createdAt: START - 1 } },
    { what: 'a later update time', changed: { updatedAt: START + 2 } },
    { what: 'a later expiry', changed: { expiresAt: START + 3 } },
    { what: 'an expiry that a number cannot hold exactly', changed: { expiresAt: 2 ** 62 } },
    { what: 'swapped times', changed: { createdAt: START + 1, updatedAt: START } },
  ])('does not open with $what (R-SEAL-02, R-SEAL-03)', ({ changed }) => {
    expect(() => openEntry(ring, { ...aContext, ...changed }, sealEntry(key, aContext, content))).toThrow(BrokenSeal);
  });

  test('does not open when any byte of it is changed (R-SEAL-05)', () => {
    const sealed = sealEntry(key, aContext, content);
    for (let at = 0; at < sealed.length; at += 1) {
      for (const flip of [1, 0x80, 0xff]) {
        const changed = Buffer.from(sealed);
        changed[at] = (changed[at] ?? 0) ^ flip;
        expect(() => openEntry(ring, aContext, changed), `byte ${at}`).toThrow(BrokenSeal);
      }
    }
  });

  test('of an entry that two clients signed has its own format, which is authenticated (R-DEFINE-03)', () => {
    const body = { ...content, author: { ...anAuthor, definedBy: 'codex' } };
    const sealed = sealEntry(key, aContext, body);
    expect(openEntry(ring, aContext, sealed)).toEqual(body);
    expect([sealed[0], sealEntry(key, aContext, content)[0]]).toEqual([2, 1]);
    sealed[0] = 1;
    expect(() => openEntry(ring, aContext, sealed)).toThrow(BrokenSeal);
  });

  test('of a superseded version has a mark that can be read without the key, and is authenticated (R-MEAN-30)', () => {
    const until = START + 5;
    const marks = [
      { formerKeys: [{ key: 'old', until }], isFact: false },
      { formerKeys: [{ key: 'old', until, row: 7 }], isFact: true },
      {
        formerKeys: [
          { key: 'old', until },
          { key: 'older', until: START, row: 3 },
        ],
        isFact: true,
      },
    ];
    const authors = [anAuthor, { ...anAuthor, definedBy: 'other' }];
    for (const { formerKeys, isFact } of marks) {
      for (const author of authors) {
        for (const number of [undefined, 12]) {
          const version: EntryContent = { ...content, author, formerKeys };
          const sealed = sealEntry(key, aContext, version, number);
          expect(openEntry(ring, aContext, sealed, () => author)).toEqual(version);
          expect([isOfSupersededFact(sealed), isSupersededFact(sealed)]).toEqual([true, isFact]);
          expect(SUPERSEDED_FACT_FORMATS.includes(sealed[0] ?? 0)).toBe(isFact);
          expect(isNumbered(sealed)).toBe(number !== undefined);
          for (let bit = 0; bit < 8; bit += 1) {
            const changed = Buffer.from(sealed);
            changed[0] = (changed[0] ?? 0) ^ (1 << bit);
            expect(() => openEntry(ring, aContext, changed, () => author)).toThrow(BrokenSeal);
          }
        }
      }
    }
    const sealed = sealEntry(key, aContext, content);
    expect([isOfSupersededFact(sealed), isSupersededFact(sealed)]).toEqual([false, false]);
  });

  test('does not open when truncated, even within its tag, or extended (R-SEAL-05)', () => {
    const sealed = sealEntry(key, aContext, content);
    for (let length = 0; length < sealed.length; length += 1) {
      expect(() => openEntry(ring, aContext, sealed.subarray(0, length)), `${length} bytes`).toThrow(BrokenSeal);
    }
    expect(() => openEntry(ring, aContext, Buffer.concat([sealed, Buffer.alloc(1)]))).toThrow(BrokenSeal);
  });

  test('opens with the retiring key of a rotation, but not with an unrelated key (R-KEY-09)', () => {
    const other = sealing(2);
    const sealed = sealEntry(key, aContext, content);
    expect(() => openEntry(new KeyRing(other), aContext, sealed)).toThrow(BrokenSeal);
    expect(openEntry(new KeyRing(other, key), aContext, sealed)).toEqual(content);
  });

  test('has a different nonce each time (R-SEAL-07)', () => {
    const nonces = new Set<string>();
    const many = sealing(3);
    // More nonces than one pool holds.
    for (let turn = 0; turn < 5000; turn += 1) nonces.add(sealEntry(many, aContext, content).subarray(9, 21).toString('hex'));
    expect(nonces.size).toBe(5000);
  });
});

describe('a sealing key', () => {
  test('seals no more records than a segment allows, and reports a full segment (R-SEAL-06)', () => {
    const one = sealing(4);
    for (let record = 0; record < SEGMENT_RECORDS; record += 1) one.nextSegment();
    expect(one.recordsLeft).toBe(0);
    expect(() => one.nextSegment()).toThrow(/No segment/);
    const before = sealEntry(key, aContext, content);
    key.openSegment(2);
    const after = sealEntry(key, aContext, content);
    expect([before.readUInt32BE(5), after.readUInt32BE(5)]).toEqual([1, 2]);
    expect(openEntry(ring, aContext, before)).toEqual(openEntry(ring, aContext, after));
  });

  test('derives a different key for each segment, and always the same key for one segment (R-SEAL-06)', () => {
    const exported = Array.from({ length: 3000 }, (_, segment) => key.segment(segment).export().toString('hex'));
    expect(new Set(exported).size).toBe(3000);
    expect(key.segment(0).export().toString('hex')).toBe(exported[0]);
  });

  test('hashes a key differently for each namespace and each master key (R-SEAL-07)', () => {
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

  test('matches its own proof only (R-KEY-07)', () => {
    expect(key.matchesProof(key.proof())).toBe(true);
    expect(key.matchesProof(sealing(2).proof())).toBe(false);
    expect(key.matchesProof(Buffer.alloc(0))).toBe(false);
  });

  test.each([0, 16, 31, 33])('must have 32 bytes: %i are refused', (length) => {
    expect(() => new SealingKey(Buffer.alloc(length))).toThrow(RangeError);
  });
});
