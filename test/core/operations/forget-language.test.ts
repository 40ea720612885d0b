import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import { DAY } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';

/** Few words, so that scopes often match facts. They differ in case, contain wildcards, or are prefixes of each other. */
const words = ['a', 'A', 'a/', 'a/b', 'a%', 'a_b', '%', '_', '*', 'ab', '\\', 'é', 'a:b', "a'b", 'all'];
const word = fc.constantFrom(...words);
const category = fc.constantFrom('user_facts', 'a', 'ab', 'a_b', 'a-b');
const client = fc.constantFrom('a', 'A', 'codex', 'a b');

const aFact = fc.record({
  key: word,
  category,
  tags: fc.uniqueArray(word, { maxLength: 3 }),
  client,
});
type Fact = typeof aFact extends fc.Arbitrary<infer One> ? One : never;

const spelling = fc.oneof(
  fc.constantFrom('all', 'facts', 'packs', 'pipelines'),
  word.map((name) => `key:${name}`),
  word.map((name) => `prefix:${name}`),
  word.map((name) => `tag:${name}`),
  category.map((name) => `category:${name}`),
  category.map((name) => `category: ${name.toUpperCase()}`),
  fc.oneof(client, word).map((name) => `client:${name}`),
  word.map((name) => `pack:${name}`),
);

/** Independent implementation of the documented rules. */
function isNamed(fact: Fact, spelled: string): boolean {
  if (spelled === 'all' || spelled === 'facts') return true;
  const colon = spelled.indexOf(':');
  const name = spelled.slice(colon + 1);
  switch (spelled.slice(0, colon)) {
    case 'key':
      return fact.key === name;
    case 'prefix':
      return fact.key.startsWith(name);
    case 'tag':
      return fact.tags.includes(name);
    case 'category':
      return fact.category === name.trim().toLowerCase();
    case 'client':
      return fact.client === name;
    default:
      return false;
  }
}

describe('forgetting by name (R-FORGET-01, R-FORGET-02)', () => {
  test('deletes exactly the named entries, reports their number before and after, and leaves all others', async () => {
    const memory = await openTestMemory();
    const other = memory.as(aCaller({ subject: 'other' }));
    for (const key of words) await other('remember', { key, value: 'of another', tags: words.slice(0, 3) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(aFact, { maxLength: 12 }),
        fc.array(spelling, { minLength: 1, maxLength: 3 }),
        async (facts, scopes) => {
          const me = memory.as(aCaller());
          await me('forget', { scope: 'all' });
          const model = new Map<string, Fact>();
          for (const fact of facts) {
            await memory.as(aCaller({ client: fact.client }))('remember', { ...without(fact), value: fact.key });
            const before = model.get(fact.key);
            // Storing an unchanged fact again does not change its author (R-FACT-15).
            const same = before && before.category === fact.category && String(before.tags) === String(fact.tags);
            model.set(fact.key, same ? before : fact);
          }
          for (const spelled of scopes) {
            const matching = [...model.values()].filter((fact) => isNamed(fact, spelled));
            expect(await me('forget', { scope: spelled, dry_run: true })).toMatchObject({
              deleted: matching.length,
              dry_run: true,
            });
            expect(await me('forget', { scope: spelled })).toMatchObject({
              scope: spelled.startsWith('category:') ? spelled.replace(' ', '').toLowerCase() : spelled,
              deleted: matching.length,
              purged: true,
            });
            for (const { key } of matching) model.delete(key);
            const left = (await me('list', { limit: 200 })).facts.map(({ key }) => key);
            expect(left.toSorted()).toEqual([...model.keys()].toSorted());
          }
        },
      ),
      { numRuns: 150 },
    );
    expect((await other('list', {})).facts).toHaveLength(words.length);
  });

  test.each(['', 'key:', 'key: ', 'everything', 'ALL', ' all', 'fact', 'keys:a', 'key', ':', 'category:'])(
    '"%s" is not a scope, and forgets nothing (R-FORGET-03)',
    async (spelled) => {
      const memory = await openTestMemory();
      const me = memory.as(aCaller());
      await me('remember', { key: 'k', value: 'v' });
      await expect(me('forget', { scope: spelled })).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringContaining('category:<name>'),
      });
      await expect(memory.perform(aCaller(), 'forget', {})).rejects.toBeInstanceOf(Failure);
      expect((await me('list', {})).facts).toHaveLength(1);
    },
  );

  const locked = async () => {
    const memory = await openTestMemory();
    await memory.as(aCaller())('remember', { key: 'k', value: 'v', ttl_seconds: (30 * DAY) / 1000 });
    await memory.as(theOwner)('lock', {});
    return memory.as(theOwner);
  };

  test.each(['all', 'facts', 'packs', 'pipelines', 'category:user_facts'])(
    '"%s" works also without the key (R-FORGET-11)',
    async (scope) => {
      const owner = await locked();
      expect(await owner('forget', { scope, dry_run: true })).toMatchObject({ scope });
      expect(await owner('forget', { scope })).toMatchObject({ scope, purged: true });
    },
  );

  test.each(['key:k', 'prefix:k', 'tag:t', 'client:claude-code', 'pack:p', 'pipeline:p'])(
    '"%s" needs the key and says so (R-FORGET-11)',
    async (scope) => {
      const owner = await locked();
      await expect(owner('forget', { scope, dry_run: true })).rejects.toMatchObject({ code: 'key_unavailable' });
      await expect(owner('forget', { scope })).rejects.toMatchObject({ code: 'key_unavailable' });
      await owner('unlock', {});
      expect((await owner('list', {})).facts).toHaveLength(1);
    },
  );
});

const without = ({ client: _client, ...fact }: Fact): Omit<Fact, 'client'> => fact;
