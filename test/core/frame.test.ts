import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { frame, textsOf, unframe } from '../../src/core/frame.ts';

const field = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  // Lengths around which their spelling changes.
  fc.constantFrom(0, 1, 126, 127, 128, 129, 16_383, 16_384, 16_385, 70_000).map((length) => Buffer.alloc(length, 7)),
);

describe('frames (R-SEAL-02)', () => {
  test('what was framed comes back, field by field', () => {
    fc.assert(
      fc.property(fc.array(field, { maxLength: 8 }), (fields) => {
        expect(unframe(frame(fields)).map((one) => one.toString('hex'))).toEqual(fields.map((one) => one.toString('hex')));
      }),
      { numRuns: 2000 },
    );
  });

  test('texts come back too, the first so many, from among other bytes', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('', 'a'.repeat(127), 'ü'.repeat(70), 'x'.repeat(20_000)),
    );
    fc.assert(
      fc.property(fc.array(text, { maxLength: 6 }), fc.nat(7), (texts, most) => {
        const framed = frame(texts);
        const among = Buffer.concat([Buffer.alloc(3, 0xff), framed, Buffer.alloc(3, 0xff)]);
        expect(textsOf(among, 3, 3 + framed.length, most)).toEqual(texts.slice(0, most));
      }),
    );
  });

  test('texts are not read beyond the end that was given', () => {
    expect(() => textsOf(frame(['abc', 'def']), 0, 7, Infinity)).toThrow(RangeError);
  });

  test('no two lists of fields give the same bytes', () => {
    const short = fc.array(
      fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(short, short, (one, other) => {
        const same = one.length === other.length && one.every((bytes, index) => bytes.equals(other[index] ?? Buffer.alloc(0)));
        expect(frame(one).equals(frame(other))).toBe(same);
      }),
      { numRuns: 20_000 },
    );
  });

  test('text is framed as its UTF-8', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), (texts) => {
        expect(frame(texts).equals(frame(texts.map((text) => Buffer.from(text))))).toBe(true);
      }),
    );
  });

  test.each([
    { what: 'a field that is cut short', bytes: Buffer.from([3, 1, 2]) },
    { what: 'a length that is cut short', bytes: Buffer.from([0x80]) },
    { what: 'a long length that is cut short', bytes: Buffer.from([0xc0, 0, 0]) },
  ])('$what is refused', ({ bytes }) => {
    expect(() => unframe(bytes)).toThrow(RangeError);
  });
});
