import { describe, expect, test } from 'vitest';
import { windowsOf } from '../../../src/core/meaning/windows.ts';

const fact = (value: string, key = 'household/boiler', category = 'user_facts') => windowsOf({ key, category, value });
const joined = (windows: readonly string[], prefix: string): string => windows.map((text) => text.slice(prefix.length)).join(' ');

describe('the windows of a fact (R-MEAN-14)', () => {
  test('a short fact has one, which begins with the words of its key', () => {
    expect(fact('The combi is in the airing cupboard.')).toEqual(['household boiler: The combi is in the airing cupboard.']);
    expect(fact('x', 'a_b.c:d-e')).toEqual(['a b c d e: x']);
  });

  test('a category that was chosen comes first, unless the key contains its words', () => {
    expect(fact('x', 'boiler', 'household')).toEqual(['household boiler: x']);
    expect(fact('x', 'Household/boiler', 'household')).toEqual(['Household boiler: x']);
    expect(fact('x', 'office/door', 'access_codes')).toEqual(['access codes office door: x']);
    expect(fact('x', 'boiler', 'user_facts')).toEqual(['boiler: x']);
  });

  test('a long fact has several, which end after sentences and contain all of its words', () => {
    const sentences = Array.from({ length: 40 }, (_, index) => `Sentence number ${index} says something about topic ${index}.`);
    const windows = fact(sentences.join(' '));
    expect(windows.length).toBeGreaterThan(3);
    expect(windows.length).toBeLessThan(8);
    for (const window of windows) expect(window).toMatch(/^household boiler: Sentence .*\.$/);
    expect(joined(windows, 'household boiler: ')).toBe(sentences.join(' '));
  });

  test('words are not split where the text has spaces, and no character is split anywhere', () => {
    const words = Array.from({ length: 300 }, (_, index) => `word${index}`).join(' ');
    expect(joined(fact(words), 'household boiler: ')).toBe(words);
    const faces = '😀'.repeat(500);
    for (const window of fact(faces)) expect(window).toMatch(/^household boiler: (😀)+$/u);
    expect(fact('記憶'.repeat(100)).join('').replaceAll('household boiler: ', '')).toBe('記憶'.repeat(100));
  });

  test('there are at most eight, however long the value is', () => {
    const start = performance.now();
    expect(fact('some words '.repeat(6000))).toHaveLength(8);
    expect(fact('x'.repeat(64_000))).toHaveLength(8);
    expect(performance.now() - start).toBeLessThan(1000);
  });

  test('a value of spaces has one, and a long key is shortened', () => {
    expect(fact(' \n ')).toEqual(['household boiler: ']);
    expect(fact('x', 'k'.repeat(250))[0]?.length).toBeLessThan(200);
  });
});
