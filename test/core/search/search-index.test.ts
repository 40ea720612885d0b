import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { FactId, SearchableFact } from '../../../src/core/search/fact-index.ts';
import { type Hit, SearchIndex } from '../../../src/core/search/search-index.ts';
import { measureCpu } from '../../support/work.ts';

let index: SearchIndex;

beforeEach(() => {
  index = new SearchIndex();
});

/** A fact with a meaningless key, so that only its value is found. */
function addFact(id: FactId, value: string, more: Partial<SearchableFact> = {}): void {
  index.add({ id, key: `k${String(id)}`, category: 'user_facts', tags: [], value, updatedAt: 0, ...more });
}

const find = (text: string | readonly string[], limit = 10): Hit[] => index.search({ text, limit });
const ids = (text: string | readonly string[]): FactId[] => find(text).map(({ id }) => id);

describe('the default category (R-SEEK-08)', () => {
  beforeEach(() => {
    for (const [id, value] of [
      ['editor', 'Writes with Helix'],
      ['tea', 'Drinks Assam'],
      ['pet', 'Has a cat'],
    ] as const) {
      index.add({ id, key: id, category: 'user_facts', tags: [], value, updatedAt: 0 });
    }
  });

  test.each(['what editor do I use', 'which editor is used by the user', 'facts about my editor'])(
    'is no evidence: "%s" finds one fact',
    (text) => {
      const hits = find(text);
      expect(hits.map(({ id }) => id)).toEqual(['editor']);
      expect(hits[0]?.why).toBe('"editor" in key');
    },
  );

  test.each(['user', 'facts', 'user_facts', 'use'])('is not found by its name: %s', (text) => {
    expect(find(text)).toEqual([]);
  });

  test('still filters, and any other category is found by its words', () => {
    index.add({ id: 'ship', key: 'a', category: 'deploy_targets', tags: [], value: 'Fridays', updatedAt: 0 });
    expect(ids('deploy targets')).toEqual(['ship']);
    expect(index.search({ text: 'cat', category: 'user_facts', limit: 5 }).map(({ id }) => id)).toEqual(['pet']);
    expect(index.search({ text: '', category: 'user_facts', limit: 5 })).toHaveLength(3);
  });
});

describe('a fact is found', () => {
  test.each([
    { asked: 'which framework for the front end?', value: 'React is the framework', as: 'any word of a question' },
    { asked: 'deploying', value: 'We deploy on Tuesdays', as: 'a form of a word' },
    { asked: 'cafe', value: 'Meets at Café Hahn', as: 'a word without its accent' },
    { asked: 'STRASSE', value: 'Mainzer Straße 14', as: 'a word in capitals' },
    { asked: 'useCart', value: 'calls use_cart() twice', as: 'a name in another case' },
    { asked: 'usecart', value: 'calls useCart() twice', as: 'a name written together' },
    { asked: 'cart', value: 'calls useCart() twice', as: 'a part of a name' },
    { asked: 'data base', value: 'The database is SQLite', as: 'two words written as one' },
    { asked: '2.18', value: 'runs api 2.18.0', as: 'the beginning of a version' },
    { asked: 'store.ts', value: 'see src/core/store/store.ts', as: 'the end of a path' },
    { asked: 'obsid', value: 'Notes in Obsidian', as: 'the beginning of a word' },
    { asked: 'versicherung', value: 'Krankenversicherung bei der TK', as: 'a part of a word' },
    { asked: 'kuberntes', value: 'Deployed to Kubernetes', as: 'a misspelt word' },
    { asked: '备份', value: '数据库备份每天执行', as: 'Chinese' },
    { asked: '猫', value: '家里有两只猫。', as: 'a single character' },
    { asked: '会議は何時ですか', value: '定例の会議は十時から', as: 'a Japanese question' },
    { asked: '회의 시간', value: '주간 회의는 화요일', as: 'Korean' },
    { asked: '🚀', value: 'Ship it 🚀', as: 'a pictograph' },
  ])('$as: $asked', ({ asked, value }) => {
    addFact('other', 'nothing of the kind');
    addFact('it', value);
    expect(ids(asked)[0]).toBe('it');
  });

  test.each([
    { where: 'key', fact: { key: 'preferences/editor' } },
    { where: 'tags', fact: { tags: ['vim', 'editor'] } },
    { where: 'category', fact: { category: 'editor' } },
    { where: 'value', fact: { value: 'The editor is Neovim' } },
  ])('in the $where, which the explanation names', ({ where, fact }) => {
    addFact(1, 'something else', fact);
    expect(find('editor')[0]).toMatchObject({ id: 1, why: expect.stringContaining(`"editor" in ${where}`) });
  });

  test('with the positions of the words', () => {
    addFact(1, 'An editor, and two editors');
    const [hit] = find('editor');
    expect(hit?.spans.map(({ start, end }) => hit.fact.value.slice(start, end))).toEqual(['editor', 'editors']);
  });

  test('but not by an unknown word', () => {
    addFact(1, 'something');
    expect(find('xylophone')).toEqual([]);
    expect(find('?!')).toEqual([]);
  });

  test('by a word deep in a long value', () => {
    addFact(1, `${'filler words here '.repeat(2000)} needle ${'more filler words '.repeat(1000)}`);
    const [hit] = find('needle');
    expect(hit?.why).toBe('exact phrase in value; "needle" in value');
    expect(hit?.fact.value.slice(hit.spans[0]?.start, hit.spans[0]?.end)).toBe('needle');
  });
});

const newestOf = (count: number): number[] => Array.from({ length: 10 }, (_, place) => count - 1 - place);

describe('the order', () => {
  test('an exact phrase outranks the same words scattered, among any number of facts', () => {
    addFact('phrase', `${'so many words around it '.repeat(10)} the red lantern hangs there`, { updatedAt: -1 });
    for (let id = 0; id < 300; id += 1) addFact(id, 'a lantern so very red', { updatedAt: id });
    const [first, second] = find('red lantern');
    expect(first?.id).toBe('phrase');
    expect(first?.why).toContain('exact phrase in value');
    expect(first?.score).toBeGreaterThan(second?.score ?? 1);
  });

  test('a name of single letters is part of the phrase', () => {
    addFact('another', 'we deploy it on http');
    addFact('asked', 'we deploy a-b on http');
    const [first, second] = find('deploy a-b on http');
    expect([first?.id, first?.why]).toEqual(['asked', expect.stringContaining('exact phrase')]);
    expect([second?.id, second?.why]).toEqual(['another', expect.not.stringContaining('exact phrase')]);
    expect(find('a-b')[0]?.why).toContain('exact phrase');
  });

  test('adjacent words outrank the same words far apart', () => {
    addFact('apart', 'alpha one two three four five six seven beta gamma');
    addFact('near', 'beta one two three four five six seven alpha beta seven');
    expect(ids('alpha beta delta')).toEqual(['near', 'apart']);
  });

  test('a rare word counts more than a common one', () => {
    for (let id = 0; id < 50; id += 1) addFact(id, 'konflux service');
    addFact('rare', 'the ledger is kept by hand');
    expect(ids('konflux ledger')[0]).toBe('rare');
  });

  test('stop words do not outweigh the other words', () => {
    addFact('noise', 'what is the what and why is it what it is');
    addFact('it', 'Passport expires in April');
    expect(ids('what is the date when my passport expires?')[0]).toBe('it');
  });

  test('the word itself outranks its forms, and these outrank similar words', () => {
    addFact('holds', 'the deployer');
    addFact('form', 'it deploys');
    addFact('same', 'to deploy');
    expect(ids('deploy')).toEqual(['same', 'form', 'holds']);
  });

  test('similar words are tried only if no fact contains the word', () => {
    addFact('written', 'the cart');
    addFact('alike', 'the card');
    expect(ids('cart')).toEqual(['written']);
  });

  test('a word ranks before its forms, even if many facts contain those', () => {
    for (let id = 0; id < 200; id += 1) addFact(id, `deployment notes ${id}`, { key: `deployment/${id}`, tags: ['deployment'] });
    addFact('itself', `${'much else '.repeat(150)}we deploy on Fridays`);
    expect(find('deploy')[0]).toMatchObject({ id: 'itself', why: expect.stringContaining('exact phrase') });
  });

  test('a fact with a word and its forms is found once, with its best score, at any limit', () => {
    const values = [
      'deploy there',
      'deploys there',
      'deployment there',
      'deploy deploys',
      'deployment deploy',
      'deploys deployment',
    ];
    for (let id = 0; id < 600; id += 1) addFact(id, `they said ${values[id % 6]} that day`, { updatedAt: (id * 7) % 600 });
    const all = find('deploy', 600);
    expect(new Set(all.map(({ id }) => id)).size).toBe(600);
    const best = all.slice(0, 100).map(({ id }) => Number(id) % 6);
    expect(new Set(best)).toEqual(new Set([0, 3, 4]));
    for (const limit of [1, 10, 100]) expect(find('deploy', limit)).toEqual(all.slice(0, limit));
  });

  test('facts that pass a filter are found, even if many texts share the limit of postings', () => {
    for (let id = 0; id < 6000; id += 1) addFact(id, 'deploy', { tags: [id < 3 ? 'seldom' : 'often'], updatedAt: id });
    const text = ['deploy', ...Array.from('abcdefghijklmnopqrstuvwx', (letter) => letter.repeat(9))];
    const found = (): FactId[] => index.search({ text, limit: 10, tag: 'seldom' }).map(({ id }) => id);
    expect(found()).toEqual([2, 1, 0]);
    for (let id = 0; id < 6000; id += 1) addFact(id, 'deploy deploys', { tags: [id < 3 ? 'seldom' : 'often'], updatedAt: id });
    expect(found()).toEqual([2, 1, 0]);
  });

  test('a form in the key counts for more than the word itself somewhere in a long value', () => {
    addFact('word', `${'much else '.repeat(150)}deploy`);
    addFact('both', `${'much else '.repeat(400)}deploy`, { key: 'deployment', updatedAt: -1 });
    expect(ids('deploy')).toEqual(['both', 'word']);
  });

  test('the newer of two equal matches ranks first', () => {
    for (const [id, updatedAt] of [5, 9, 1, 7].entries()) addFact(id, 'the same words', { updatedAt });
    expect(ids('same words')).toEqual([1, 3, 0, 2]);
  });

  test.each([
    { order: 'the oldest first', ageOf: (id: number) => id },
    { order: 'the newest first', ageOf: (id: number) => 2999 - id },
    { order: 'in no order', ageOf: (id: number) => (id * 1237) % 3000 },
  ])('also among thousands of facts, added $order', ({ ageOf }) => {
    for (let id = 0; id < 3000; id += 1) addFact(id, 'the same words', { updatedAt: ageOf(id) });
    for (const text of ['words', 'same words', '']) expect(find(text).map(({ fact }) => fact.updatedAt)).toEqual(newestOf(3000));
  });

  test('a blank text lists the newest at half the score', () => {
    for (const [id, updatedAt] of [5, 9, 1].entries()) addFact(id, `fact ${id}`, { updatedAt });
    expect(find('  ').map(({ id, score }) => [id, score])).toEqual([
      [1, 0.5],
      [0, 0.5],
      [2, 0.5],
    ]);
  });
});

describe('an identifier', () => {
  const fill = (): void => {
    for (let id = 0; id < 300; id += 1)
      addFact(id, `grp${String(id).padStart(6, '0')} of PROJ-${1000 + (id % 100)} in v1.2.${id % 30}`);
  };

  test.each([
    { text: 'grp000123', expected: [123] },
    { text: 'PROJ-1042', expected: [242, 142, 42] },
    { text: 'v1.2.17', expected: [287, 257, 227, 197, 167, 137, 107, 77, 47, 17] },
  ])('is found before facts with its parts: $text', ({ text, expected }) => {
    fill();
    const hits = find(text);
    expect(
      hits
        .slice(0, expected.length)
        .map(({ id }) => Number(id))
        .toSorted((one, other) => other - one),
    ).toEqual(expected);
    expect(hits[0]?.why).toContain('exact phrase in value');
    expect(hits[0]?.score).toBeGreaterThan(0.75);
    expect(hits[expected.length]?.score ?? 0).toBeLessThan(0.5);
  });

  test('is followed by facts with a part that distinguishes them', () => {
    fill();
    addFact('other', 'ticket 000123 of the old system');
    expect(ids('grp000123')).toEqual([123, 'other']);
    addFact('sibling', 'ticket 1042 of the old system');
    expect(new Set(ids('PROJ-1042'))).toEqual(new Set([42, 142, 242, 'sibling']));
    expect(ids('PROJ-1042').at(-1)).toBe('sibling');
  });

  test('is shown as the query writes it, and another word as the fact writes it (R-OPS-14)', () => {
    addFact(1, 'PROJ_7 uses Kubernetes');
    expect(find('Proj-7')[0]?.why).toBe('exact phrase in value; "Proj-7" in value; "Proj" in value; "7" in value');
    expect(find('kuberntes')[0]?.why).toBe('"Kubernetes" for "kuberntes" in value');
    addFact(2, 'invisible ab\u202ecd9 text');
    expect(find('abcd9')[0]?.why).toContain('"abcd9" in value');
    expect(find('abcx')[0]?.why).not.toContain('\u202e');
    addFact(3, `x${'9'.repeat(500)}`);
    expect(find(`x${'9'.repeat(500)}`)[0]?.why.length).toBeLessThan(300);
  });

  test.each(['PROJ-7', 'proj_7', 'Proj7'])('is found in a long value, however both write it: %s (R-OPS-14)', (written) => {
    const filler = 'proj notes of 7 days '.repeat(200);
    addFact(1, `${filler}${written} ${filler}`);
    for (const query of ['PROJ-7', 'proj7', 'proj_7']) {
      const [hit] = find(query);
      expect(hit?.why).toContain(`"${query}" in value`);
      expect(hit?.why).toContain('exact phrase in value');
    }
  });

  test('does not hide facts with its parts from a filter (R-SEEK-01)', () => {
    fill();
    addFact('mine', 'grp000999 moved', { tags: ['mine'] });
    expect(index.search({ text: 'grp000123', limit: 10, tag: 'mine' }).map(({ id }) => id)).toEqual(['mine']);
  });

  test('in an expired fact does not hide facts with its parts', () => {
    fill();
    addFact(123, 'grp000123', { expiresAt: 5 });
    expect(index.search({ text: 'grp000123', limit: 10, now: 10 })).toHaveLength(10);
  });

  test('is found by the very next search, also after its fact was changed', () => {
    fill();
    addFact('new', 'moved to grp000777');
    expect(ids('grp000777')[0]).toBe('new');
    addFact('new', 'moved to grp000778');
    expect(ids('grp000778')[0]).toBe('new');
    expect(find('grp000777')[0]?.why).not.toContain('exact phrase');
  });

  test.each(['see PROJ 7 rollback', 'Proj7 ROLLBACK', 'the proj.7: rollback', 'proj/7 (rollback) was undone'])(
    'is part of a phrase that a fact spells in another way, among many facts: %s (R-QMD-05)',
    (value) => {
      for (let id = 0; id < 2000; id += 1)
        addFact(id, id % 2 === 0 ? `note ${id} about proj work` : `rollback of the service number ${id}`);
      for (let id = 0; id < 200; id += 1) addFact(`far${id}`, `PROJ-7 was discussed. Later came another rollback ${id}`);
      addFact('phrase', `${value} ${'and more words '.repeat(20)}`, { updatedAt: -1 });
      const [first, second] = find('PROJ-7 rollback');
      expect(first).toMatchObject({ id: 'phrase', why: expect.stringContaining('exact phrase in value') });
      expect(first?.score).toBeGreaterThanOrEqual(0.75);
      expect(second?.score).toBeLessThan(0.75);
    },
  );

  test('spelled as several words ranks below the identifier and above its scattered parts (R-QMD-05)', () => {
    for (let id = 0; id < 300; id += 1) addFact(id, `7 notes about the work on proj ${id + 1000}`);
    addFact('apart', 'see PROJ 7', { updatedAt: -1 });
    for (let id = 0; id < 5; id += 1) addFact(`itself${id}`, `PROJ-7 was discussed ${id}`);
    const hits = find('PROJ-7');
    expect(hits).toHaveLength(10);
    expect(hits[5]).toMatchObject({ id: 'apart', why: expect.stringContaining('exact phrase in value') });
    expect(hits[5]?.score).toBeGreaterThanOrEqual(0.75);
    expect(hits[6]?.score).toBeLessThan(0.75);
  });

  test('outweighs the other words of a question', () => {
    fill();
    for (let id = 0; id < 20; id += 1) addFact(`reason${id}`, 'the reason for the move to another region');
    expect(ids('what is the reason for the move of grp000123 to PROJ')[0]).toBe(123);
  });
});

describe('of many facts with the same word, the newest are found (R-QMD-05, R-OPS-14)', () => {
  const COUNT = 4400;
  const values = ['rollout note proj text', 'number 7 proj text', 'other 7 rollout', 'rollout of proj in week 7'];
  const facts = Array.from({ length: COUNT }, (_, id) => ({
    id,
    value: `${values[id % 4] ?? ''} ${id % 9 === 0 ? 'team' : ''}`,
  }));
  facts.push({ id: COUNT, value: 'PROJ-7 owner is Ann' }, { id: COUNT + 1, value: 'the rollout PROJ 7 happens on Friday' });
  const queries = ['rollout PROJ-7', 'PROJ-7', 'PROJ-7 team', 'which team owns the rollout of PROJ-7', 'week 7'];
  const add = (into: SearchIndex, { id, value }: { id: number; value: string }): void =>
    void into.add({ id, key: 'k', category: 'user_facts', tags: [], value, updatedAt: id });
  const idsIn = (searched: SearchIndex, text: string): FactId[] => searched.search({ text, limit: 20 }).map(({ id }) => id);

  /** Adds the facts up to this number newest first, as the build does, and the others as writes. */
  function builtUpTo(count: number): SearchIndex {
    const built = new SearchIndex({ newestFirst: true });
    for (const fact of facts.slice(0, count).toReversed()) add(built, fact);
    built.endBuild();
    for (const fact of facts.slice(count)) add(built, fact);
    return built;
  }

  beforeEach(() => {
    for (const fact of facts) add(index, fact);
  });

  test.each([facts.length, facts.length - 1, 3000, 500, 0])('also after a build of %i facts', (count) => {
    const built = builtUpTo(count);
    for (const text of queries) expect(idsIn(built, text)).toEqual(idsIn(index, text));
    expect(idsIn(built, 'rollout PROJ-7')[0]).toBe(COUNT + 1);
  });

  test('also after facts were changed and deleted', () => {
    const built = builtUpTo(3000);
    for (let id = 0; id < COUNT; id += 1) {
      if (id % 3 === 0) for (const changed of [index, built]) changed.remove(id);
      if (id % 7 === 0)
        for (const changed of [index, built])
          changed.add({ id, key: 'k', category: 'user_facts', tags: [], value: values[id % 4] ?? '', updatedAt: COUNT + 2 + id });
    }
    for (const text of queries) expect(idsIn(built, text)).toEqual(idsIn(index, text));
  });

  test('also a fact that was written during the build', () => {
    const built = new SearchIndex({ newestFirst: true });
    for (const fact of facts.slice(2000, COUNT + 1).toReversed()) add(built, fact);
    add(built, facts[COUNT + 1] ?? { id: 0, value: '' });
    for (const fact of facts.slice(0, 2000).toReversed()) add(built, fact);
    built.endBuild();
    built.renew(COUNT + 1);
    built.renew('unknown');
    expect(built.size).toBe(facts.length);
    for (const text of queries) expect(idsIn(built, text)).toEqual(idsIn(index, text));
  });
});

describe('scores', () => {
  test('are comparable across queries: a full match is near 1, a passing mention near 0', () => {
    for (let id = 0; id < 100; id += 1) addFact(id, `unrelated notes number ${id} about the garden`);
    addFact('a', 'Espresso without sugar', { key: 'preferences/coffee' });
    const whole = find('preferences coffee')[0]?.score ?? 0;
    const half = find('coffee machine warranty')[0]?.score ?? 0;
    const passing = find('which garden centre sells hydrangea fertiliser cheaply?')[0]?.score ?? 0;
    expect(whole).toBeGreaterThan(0.85);
    expect(half).toBeLessThan(whole);
    expect(passing).toBeLessThan(0.25);
  });

  test('of a misspelled word hardly depend on the number of similar words', () => {
    addFact(1, 'Deployed to Kubernetes');
    const [alone] = find('kuberntes');
    addFact(2, 'kubernets kubernetis', { category: 'elsewhere' });
    const [beside] = index.search({ text: 'kuberntes', limit: 10, category: 'user_facts' });
    expect([alone?.id, beside?.id]).toEqual([1, 1]);
    expect(alone?.score).toBeCloseTo(beside?.score ?? 0, 1);
  });

  test('depend most on a misspelled word: its closest term weighs more than a common word', () => {
    addFact('meant', 'Grandmother Hedwig turns ninety, and there is a party in the Waldhotel');
    addFact('other', 'Birthday on 9 October', { key: 'birthday' });
    for (let id = 0; id < 100; id += 1) addFact(id, `unrelated notes number ${id}`);
    expect(find('granmother birthday').map(({ id }) => id)).toEqual(['meant', 'other']);
  });

  test('are between 0 and 1, the best first, for any query and any facts', () => {
    fc.assert(
      fc.property(fc.array(someText, { maxLength: 12 }), fc.array(someText, { minLength: 1, maxLength: 4 }), (values, texts) => {
        const otherIndex = new SearchIndex();
        for (const [id, value] of values.entries())
          otherIndex.add({ id, key: value, category: 'c', tags: [value], value, updatedAt: id });
        const scores = otherIndex.search({ text: texts, limit: 20 }).map(({ score }) => score);
        expect(scores.every((score) => score >= 0 && score <= 1)).toBe(true);
        expect(scores).toEqual(scores.toSorted((one, other) => other - one));
      }),
    );
  });
});

const someText = fc.oneof(
  fc
    .array(fc.constantFrom('alpha', 'alphas', 'Beta', 'gamma_delta', 'v1.2', '数据库', 'über', 'the', 'what'), { maxLength: 8 })
    .map((words) => words.join(' ')),
  fc.string({ unit: 'binary', maxLength: 40 }),
);

describe('a search returns', () => {
  test('the best of all matching facts, at any limit', () => {
    fc.assert(
      fc.property(fc.array(someText, { maxLength: 25 }), someText, fc.integer({ min: 1, max: 8 }), (values, text, limit) => {
        const otherIndex = new SearchIndex();
        for (const [id, value] of values.entries())
          otherIndex.add({ id, key: `k${id}`, category: 'c', tags: [], value, updatedAt: id });
        // The last digits of a score depend on the order in which the weights are added.
        const search = (most: number) =>
          otherIndex.search({ text, limit: most }).map((hit) => ({ ...hit, score: hit.score.toFixed(6) }));
        expect(search(limit)).toEqual(search(30).slice(0, limit));
      }),
      { numRuns: 300 },
    );
  });

  test('no more facts than the limit', () => {
    for (let id = 0; id < 30; id += 1) addFact(id, 'the same');
    expect(find('same', 7)).toHaveLength(7);
  });

  test('only facts of the category', () => {
    addFact(1, 'same', { category: 'one' });
    addFact(2, 'same', { category: 'two' });
    expect(index.search({ text: 'same', limit: 9, category: 'two' }).map(({ id }) => id)).toEqual([2]);
    expect(index.search({ text: '', limit: 9, category: 'two' }).map(({ id }) => id)).toEqual([2]);
    expect(index.search({ text: 'same', limit: 9, category: 'three' })).toEqual([]);
  });

  test('only facts with the exact tag or writer, or that expire soon (R-SEEK-01)', () => {
    addFact(1, 'same', { tags: ['ops', 'tools'], client: 'codex', updatedAt: 1, expiresAt: 10 });
    addFact(2, 'same', { tags: ['tools'], client: 'claude-code', updatedAt: 2, expiresAt: 20 });
    addFact(3, 'same', { tags: ['tool'] });
    const those = (filter: object): FactId[] =>
      ['same', ''].flatMap((text) => index.search({ text, limit: 9, ...filter }).map(({ id }) => id));
    expect(those({ tag: 'tools' })).toEqual([2, 1, 2, 1]);
    expect(those({ tag: 'Tools' })).toEqual([]);
    expect(those({ client: 'codex' })).toEqual([1, 1]);
    expect(those({ client: 'tools' })).toEqual([]);
    expect(those({ expiresBefore: 20 })).toEqual([1, 1]);
    expect(those({ expiresBefore: 21, now: 10 })).toEqual([2, 2]);
    expect(those({ tag: 'tools', client: 'claude-code', category: 'user_facts' })).toEqual([2, 2]);
    expect(those({ tag: 'ops', client: 'claude-code' })).toEqual([]);
    index.add({ id: 1, key: 'k1', category: 'c', tags: [], value: 'same', updatedAt: 0 });
    expect(those({ tag: 'ops' })).toEqual([]);
  });

  test('the fact that passes a filter, after more matching facts than a search reads (R-SEEK-01)', () => {
    addFact('it', 'lantern light', { tags: ['rare'], updatedAt: -1 });
    for (let id = 0; id < 55_000; id += 1) addFact(id, 'lantern light');
    for (const text of ['lantern', 'light lantern', 'lanterns lights']) {
      expect(index.search({ text, limit: 9, tag: 'rare' }).map(({ id }) => id)).toEqual(['it']);
    }
  });

  test('only unexpired facts, even if many better ones have expired', () => {
    for (let id = 0; id < 2000; id += 1) {
      const lasting = id < 3;
      const value = lasting ? 'lantern and much more beside it' : 'lantern';
      addFact(id, value, { updatedAt: id, expiresAt: lasting ? 101 : 100 });
    }
    const at = (now: number, text: string): FactId[] => index.search({ text, limit: 5, now }).map(({ id }) => id);
    expect(at(100, 'lantern')).toEqual([2, 1, 0]);
    expect(at(100, '')).toEqual([2, 1, 0]);
    expect(at(101, 'lantern')).toEqual([]);
    expect(at(99, 'lantern')).toEqual([1999, 1998, 1997, 1996, 1995]);
  });
});

describe('several texts', () => {
  test('are fused, and a fact that more of them find ranks first', () => {
    addFact('one', 'alpha');
    addFact('both', 'alpha and beta');
    addFact('other', 'beta');
    expect(ids(['alpha', 'beta'])[0]).toBe('both');
    expect(ids(['alpha', 'beta'])).toHaveLength(3);
  });

  test('that are equal score as one', () => {
    addFact('one', 'alpha');
    expect(find(['alpha', 'alpha'])).toEqual(find('alpha'));
  });

  test('that are blank are ignored', () => {
    addFact('one', 'alpha', { updatedAt: 1 });
    addFact('two', 'beta');
    expect(ids(['', 'beta'])).toEqual(['two']);
    expect(ids(['', ' '])).toEqual(['one', 'two']);
    expect(ids([])).toEqual(['one', 'two']);
  });
});

describe('a change', () => {
  test('is found by the very next search', () => {
    addFact(1, 'before');
    expect(ids('before')).toEqual([1]);
    addFact(1, 'after');
    expect(ids('before')).toEqual([]);
    expect(ids('after')).toEqual([1]);
    expect(index.size).toBe(1);
    expect(index.remove(1)).toBe(true);
    expect(index.remove(1)).toBe(false);
    expect(ids('after')).toEqual([]);
  });

  test('distinguishes the number 7 from the text', () => {
    addFact(7, 'number');
    addFact('7', 'text');
    index.remove('7');
    expect(ids('number')).toEqual([7]);
  });

  test('to nothing leaves nothing', () => {
    addFact(1, 'alpha');
    index.clear();
    expect(index.size).toBe(0);
    expect(find('alpha')).toEqual([]);
    expect(find('')).toEqual([]);
    addFact(2, 'beta');
    expect(ids('beta')).toEqual([2]);
  });

  const facts = fc.uniqueArray(fc.record({ id: fc.nat(40), value: someText, tags: fc.array(someText, { maxLength: 2 }) }), {
    selector: ({ id }) => id,
    maxLength: 25,
  });
  const fill = (told: Iterable<{ id: number; value: string; tags: string[] }>): SearchIndex => {
    const otherIndex = new SearchIndex();
    for (const { id, value, tags } of told) otherIndex.add({ id, key: `k${id}`, category: 'c', tags, value, updatedAt: id });
    return otherIndex;
  };

  test('leaves no trace of a removed fact', () => {
    fc.assert(
      fc.property(facts, facts, fc.array(someText, { minLength: 1, maxLength: 5 }), (stay, go, texts) => {
        const remaining = new Set(stay.map(({ id }) => id));
        const removed = go.filter(({ id }) => !remaining.has(id));
        // Some facts are added with another text first, so that replacing is tested too.
        const marked = fill([...removed, ...stay.map((fact) => ({ ...fact, value: `${fact.value} replaced` })), ...stay]);
        for (const { id } of removed) marked.remove(id);
        const clean = fill(stay);
        expect(marked.size).toBe(clean.size);
        for (const text of texts) expect(marked.search({ text, limit: 30 })).toEqual(clean.search({ text, limit: 30 }));
      }),
      { numRuns: 200 },
    );
  });

  test('in another order gives the same results', () => {
    fc.assert(
      fc.property(facts, fc.array(someText, { minLength: 1, maxLength: 5 }), (told, texts) => {
        const [one, other] = [fill(told), fill(told.toReversed())];
        for (const text of texts) expect(one.search({ text, limit: 30 })).toEqual(other.search({ text, limit: 30 }));
      }),
      { numRuns: 200 },
    );
  });
});

describe('the work of a search is bounded', () => {
  test.each([
    { of: 'one letter', text: 'a'.repeat(1000) },
    { of: 'short words', text: 'a b '.repeat(250) },
    { of: 'joined parts', text: 'a-'.repeat(500) },
    { of: 'different words', text: Array.from({ length: 150 }, (_, at) => `word${at}x`).join(' ') },
    { of: 'Chinese', text: '数据库备份'.repeat(200) },
  ])('for large facts, too: a thousand characters of $of', ({ text }) => {
    for (let id = 0; id < 40; id += 1) addFact(id, `${text} `.repeat(64).slice(0, 65_000));
    const questions = Array.from({ length: 32 }, (_, at) => `${text.slice(0, 990)} ${at}`);
    expect(measureCpu(() => find(questions))).toBeLessThan(2000);
  });
});
