import { describe, expect, test } from 'vitest';
import { sharedWords } from './meaning/shared-words.ts';
import { corpus, languages, paraphrases, questions, superseded, writes } from './meaning/suite.ts';
import { kindsOf } from './relevance/measure.ts';

const facts = new Map(corpus.map((fact) => [fact.key, fact]));
const countHeld = (rows: readonly { readonly held?: true }[]): number => rows.filter(({ held }) => held).length;
const wordless = [...paraphrases, ...languages.filter(({ kind }) => kind.endsWith('paraphrase'))];

/** The fact that answers a question best, which is the first in the file. */
function answerOf({ text, relevant }: (typeof languages)[number]) {
  const fact = facts.get(Object.keys(relevant)[0] ?? '');
  if (!fact) throw new Error(`No fact answers: ${text}`);
  return fact;
}

describe('the sets about meaning', () => {
  test('are large', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(600);
    expect(paraphrases.length).toBeGreaterThanOrEqual(220);
    expect(paraphrases.filter(({ neighbour }) => neighbour !== undefined).length).toBeGreaterThanOrEqual(100);
    expect(superseded.length).toBeGreaterThanOrEqual(200);
    expect(questions.filter(({ answer }) => answer !== undefined).length).toBeGreaterThanOrEqual(120);
    expect(questions.filter(({ answer }) => answer === undefined).length).toBeGreaterThanOrEqual(150);
    expect(writes.filter(({ repeats, contradicts }) => repeats ?? contradicts).length).toBe(150);
    expect(writes).toHaveLength(300);
  });

  test.each(['German', 'Chinese', 'Japanese'])('have 20 paraphrases and 10 other questions in %s', (language) => {
    const count = (kind: string): number => languages.filter((query) => query.kind === kind).length;
    expect(count(`${language} paraphrase`)).toBeGreaterThanOrEqual(20);
    expect(count(`${language} words`)).toBeGreaterThanOrEqual(10);
  });

  test('hold back half of their rows, of every kind of question', () => {
    const sets = [
      paraphrases,
      superseded,
      questions,
      writes,
      ...kindsOf(languages).map((kind) => languages.filter((query) => query.kind === kind)),
    ];
    for (const rows of sets) expect(Math.abs(countHeld(rows) - rows.length / 2)).toBeLessThanOrEqual(1);
  });

  test('give every fact a key of its own', () => {
    const keys = [...corpus, ...superseded.map(({ newer }) => newer), ...writes.map(({ fact }) => fact)].map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test('refer only to facts of the corpus', () => {
    const keys = [
      ...[...paraphrases, ...languages].flatMap(({ relevant }) => Object.keys(relevant)),
      ...paraphrases.flatMap(({ neighbour }) => neighbour ?? []),
      ...questions.flatMap(({ answer }) => answer ?? []),
      ...writes.flatMap(({ repeats, contradicts }) => [...(repeats ?? []), ...(contradicts ?? [])]),
    ];
    for (const key of keys) expect([...facts.keys()]).toContain(key);
  });

  test('ask about a superseded pair so that the newer fact was written later', () => {
    for (const { older, newer } of superseded) expect(newer.updatedAt).toBeGreaterThan(older.updatedAt);
  });
});

test('a shared word is found in any form and in every field of a fact', () => {
  const fact = { key: 'office/badges', category: 'work', tags: ['renewal'], value: 'The guard opens the gate' };
  expect(sharedWords('who renews my badge, and which guards opened the gates?', fact)).toEqual([
    'renews',
    'badge',
    'guards',
    'opened',
    'gates',
  ]);
  expect(sharedWords('how do I get in at night?', fact)).toEqual([]);
});

test('a paraphrase shares no content word with its fact', () => {
  const offences = wordless.map((query) => ({ text: query.text, shared: sharedWords(query.text, answerOf(query)) }));
  expect(offences.filter(({ shared }) => shared.length > 0)).toEqual([]);
});
