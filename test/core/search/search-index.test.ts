import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Hit, type Id, type Searchable, SearchIndex } from '../../../src/core/search/search-index.ts';

let index: SearchIndex;

beforeEach(() => {
  index = new SearchIndex();
});

/** A fact whose key says nothing, so that only the value is found. */
function tell(id: Id, value: string, more: Partial<Searchable> = {}): void {
  index.add({ id, key: `k${String(id)}`, category: 'user_facts', tags: [], value, updatedAt: 0, ...more });
}

const find = (text: string | readonly string[], limit = 10): Hit[] => index.search({ text, limit });
const ids = (text: string | readonly string[]): Id[] => find(text).map(({ id }) => id);

describe('what is found', () => {
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
    { asked: 'store.ts', value: 'see src/core/store.ts', as: 'the end of a path' },
    { asked: 'obsid', value: 'Notes in Obsidian', as: 'the beginning of a word' },
    { asked: 'versicherung', value: 'Krankenversicherung bei der TK', as: 'a part of a word' },
    { asked: 'kuberntes', value: 'Deployed to Kubernetes', as: 'a misspelt word' },
    { asked: '备份', value: '数据库备份每天执行', as: 'Chinese' },
    { asked: '猫', value: '家里有两只猫。', as: 'a single character' },
    { asked: '会議は何時ですか', value: '定例の会議は十時から', as: 'a Japanese question' },
    { asked: '회의 시간', value: '주간 회의는 화요일', as: 'Korean' },
    { asked: '🚀', value: 'Ship it 🚀', as: 'a pictograph' },
  ])('$as: $asked', ({ asked, value }) => {
    tell('other', 'nothing of the kind');
    tell('it', value);
    expect(ids(asked)[0]).toBe('it');
  });

  test.each([
    { where: 'key', fact: { key: 'preferences/editor' } },
    { where: 'tags', fact: { tags: ['vim', 'editor'] } },
    { where: 'category', fact: { category: 'editor' } },
    { where: 'value', fact: { value: 'The editor is Neovim' } },
  ])('in the $where, and it says so', ({ where, fact }) => {
    tell(1, 'something else', fact);
    expect(find('editor')[0]).toMatchObject({ id: 1, why: expect.stringContaining(`"editor" in ${where}`) });
  });

  test('with the places where it stands', () => {
    tell(1, 'An editor, and two editors');
    const [hit] = find('editor');
    expect(hit?.spans.map(({ start, end }) => hit.fact.value.slice(start, end))).toEqual(['editor', 'editors']);
  });

  test('and what nobody knows is not', () => {
    tell(1, 'something');
    expect(find('xylophone')).toEqual([]);
    expect(find('?!')).toEqual([]);
  });

  test('deep in a long value too', () => {
    tell(1, `${'filler words here '.repeat(2000)} needle ${'more filler words '.repeat(1000)}`);
    const [hit] = find('needle');
    expect(hit?.why).toBe('exact phrase in value; "needle" in value');
    expect(hit?.fact.value.slice(hit.spans[0]?.start, hit.spans[0]?.end)).toBe('needle');
  });
});

describe('the order', () => {
  test('an exact phrase outranks the same words scattered, among however many', () => {
    tell('phrase', `${'so many words around it '.repeat(10)} the red lantern hangs there`, { updatedAt: -1 });
    for (let id = 0; id < 300; id += 1) tell(id, 'a lantern so very red', { updatedAt: id });
    const [first, second] = find('red lantern');
    expect(first?.id).toBe('phrase');
    expect(first?.why).toContain('exact phrase in value');
    expect(first?.score).toBeGreaterThan(second?.score ?? 1);
  });

  test('neighbours outrank the same words far apart', () => {
    tell('apart', 'alpha one two three four five six seven beta gamma');
    tell('near', 'beta one two three four five six seven alpha beta seven');
    expect(ids('alpha beta delta')).toEqual(['near', 'apart']);
  });

  test('a rare word counts more than a common one', () => {
    for (let id = 0; id < 50; id += 1) tell(id, 'konflux service');
    tell('rare', 'the ledger is kept by hand');
    expect(ids('konflux ledger')[0]).toBe('rare');
  });

  test('the words a question is made of do not drown the rest', () => {
    tell('noise', 'what is the what and why is it what it is');
    tell('it', 'Passport expires in April');
    expect(ids('what is the date when my passport expires?')[0]).toBe('it');
  });

  test('the word itself outranks its forms, and these what only looks like it', () => {
    tell('holds', 'the deployer');
    tell('form', 'it deploys');
    tell('same', 'to deploy');
    expect(ids('deploy')).toEqual(['same', 'form', 'holds']);
  });

  test('misspelling is considered only when nothing is written so', () => {
    tell('written', 'the cart');
    tell('alike', 'the card');
    expect(ids('cart')).toEqual(['written']);
  });

  test('of equals the newer stands first', () => {
    for (const [id, updatedAt] of [5, 9, 1, 7].entries()) tell(id, 'the same words', { updatedAt });
    expect(ids('same words')).toEqual([1, 3, 0, 2]);
  });

  test('a blank text lists the newest at half the score', () => {
    for (const [id, updatedAt] of [5, 9, 1].entries()) tell(id, `fact ${id}`, { updatedAt });
    expect(find('  ').map(({ id, score }) => [id, score])).toEqual([
      [1, 0.5],
      [0, 0.5],
      [2, 0.5],
    ]);
  });
});

describe('scores', () => {
  test('say the same across questions: a full answer is near 1, a passing mention near 0', () => {
    for (let id = 0; id < 100; id += 1) tell(id, `unrelated notes number ${id} about the garden`);
    tell('a', 'Espresso without sugar', { key: 'preferences/coffee' });
    const whole = find('preferences coffee')[0]?.score ?? 0;
    const half = find('coffee machine warranty')[0]?.score ?? 0;
    const passing = find('which garden centre sells hydrangea fertiliser cheaply?')[0]?.score ?? 0;
    expect(whole).toBeGreaterThan(0.85);
    expect(half).toBeLessThan(whole);
    expect(passing).toBeLessThan(0.25);
  });

  test('lie between 0 and 1, the best first, whatever is asked of whatever is there', () => {
    fc.assert(
      fc.property(fc.array(someText, { maxLength: 12 }), fc.array(someText, { minLength: 1, maxLength: 4 }), (values, texts) => {
        const fresh = new SearchIndex();
        for (const [id, value] of values.entries())
          fresh.add({ id, key: value, category: 'c', tags: [value], value, updatedAt: id });
        const scores = fresh.search({ text: texts, limit: 20 }).map(({ score }) => score);
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

describe('which facts', () => {
  test('no more than asked for', () => {
    for (let id = 0; id < 30; id += 1) tell(id, 'the same');
    expect(find('same', 7)).toHaveLength(7);
  });

  test('only those of a category', () => {
    tell(1, 'same', { category: 'one' });
    tell(2, 'same', { category: 'two' });
    expect(index.search({ text: 'same', limit: 9, category: 'two' }).map(({ id }) => id)).toEqual([2]);
    expect(index.search({ text: '', limit: 9, category: 'two' }).map(({ id }) => id)).toEqual([2]);
    expect(index.search({ text: 'same', limit: 9, category: 'three' })).toEqual([]);
  });

  test('only those that are accepted, however many better ones are not', () => {
    for (let id = 0; id < 2000; id += 1) tell(id, id < 3 ? 'lantern and much more beside it' : 'lantern', { updatedAt: id });
    const hits = index.search({ text: 'lantern', limit: 5, accept: (id) => Number(id) < 3 });
    expect(hits.map(({ id }) => id)).toEqual([2, 1, 0]);
  });
});

test('a question of an accept that fails leaves nothing behind', () => {
  tell(1, 'lantern');
  const fail = (): never => {
    throw new Error('no');
  };
  const before = find('lantern');
  expect(() => index.search({ text: 'lantern', limit: 5, accept: fail })).toThrow('no');
  expect(find('lantern')).toEqual(before);
});

describe('several texts', () => {
  test('are fused, and what more of them find stands first', () => {
    tell('one', 'alpha');
    tell('both', 'alpha and beta');
    tell('other', 'beta');
    expect(ids(['alpha', 'beta'])[0]).toBe('both');
    expect(ids(['alpha', 'beta'])).toHaveLength(3);
  });

  test('that ask the same score as one', () => {
    tell('one', 'alpha');
    expect(find(['alpha', 'alpha'])).toEqual(find('alpha'));
  });

  test('that are blank are as if they were not there', () => {
    tell('one', 'alpha', { updatedAt: 1 });
    tell('two', 'beta');
    expect(ids(['', 'beta'])).toEqual(['two']);
    expect(ids(['', ' '])).toEqual(['one', 'two']);
    expect(ids([])).toEqual(['one', 'two']);
  });
});

describe('a change', () => {
  test('is found by the very next search', () => {
    tell(1, 'before');
    expect(ids('before')).toEqual([1]);
    tell(1, 'after');
    expect(ids('before')).toEqual([]);
    expect(ids('after')).toEqual([1]);
    expect(index.size).toBe(1);
    expect(index.remove(1)).toBe(true);
    expect(index.remove(1)).toBe(false);
    expect(ids('after')).toEqual([]);
  });

  test('tells the number 7 from the text', () => {
    tell(7, 'number');
    tell('7', 'text');
    index.remove('7');
    expect(ids('number')).toEqual([7]);
  });

  test('to nothing leaves nothing', () => {
    tell(1, 'alpha');
    index.clear();
    expect(index.size).toBe(0);
    expect(find('alpha')).toEqual([]);
    expect(find('')).toEqual([]);
    tell(2, 'beta');
    expect(ids('beta')).toEqual([2]);
  });

  const facts = fc.uniqueArray(fc.record({ id: fc.nat(40), value: someText, tags: fc.array(someText, { maxLength: 2 }) }), {
    selector: ({ id }) => id,
    maxLength: 25,
  });
  const fill = (told: Iterable<{ id: number; value: string; tags: string[] }>): SearchIndex => {
    const fresh = new SearchIndex();
    for (const { id, value, tags } of told) fresh.add({ id, key: `k${id}`, category: 'c', tags, value, updatedAt: id });
    return fresh;
  };

  test('leaves no trace of what is gone', () => {
    fc.assert(
      fc.property(facts, facts, fc.array(someText, { minLength: 1, maxLength: 5 }), (stay, go, texts) => {
        const staying = new Set(stay.map(({ id }) => id));
        const going = go.filter(({ id }) => !staying.has(id));
        // Some are told of first under another text, so that replacing leaves no trace either.
        const marked = fill([...going, ...stay.map((fact) => ({ ...fact, value: `${fact.value} replaced` })), ...stay]);
        for (const { id } of going) marked.remove(id);
        const clean = fill(stay);
        expect(marked.size).toBe(clean.size);
        for (const text of texts) expect(marked.search({ text, limit: 30 })).toEqual(clean.search({ text, limit: 30 }));
      }),
      { numRuns: 200 },
    );
  });

  test('in another order gives the same', () => {
    fc.assert(
      fc.property(facts, fc.array(someText, { minLength: 1, maxLength: 5 }), (told, texts) => {
        const [one, other] = [fill(told), fill(told.toReversed())];
        for (const text of texts) expect(one.search({ text, limit: 30 })).toEqual(other.search({ text, limit: 30 }));
      }),
      { numRuns: 200 },
    );
  });
});

describe('the work of a search has an end', () => {
  test.each([
    { of: 'one letter', text: 'a'.repeat(1000) },
    { of: 'short words', text: 'a b '.repeat(250) },
    { of: 'joined parts', text: 'a-'.repeat(500) },
    { of: 'different words', text: Array.from({ length: 150 }, (_, at) => `word${at}x`).join(' ') },
    { of: 'Chinese', text: '数据库备份'.repeat(200) },
  ])('over large facts too: a thousand characters of $of', ({ text }) => {
    for (let id = 0; id < 40; id += 1) tell(id, `${text} `.repeat(64).slice(0, 65_000));
    const start = performance.now();
    find(Array.from({ length: 32 }, (_, at) => `${text.slice(0, 990)} ${at}`));
    expect(performance.now() - start).toBeLessThan(2000);
  });
});
