import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeFrame, decodeFrame } from '../../../src/core/crypto/cipher.ts';

const field = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }).filter((text) => text.isWellFormed()),
  // Lengths at which the size of the length prefix changes.
  fc.constantFrom(0, 1, 126, 127, 128, 129, 16_383, 16_384, 16_385, 70_000).map((length) => 'x'.repeat(length)),
);

const texts = (bytes: Buffer): string[] => decodeFrame(bytes, 0, bytes.length, Infinity);

describe('frames (R-SEAL-02)', () => {
  test('decoding returns the encoded fields', () => {
    fc.assert(
      fc.property(fc.array(field, { maxLength: 8 }), (fields) => {
        expect(texts(encodeFrame(fields))).toEqual(fields);
      }),
      { numRuns: 2000 },
    );
  });

  test('decoding returns at most the requested number of fields, from a range of a larger buffer', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('', 'a'.repeat(127), 'ü'.repeat(70), 'x'.repeat(20_000)),
    );
    fc.assert(
      fc.property(fc.array(text, { maxLength: 6 }), fc.nat(7), (fields, most) => {
        const framed = encodeFrame(fields);
        const among = Buffer.concat([Buffer.alloc(3, 0xff), framed, Buffer.alloc(3, 0xff)]);
        expect(decodeFrame(among, 3, 3 + framed.length, most)).toEqual(fields.slice(0, most));
      }),
    );
  });

  test('a field that extends past the given end is refused', () => {
    expect(() => decodeFrame(encodeFrame(['abc', 'def']), 0, 7, Infinity)).toThrow(RangeError);
  });

  test('different lists of fields have different encodings', () => {
    const short = fc.array(
      fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(short, short, (one, other) => {
        const same = one.length === other.length && one.every((bytes, index) => bytes.equals(other[index] ?? Buffer.alloc(0)));
        expect(encodeFrame(one).equals(encodeFrame(other))).toBe(same);
      }),
      { numRuns: 20_000 },
    );
  });

  test('text is encoded as UTF-8', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), (fields) => {
        expect(encodeFrame(fields).equals(encodeFrame(fields.map((text) => Buffer.from(text))))).toBe(true);
      }),
    );
  });

  test.each([
    { what: 'a truncated field', bytes: Buffer.from([3, 1, 2]) },
    { what: 'a truncated length', bytes: Buffer.from([0x80]) },
    { what: 'a truncated long length', bytes: Buffer.from([0xc0, 0, 0]) },
  ])('$what is refused', ({ bytes }) => {
    expect(() => texts(bytes)).toThrow(RangeError);
  });
});
