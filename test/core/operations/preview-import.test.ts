import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { IMPORT_TEXT, VALUE_BYTES } from '../../../src/contract/limits.ts';
import type { OperationOutput } from '../../../src/contract/operations.ts';
import { CHATGPT, GRAPH, INSTRUCTIONS, NOTE } from '../../support/brought.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';

const linesOf = ({ facts }: OperationOutput<'previewImport'>): string[] =>
  facts.map(({ key, value, category, tags, ttl_seconds }) => JSON.stringify({ key, value, category, tags, ttl_seconds }));
const reasons = ({ left_out: left }: OperationOutput<'previewImport'>) => left.map(({ line, why }) => [line, why]);
const values = ({ facts }: OperationOutput<'previewImport'>) => facts.map(({ value }) => value);

const opened = async (options: Parameters<typeof openTestMemory>[0] = {}) => {
  const memory = await openTestMemory(options);
  return { ...memory, owner: memory.as(theOwner) };
};

describe('a preview', () => {
  test('shows the facts with all their fields, and writes nothing (R-BRING-01)', async () => {
    const { owner } = await opened();
    expect(await owner('previewImport', { text: CHATGPT })).toEqual({
      from: 'chatgpt',
      facts: [
        {
          line: 3,
          key: expect.stringMatching(/^chatgpt\/is-learning-to-play-the-nyckelharpa-[0-9a-f]{8}$/),
          value: 'Is learning to play the nyckelharpa.',
          category: 'user_facts',
          tags: [],
          ttl_seconds: 7_776_000,
        },
        expect.objectContaining({ line: 5 }),
        expect.objectContaining({ line: 8, tags: ['2025-03-14'] }),
      ],
      left_out: [
        { line: 1, text: 'Saved memories', why: 'no_fact', message: 'This is a label on the page, not a fact.' },
        { line: 9, text: 'Manage', why: 'no_fact', message: expect.any(String) },
      ],
    });
    expect((await owner('status', {})).facts).toBe(0);
    expect((await owner('activity', {})).activity).toEqual([]);
  });

  test('uses one category and lifetime for all, and the line numbers of the whole file', async () => {
    const { owner } = await opened();
    const { facts } = await owner('previewImport', { text: GRAPH, category: 'People', ttl_seconds: 3600, first_line: 101 });
    expect(new Set(facts.map(({ category }) => category))).toEqual(new Set(['people']));
    expect(new Set(facts.map(({ ttl_seconds: ttl }) => ttl))).toEqual(new Set([3600]));
    expect(facts.map(({ line }) => line)).toEqual([101, 101, 102, 103]);
    await expect(owner('previewImport', { text: GRAPH, category: 'cache' })).rejects.toMatchObject({
      message: /^category belongs/,
    });
    await expect(owner('previewImport', { text: GRAPH, ttl_seconds: 60 })).rejects.toMatchObject({ message: /^ttl_seconds/ });
  });

  test('is refused to agents, even with memory:write (R-BRING-01)', async () => {
    const { as } = await opened();
    await expect(as(aCaller())('previewImport', { text: CHATGPT })).rejects.toMatchObject({ code: 'insufficient_scope' });
  });

  test('compares with the memory of the caller only', async () => {
    const { owner, as } = await opened();
    const other = as({ ...theOwner, subject: 'somebody-else' });
    await other('remember', { key: 'k', value: 'Is learning to play the nyckelharpa' });
    expect((await owner('previewImport', { text: CHATGPT })).facts).toHaveLength(3);
    expect((await other('previewImport', { text: CHATGPT })).facts).toHaveLength(2);
  });
});

describe('a known entry', () => {
  test('is left out if it is repeated, or stored under any key (R-BRING-04)', async () => {
    const { owner, as } = await opened();
    await as(aCaller())('remember', { key: 'home', value: 'lives on a  houseboat in Aarhus' });
    const preview = await owner('previewImport', { text: `${CHATGPT}Is learning to play\tthe nyckelharpa` });
    expect(values(preview)).toHaveLength(2);
    expect(preview.left_out.filter(({ why }) => why !== 'no_fact')).toEqual([
      { line: 8, text: 'Lives on a houseboat in Aarhus.', why: 'known', message: 'The same text is already stored, as home.' },
      { line: 10, text: 'Is learning to play\tthe nyckelharpa', why: 'repeated', message: 'The same text is already on line 3.' },
    ]);
  });

  test.each([
    ['memory.jsonl', GRAPH],
    ['CLAUDE.md', INSTRUCTIONS],
    ['tide-tables.md', NOTE],
    ['', CHATGPT],
  ])('is not duplicated when the same text is imported again, even in another order: %s (R-BRING-03)', async (name, text) => {
    const { owner } = await opened();
    const first = await owner('previewImport', { text, name });
    const count = first.facts.length;
    expect(await owner('import', { lines: linesOf(first) })).toMatchObject({ created: count, errors: [] });
    const again = await owner('previewImport', { text, name });
    expect(again.facts).toEqual([]);
    expect(again.left_out.filter(({ why }) => why === 'known')).toHaveLength(count);
    // Neither does an import without a preview.
    expect(await owner('import', { lines: linesOf(first).toReversed() })).toMatchObject({ created: 0, unchanged: count });
  });

  test('that was changed since the import is not overwritten (R-BRING-03)', async () => {
    const { owner } = await opened();
    const preview = await owner('previewImport', { text: CHATGPT });
    await owner('import', { lines: linesOf(preview) });
    const [{ key } = { key: '' }] = preview.facts;
    await owner('remember', { key, value: 'Plays the nyckelharpa' });
    const again = await owner('previewImport', { text: CHATGPT });
    expect(again.facts).toEqual([]);
    expect(reasons(again)).toContainEqual([3, 'changed']);
  });
});

describe('an invalid entry is reported, and the others are imported (R-BRING-05)', () => {
  // Assembled here, so that secret scanners do not report this file.
  const secret = ['ghp', 'wYq2Rk9sTz4Lm7Vb1Nx8Hc5Jd3Fg6Pa0Ue2S'].join('_');

  test('a secret, without quoting it', async () => {
    const { owner } = await opened();
    const text = `Likes rain.\nThe deploy token is ${secret}\nLikes snow.`;
    const preview = await owner('previewImport', { text });
    expect(values(preview)).toEqual(['Likes rain.', 'Likes snow.']);
    expect(preview.left_out).toEqual([
      {
        line: 2,
        why: 'secret',
        message: expect.stringMatching(/^(?:key|value) looks like a GitHub token; store it in a password manager/),
      },
    ]);
    expect(JSON.stringify(preview)).not.toMatch(/wYq2Rk/i);
  });

  test('a secret in an entry that cannot become a fact, without quoting it', async () => {
    const { owner } = await opened();
    const preview = await owner('previewImport', { text: `# A\n- b\n<!-- ${secret} -->`, from: 'markdown' });
    expect(preview.left_out).toEqual([{ line: 3, why: 'no_fact', message: expect.any(String) }]);
  });

  test('a secret is imported with a warning, if the owner chose warnings', async () => {
    const { owner } = await opened({ secrets: 'warn' });
    const { facts } = await owner('previewImport', { text: `The deploy token is ${secret}` });
    expect(facts).toMatchObject([{ note: expect.stringMatching(/looks like a GitHub token/) }]);
  });

  test('a text that is too long, or no text', async () => {
    const { owner } = await opened();
    const long = await owner('previewImport', { text: `Likes rain.\n${'ab '.repeat(VALUE_BYTES / 2)}` });
    expect(values(long)).toEqual(['Likes rain.']);
    expect(long.left_out).toMatchObject([{ line: 2, why: 'invalid', message: /^value is longer than 64 KiB/ }]);
    const broken = `{"type":"entity","name":"a","entityType":"b","observations":["\\ud800 half","whole"]}`;
    expect(reasons(await owner('previewImport', { text: broken }))).toEqual([[1, 'invalid']]);
  });
});

describe('a text above the limits is refused with one sentence (R-BRING-06)', () => {
  test.each([
    ['bytes', 'ü'.repeat(IMPORT_TEXT.bytes / 2 + 1), /^text is larger than 512 KiB; split the text/],
    ['entries', 'a\n'.repeat(IMPORT_TEXT.entries + 1), /^It has more than 5000 entries; split it/],
    [
      'entries in one record',
      `{"name":"a","observations":["${Array(IMPORT_TEXT.entries + 1).join('b","')}b"]}`,
      /^It has more than 5000 entries/,
    ],
  ])('%s', async (_what, text, message) => {
    const { owner } = await opened();
    await expect(owner('previewImport', { text })).rejects.toMatchObject({ code: 'invalid_input', message });
  });

  test('a text at the limits is accepted', async () => {
    const { owner } = await opened();
    const text = Array.from({ length: IMPORT_TEXT.entries }, (_, index) => `Fact number ${index}`).join('\n');
    expect((await owner('previewImport', { text })).facts).toHaveLength(IMPORT_TEXT.entries);
  });
});

test('a preview shows nothing if the memory is locked meanwhile (R-LOCK-03)', async () => {
  const { owner, store } = await opened();
  await owner('remember', { key: 'a', value: 'A stored fact.' });
  const text = Array.from({ length: 600 }, (_, index) => `- A stored fact.\n- Fact ${index}.`).join('\n');
  const preview = owner('previewImport', { text, from: 'markdown' });
  preview.catch(() => undefined);
  // The stored facts were read in the first turn; the entries are compared in the following ones.
  await nextTurn();
  store.lock();
  await expect(preview).rejects.toMatchObject({ code: 'key_unavailable' });
});
