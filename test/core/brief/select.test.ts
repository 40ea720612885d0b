import { describe, expect, test } from 'vitest';
import { PROMPT_FACTS, selectForPrompt, selectForSession } from '../../../src/core/brief/select.ts';
import type { FindRequest } from '../../../src/core/search/finder.ts';
import { searchByMeaning } from '../../../src/core/search/search-by-meaning.ts';
import { SearchIndex } from '../../../src/core/search/search-index.ts';
import { DAY, START } from '../../support/clock.ts';

interface StoredFact {
  readonly key: string;
  readonly value: string;
  readonly category?: string;
  readonly tags?: readonly string[];
  /** The client that stored the fact. */
  readonly client?: string;
  /** How long ago it was stored. */
  readonly days?: number;
  /** The cosine of the fact and any prompt. */
  readonly cosine?: number | undefined;
}

/** Selects from these facts for the client claude-code. Meanings are compared if a fact has a cosine. */
function select(facts: readonly StoredFact[], project?: string) {
  const index = new SearchIndex();
  for (const [row, { category = 'user_facts', tags = [], client = 'codex', days = 0, key, value }] of facts.entries())
    index.add({ id: row, key, value, category, tags, client, updatedAt: START - days * DAY });
  const comparesMeanings = facts.some(({ cosine }) => cosine !== undefined);
  const nearest = {
    rows: facts.map(({ cosine = 0 }, row) => ({ row, cosine })).toSorted((one, other) => other.cosine - one.cosine),
    cosine: (row: number) => facts[row]?.cosine ?? 0,
    similarity: () => 0,
    background: 0,
    partial: false,
  };
  const find = ({ texts, mode, limit, category, tag }: FindRequest) => {
    const query = { text: texts, limit, ...(category !== undefined && { category }), ...(tag !== undefined && { tag }) };
    return mode === 'both' ? searchByMeaning(index, { ...query, mode, question: '' }, nearest) : index.search(query);
  };
  const deps = {
    finder: { find: (_: unknown, request: FindRequest) => Promise.resolve({ found: find(request), partial: false }) },
    store: { now: () => START },
  };
  const request = { namespace: { subject: 'me' }, client: 'claude-code', project, yieldTurn: () => Promise.resolve() };
  const { signal } = new AbortController();
  return {
    session: async () => (await selectForSession(deps, request)).map(({ key }) => key),
    prompt: async (prompt: string) =>
      (await selectForPrompt(deps, { ...request, prompt, comparesMeanings, signal })).map(({ key }) => key),
  };
}

/** Facts about other matters, so that words and meanings of a fact stand out. */
const others: readonly StoredFact[] = Array.from({ length: 40 }, (_, n) => ({
  key: `note/${n}`,
  value: `Entry ${n} about matter${n} and subject${n}.`,
  client: 'claude-code',
  days: 100,
  cosine: 0.05,
}));
const withoutMeaning = (facts: readonly StoredFact[]): StoredFact[] => facts.map((fact) => ({ ...fact, cosine: undefined }));

describe('the brief for the start of a session (R-BRIEF-20)', () => {
  test('shows first what has several reasons to be shown', async () => {
    const { session } = select(
      [
        { key: 'a/old', value: 'Of another client, long ago.', days: 30 },
        { key: 'a/own', value: 'Of this client, just now.', client: 'claude-code' },
        { key: 'b/recent', value: 'Of another client, now.', days: 0 },
        { key: 'b/earlier', value: 'Of another client, then', days: 6 },
        { key: 'b/project', value: 'A detail of the shop..', tags: ['project:shop'], days: 90, client: 'claude-code' },
        { key: 'conventions/shop', value: 'A rule of shop.', tags: ['project:Shop'], days: 90, client: 'claude-code' },
        { key: 'conventions/other', value: 'A rule of another project.', tags: ['project:other'] },
        { key: 'preferences/x', value: 'A new preference', days: 1 },
      ],
      'Shop',
    );
    expect(await session()).toEqual(['conventions/shop', 'preferences/x', 'b/recent', 'b/project', 'b/earlier']);
  });

  test.each(['preferences', 'convention', 'decisions', 'rules', 'style'])('knows that %s are standing', async (word) => {
    const byKey = { key: `${word}/x`, value: 'v', client: 'claude-code' };
    const byCategory = { key: 'other/x', value: 'v', category: word, client: 'claude-code' };
    const inValue = { key: 'other/y', value: `About ${word}.`, client: 'claude-code' };
    expect((await select([byKey, byCategory, inValue]).session()).toSorted()).toEqual(['other/x', `${word}/x`].toSorted());
  });

  test('shows short facts before long ones that matter as much', async () => {
    const [long, short] = ['long', 'short'].map((key) => ({
      key: `preferences/${key}`,
      value: key === 'long' ? 'word '.repeat(40) : 'word',
      client: 'claude-code',
    })) as [StoredFact, StoredFact];
    expect(
      await select([
        { ...long, days: 0 },
        { ...short, days: 50 },
      ]).session(),
    ).toEqual([short.key, long.key]);
  });

  test('has no fact of a project outside of a folder', async () => {
    expect(await select([{ key: 'preferences/x', value: 'v', tags: ['project:shop'] }]).session()).toEqual([]);
  });
});

const port: StoredFact = {
  key: 'infra/staging-port',
  value: 'The staging API listens on port 8473.',
  client: 'claude-code',
  days: 50,
};

/** Facts of a small memory. */
const few: readonly StoredFact[] = [
  { key: 'staging/port', value: 'Staging of shop listens on 8443.' },
  ...['Commit messages are short.', 'The editor is Helix.', 'Anna leads the design team.', 'Drinks decaf after noon.'].map(
    (value, n) => ({ key: `other/${n}`, value }),
  ),
  ...[
    'We use CSS modules.',
    'The shop uses PostgreSQL 16.',
    'The blog is at blog.example.org.',
    'Payments go through Stripe.',
  ].map((value, n) => ({ key: `more/${n}`, value })),
];

test.each([2, 5, few.length])(
  'a question about a fact in a memory of %i facts is not one about the world (R-BRIEF-21)',
  async (size) => {
    const { prompt } = select(few.slice(0, size));
    expect((await prompt('which port does staging use?'))[0]).toBe('staging/port');
    expect((await prompt('what is the staging port'))[0]).toBe('staging/port');
    expect(await prompt('what is the port of PostgreSQL called in other databases?')).toEqual([]);
    expect(await prompt('which port does HTTPS use?')).toEqual([]);
    expect(await prompt('what is the capital of France?')).toEqual([]);
  },
);

describe('a prompt that needs no memory (R-BRIEF-21)', () => {
  const facts = [...others, { ...port, cosine: 0.28 }, { key: 'home/cat', value: 'The cat is called Pixel.', cosine: 0.28 }];
  test.each([
    'Say the word window in French, one word only',
    'translate "the cat sleeps" into Italian',
    'Übersetze "Die Katze schläft" ins Englische',
    'tell me a joke about a cat',
    'erzähl mir einen Witz',
    'what is 3 plus 4?',
    'convert 10 miles to kilometres',
    'write a haiku about staging',
    'implement bubble sort in Rust',
    'what is an API?',
    'why do cats purr',
    'who wrote Moby Dick',
    'was ist die Hauptstadt von Peru?',
    'fix the typo in line 12',
    'rename this variable to port',
    'remove the unused import',
    'thanks, looks good',
    'ja, weiter',
    'shorten your last answer',
    '',
    '   ',
  ])('is answered with nothing: %j', async (prompt) => {
    expect(await select(facts).prompt(prompt)).toEqual([]);
    expect(await select(withoutMeaning(facts)).prompt(prompt)).toEqual([]);
  });

  test('is answered if its words and its meaning are those of a fact', async () => {
    const near = [...others, { ...port, cosine: 0.7 }];
    expect(await select(near).prompt('what is the port of the staging API')).toEqual([port.key]);
    expect(await select(facts).prompt('what is the port of our staging API again?')).toContain(port.key);
  });
});

describe('a prompt that needs a fact (R-BRIEF-22)', () => {
  test.each(['which port does staging use again?', 'connect to the staging API', 'wie war nochmal unser staging port?'])(
    'is answered: %s',
    async (prompt) => {
      expect((await select([...others, { ...port, cosine: 0.5 }]).prompt(prompt))[0]).toBe(port.key);
      expect((await select(withoutMeaning([...others, port])).prompt(prompt))[0]).toBe(port.key);
    },
  );

  test('is answered without a common word, by its meaning (R-BRIEF-24)', async () => {
    const facts = [...others, { ...port, cosine: 0.45 }];
    expect(await select(facts).prompt('open the test environment in a browser')).toEqual([port.key]);
    expect(await select(withoutMeaning(facts)).prompt('open the test environment in a browser')).toEqual([]);
  });

  test('is answered with no fact that is much less relevant than the first', async () => {
    const facts = Array.from({ length: 12 }, (_, n) => ({ key: `fact/${n}`, value: `Text${n}.`, cosine: 0.7 - n / 20 }));
    const shown = await select([...others, ...facts]).prompt('prepare our release');
    expect(shown.slice(0, 3)).toEqual(['fact/0', 'fact/1', 'fact/2']);
    expect(shown.length).toBeLessThan(facts.length);
    expect(shown.length).toBeGreaterThan(PROMPT_FACTS);
  });

  test('shows the facts of its project first, and those of others only if they are much more relevant', async () => {
    const facts = [
      { key: 'deploy/shop', value: 'Ship with make.', tags: ['project:shop'], cosine: 0.4 },
      { key: 'deploy/blog', value: 'Copy the files.', tags: ['project:blog'], cosine: 0.45 },
      { key: 'deploy/all', value: 'Never on a Friday.', cosine: 0.45 },
    ].map((fact) => ({ ...fact, client: 'claude-code' }));
    const prompt = 'get our new version to the users';
    expect(await select([...others, ...facts], 'shop').prompt(prompt)).toEqual(['deploy/shop', 'deploy/all', 'deploy/blog']);
    const blog = { key: 'deploy/blog', value: 'Copy.', tags: ['project:blog'], cosine: 0.9 };
    expect((await select([...others, ...facts.slice(0, 1), blog], 'shop').prompt(prompt))[0]).toBe('deploy/blog');
    expect(await select([...others, ...facts]).prompt(prompt)).toContain('deploy/blog');
  });
});

test('code in a prompt, and its text after the first 600 characters, do not matter (R-BRIEF-23)', async () => {
  const { prompt } = select(withoutMeaning([...others, port]));
  expect(await prompt(`look at this\n\`\`\`\nstaging port API listens\n\`\`\``)).toEqual([]);
  expect(await prompt(`look at this ${'x '.repeat(300)} staging port API`)).toEqual([]);
  expect(await prompt(`\`\`\`\n${'x '.repeat(300)}\n\`\`\` which staging port do we use`)).toEqual([port.key]);
});
