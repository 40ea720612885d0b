import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FactIndex } from '../../../src/core/search/fact-index.ts';
import { snippetOf } from '../../../src/core/search/fact-reader.ts';
import { parseQuery, soughtTexts } from '../../../src/core/search/parsed-query.ts';

const filler = 'lorem ipsum dolor sit amet '.repeat(40);

describe('a snippet', () => {
  test('of a short value is the value', () => {
    expect(snippetOf('short', [], 100)).toEqual({ text: 'short', start: 0, end: 5 });
  });

  test('without any match is the start of the value', () => {
    expect(snippetOf(filler, [], 30)).toEqual({ text: 'lorem ipsum dolor sit amet', start: 0, end: 26 });
  });

  test('contains the range with the most different words', () => {
    const value = `${filler}needle ${filler}needle and thread ${filler}`;
    const at = (word: string, from: number): { start: number; end: number } => {
      const start = value.indexOf(word, from);
      return { start, end: start + word.length };
    };
    const spans = [
      { ...at('needle', 0), word: 0 },
      { ...at('needle', filler.length + 7), word: 0 },
      { ...at('thread', 0), word: 1 },
    ];
    const { text } = snippetOf(value, spans, 80);
    expect(text).toContain('needle and thread');
  });

  test('is never too long, never splits a character, and is a part of the value', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', ' ', '🚀', 'é', '\n'), maxLength: 300 }),
        fc.array(fc.tuple(fc.nat(300), fc.integer({ min: 1, max: 20 }), fc.nat(3)), { maxLength: 10 }),
        fc.integer({ min: 2, max: 120 }),
        (value, places, most) => {
          const spans = places
            .map(([start, length, word]) => ({ start, end: start + length, word }))
            .filter(({ end }) => end <= value.length);
          const { text, start, end } = snippetOf(value, spans, most);
          expect(text).toBe(value.slice(start, end));
          expect(text.length).toBeLessThanOrEqual(most);
          expect(text.isWellFormed()).toBe(true);
        },
      ),
    );
  });
});

describe('the pattern of an identifier, which is sought in long values', () => {
  function patternOf(identifier: string): RegExp {
    const index = new FactIndex();
    index.add(1, { key: 'k', category: 'c', tags: [], value: identifier, updatedAt: 1 });
    const query = parseQuery(identifier, index, { words: 128, narrowed: false });
    const [pattern] = soughtTexts(query).filter((sought) => typeof sought !== 'string');
    return pattern ?? /no pattern/;
  }

  test.each(['PROJ-7', 'proj_7', 'proj7'])('matches each spelling of %s', (written) => {
    for (const spelling of ['proj-7', 'proj_7', 'proj7']) expect(spelling).toMatch(patternOf(written));
  });

  test.each(['-', '_'])('has at most 8 parts, so that it cannot slow down a search (R-OPS-14): %s', (separator) => {
    const { source } = patternOf(Array.from({ length: 400 }).fill('0').join(separator));
    const parts = source.split('[-_]?').length;
    expect(parts).toBe(8);
  });

  test('has at most 64 characters, and does not split the last one (R-OPS-14)', () => {
    const { source } = patternOf(`${'a'.repeat(30)}1${'b'.repeat(32)}\u{20000}${'c'.repeat(900)}`);
    expect(`${'a'.repeat(30)}1${'b'.repeat(32)}`).toMatch(new RegExp(`^${source}$`, 'u'));
  });
});
