import { describe, expect, test } from 'vitest';
import { BLOCK, DotProducts } from '../../../src/core/meaning/dot-products.ts';
import { decodeVectors, encodeVectors, quantize } from '../../../src/core/meaning/vector-codec.ts';
import { VectorIndex } from '../../../src/core/meaning/vector-index.ts';
import { randomFrom } from '../../support/random.ts';

const draw = randomFrom(19);
const random = (): number => draw(2 ** 30) / 2 ** 30;

function unit(dimensions: number): Float32Array {
  const vector = Float32Array.from({ length: dimensions }, () => random() - 0.5);
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

const dot = (one: Float32Array, other: Float32Array): number => one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);

describe('the encoding of vectors', () => {
  test.each([3, 64, 384, 1024])(
    'changes a cosine of %i numbers by less than 0.01, with one byte for each number',
    (dimensions) => {
      for (let turn = 0; turn < 50; turn += 1) {
        const [one, other] = [unit(dimensions), unit(dimensions)];
        const near = one.map((value, at) => value + (other[at] ?? 0) / 2);
        const encoded = encodeVectors([one, near]);
        expect(encoded).toHaveLength(2 * (dimensions + 4));
        const index = new VectorIndex(new DotProducts(dimensions));
        index.set(1, 1, encoded);
        const cosine = index.cosine(1, quantize(other)) ?? NaN;
        expect(Math.abs(cosine - Math.max(dot(one, other), dot(near, other)))).toBeLessThan(0.012);
      }
    },
  );

  test('accepts a vector of zeros, and no bytes of another length', () => {
    expect(decodeVectors(encodeVectors([new Float32Array(8)]), 8)).toEqual([{ scale: 0, values: new Int8Array(8) }]);
    expect(decodeVectors(new Uint8Array(13), 8)).toEqual([]);
    const index = new VectorIndex(new DotProducts(8));
    index.set(1, 1, new Uint8Array(13));
    expect(index.size).toBe(0);
  });
});

describe('dot products', () => {
  test.each([1, 15, 16, 17, 384, 768, 1024, 4096])('of %i numbers are exact', (dimensions) => {
    const products = new DotProducts(dimensions);
    const bytes = (count: number): Int8Array => Int8Array.from({ length: count }, () => Math.round(random() * 254 - 127));
    for (const count of [1, 2, BLOCK - 1, BLOCK]) {
      const [question, block] = [bytes(dimensions), new Int8Array(BLOCK * products.stride)];
      for (let slot = 0; slot < count; slot += 1) block.set(bytes(dimensions), slot * products.stride);
      products.ask(question);
      const found = products.of(block, count);
      for (let slot = 0; slot < count; slot += 1) {
        const vector = block.subarray(slot * products.stride, slot * products.stride + dimensions);
        expect(found[slot]).toBe(vector.reduce((sum, value, at) => sum + value * (question[at] ?? 0), 0));
      }
    }
    // The largest sum that is possible.
    const most = new Int8Array(dimensions).fill(-127);
    const block = new Int8Array(BLOCK * products.stride);
    block.set(most);
    products.ask(most);
    expect(products.of(block, 1)[0]).toBe(127 * 127 * dimensions);
  });
});

test('a vector with a number that is not finite is similar to nothing', () => {
  for (const broken of [NaN, Infinity, -Infinity]) {
    const index = new VectorIndex(new DotProducts(16));
    index.set(1, 1, encodeVectors([unit(16)]));
    index.set(2, 1, encodeVectors([unit(16).map((value, at) => (at === 3 ? broken : value))]));
    const { rows, background } = index.nearest(quantize(unit(16)), 5);
    expect(rows.find(({ row }) => row === 2)?.cosine).toBe(0);
    expect([background, ...rows.map(({ cosine }) => cosine)].every(Number.isFinite)).toBe(true);
  }
});

describe('the index of vectors (R-MEAN-16)', () => {
  test('finds the same facts as a comparison with each, through all changes', () => {
    const dimensions = 24;
    const index = new VectorIndex(new DotProducts(dimensions));
    const facts = new Map<number, { version: number; windows: readonly Float32Array[] }>();
    const best = (row: number, question: Float32Array): number =>
      Math.max(...(facts.get(row)?.windows ?? []).map((window) => dot(window, question)));
    for (let turn = 0; turn < 3000; turn += 1) {
      const row = Math.floor(random() * 400);
      if (random() < 0.4) {
        index.delete(row);
        facts.delete(row);
      } else {
        const windows = Array.from({ length: random() < 0.6 ? 1 : Math.ceil(random() * 8) }, () => unit(dimensions));
        index.set(row, turn, encodeVectors(windows));
        facts.set(row, { version: turn, windows });
      }
      if (turn % 50 > 0) continue;
      expect(index.size).toBe(facts.size);
      const question = unit(dimensions);
      const { rows: found, background } = index.nearest(quantize(question), 10);
      const wanted = [...facts.keys()].map((key) => best(key, question)).toSorted((one, other) => other - one);
      expect(found).toHaveLength(Math.min(10, facts.size));
      const all = [...facts.values()].flatMap(({ windows }) => windows.map((window) => dot(window, question)));
      // As if there were four more windows with nothing in common with the question.
      expect(Math.abs(background - all.reduce((sum, each) => sum + each, 0) / (all.length + 4))).toBeLessThan(0.01);
      for (const [rank, { row: number, cosine }] of found.entries()) {
        expect(Math.abs(cosine - best(number, question))).toBeLessThan(0.02);
        expect(Math.abs(cosine - (wanted[rank] ?? NaN))).toBeLessThan(0.02);
        expect(index.cosine(number, quantize(question))).toBeCloseTo(cosine, 5);
        expect(index.version(number)).toBe(facts.get(number)?.version);
      }
      const [one, other] = [...facts.keys()];
      if (other === undefined) continue;
      const pairs = facts.get(one!)!.windows.map((window) => best(other, window));
      expect(Math.abs(index.similarity(one!, other)! - Math.max(...pairs))).toBeLessThan(0.02);
    }
    for (const row of facts.keys()) index.delete(row);
    expect(index.nearest(quantize(unit(dimensions)), 10)).toEqual({ rows: [], background: 0 });
    expect(index.bytes).toBeLessThan(10_000);
  });

  test('knows nothing of a fact that it does not contain', () => {
    const index = new VectorIndex(new DotProducts(8));
    index.set(1, 1, encodeVectors([unit(8)]));
    expect([index.cosine(2, quantize(unit(8))), index.similarity(1, 2), index.similarity(2, 1), index.version(2)]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('contains nothing after it was cleared, and can be used again', () => {
    const index = new VectorIndex(new DotProducts(8));
    const { bytes } = index;
    // The indexes of many ended sessions need memory too.
    expect(bytes).toBeGreaterThan(500);
    for (let row = 1; row < 1000; row += 1) index.set(row, 1, encodeVectors([unit(8)]));
    index.clear();
    expect([index.size, index.bytes, index.nearest(quantize(unit(8)), 5).rows]).toEqual([0, bytes, []]);
    index.set(7, 2, encodeVectors([unit(8)]));
    expect(index.nearest(quantize(unit(8)), 5).rows).toMatchObject([{ row: 7 }]);
  });
});
