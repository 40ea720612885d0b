import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { snippetOf } from '../../../src/core/search/fact-reader.ts';

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
