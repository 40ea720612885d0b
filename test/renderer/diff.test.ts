import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffWords } from '../../src/renderer/src/facts/diff.ts';
import { measureCpu } from '../support/work.ts';

const spelled = (before: string, after: string): string =>
  diffWords(before, after)
    .map(({ change, text }) => (change === 'same' ? text : change === 'added' ? `+[${text}]` : `-[${text}]`))
    .join('');

describe('the difference of two texts', () => {
  test.each([
    ['a replaced word', 'the old way', 'the new way', 'the -[old]+[new] way'],
    ['an added word', 'one three', 'one two three', 'one +[two ]three'],
    ['a removed word', 'one two three', 'one three', 'one -[two ]three'],
    ['no change', 'same', 'same', 'same'],
    ['a replaced text', 'one', 'two', '-[one]+[two]'],
    ['a new beginning and end', 'b c', 'a b c d', '+[a ]b c+[ d]'],
    ['a text that was empty', '', 'a b', '+[a b]'],
    ['changed whitespace', 'a b\n c', 'a b\nc', 'a b-[\n ]+[\n]c'],
    [
      'a replaced sentence as one change',
      'Vue, because the old code uses it.',
      'React over Vue (a constraint).',
      '-[Vue, because the old code uses it.]+[React over Vue (a constraint).]',
    ],
    [
      'shared words, and whitespace between changes as changed',
      'we ship on monday',
      'they ship it on friday',
      '-[we]+[they] ship +[it ]on -[monday]+[friday]',
    ],
    ['a repeated word', 'a a a', 'a a', 'a a-[ a]'],
  ])('shows %s', (_why, before, after, wanted) => {
    expect(spelled(before, after)).toBe(wanted);
  });

  test('contains both texts completely', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c', ' ', '  ', '\n', 'é'), { maxLength: 60 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, text, (before, after) => {
        const pieces = diffWords(before, after);
        const without = (change: string) =>
          pieces
            .filter((piece) => piece.change !== change)
            .map((piece) => piece.text)
            .join('');
        expect([without('added'), without('removed')]).toEqual([before, after]);
      }),
    );
  });

  test('finds shared words in texts that differ much', () => {
    const same = (before: string, after: string) => diffWords(before, after).filter(({ change }) => change === 'same');
    expect(same('x x a y b z c', 'a q b r c').map(({ text }) => text.trim())).toEqual(['a', 'b', 'c']);
  });

  test('is fast for the largest values', () => {
    const words = (seed: number) => Array.from({ length: 13_000 }, (_, index) => `w${(index * seed) % 9973}`).join(' ');
    const work = measureCpu(() => {
      diffWords(words(7), words(11));
      diffWords(`${words(7)} end`, `${words(7)} other end`);
    });
    expect(work).toBeLessThan(1500);
  });
});
