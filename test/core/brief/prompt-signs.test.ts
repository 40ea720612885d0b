import { describe, expect, test } from 'vitest';
import { associatedWords } from '../../../src/core/brief/associations.ts';
import { signsOf } from '../../../src/core/brief/prompt-signs.ts';

describe('signs of a prompt (R-BRIEF-21)', () => {
  test.each([
    ['translate "the cat sleeps" into Italian', { needless: 1 }],
    ['Say the word window in French, one word only', { needless: 2, order: false }],
    ['tell me a joke', { needless: 1 }],
    ['schreib ein Gedicht', { needless: 1 }],
    ['what is 3 plus 4?', { needless: 1, general: true }],
    ['implement bubble sort', { needless: 1, order: true }],
    ['fix the typo in line 12', { needless: 1 }],
    ['Correct the grammar: he go to school', { needless: 1 }],
    ['rename i to index', { needless: 1, personal: false }],
    ['thanks, looks good', { needless: 1 }],
    ['why is the sky blue', { needless: 0, general: true }],
    ['explain gravity', { needless: 0, general: true }],
    ['how do I reverse an array', { general: true, personal: false }],
    ['which port does staging use again?', { needless: 0, general: false, personal: true }],
    ['what is our brand colour?', { needless: 0, general: false, personal: true }],
    ['wann hat mein Bruder Geburtstag?', { needless: 0, general: false, personal: true }],
    ['deploy the fix to production', { needless: 0, general: false, personal: false, order: true }],
    ['could you book a hotel in Hamburg', { order: true }],
    ['buche mir bitte ein Zimmer', { order: true, personal: true }],
    ['write "my house is your house" in capitals', { personal: false }],
    ['the tooltip is cut off', { needless: 0, general: false, personal: false, order: false }],
  ])('%s', (prompt, signs) => {
    expect(signsOf(prompt)).toMatchObject(signs);
  });

  test('are read in a time that grows at most linearly with the prompt', () => {
    const timeOf = (length: number): number => {
      const prompts = ['rename ', 'in ', 'what ', 'this: ', '"', 'a, '].map((part) => part.repeat(length / part.length));
      const start = performance.now();
      for (const prompt of prompts) signsOf(prompt);
      return performance.now() - start;
    };
    timeOf(600);
    expect(timeOf(60_000)).toBeLessThan(2000);
  });
});

describe('words of the same matter', () => {
  test.each([
    ['suggest a recipe for tonight', ['allergy', 'vegetarian', 'dinner']],
    ['book the 8:14 to Munich', ['train', 'seat']],
    ['get this live', ['deploy', 'production']],
    ['wann hat Mama Geburtstag?', ['mother', 'birthday', 'mutter']],
    ['open a PR', ['pull', 'request', 'review']],
  ])('of "%s"', (prompt, words) => {
    expect(associatedWords(prompt)).toEqual(expect.arrayContaining(words));
  });

  test.each(['the sky is blue', 'what is this', ''])('of "%s" are none', (prompt) => {
    expect(associatedWords(prompt)).toEqual([]);
  });

  test('do not repeat the words of the prompt in any form', () => {
    const words = associatedWords('deploying the releases');
    expect(words).toContain('ship');
    for (const own of ['deploy', 'deployed', 'release', 'releases']) expect(words).not.toContain(own);
  });
});
