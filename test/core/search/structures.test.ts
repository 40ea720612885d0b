import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { FactIndex } from '../../../src/core/search/fact-index.ts';
import { BestFacts, PostingLists } from '../../../src/core/search/tables.ts';
import { HashChains, NOT_FOUND } from '../../../src/core/search/text-pages.ts';
import { NameTable, TextPages } from '../../../src/core/search/text-pages.ts';
import { Lexicon, Vocabulary, gramsOfTerm } from '../../../src/core/search/vocabulary.ts';
import { characterBoundary } from '../../../src/core/search/words.ts';

describe('posting lists', () => {
  test('contain every live entry that was added, in any order of calls', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3), fc.boolean()), { maxLength: 4000 }), (steps) => {
        const live = new Map<number, number>();
        const left: number[] = [];
        const lists = new PostingLists({ isLive: (entry) => live.has(entry), onRemoved: (entry) => left.push(entry) });
        let next = 0;
        let deaths = 0;
        for (const [list, grow] of steps) {
          const oldest = [...live].find(([, where]) => where === list)?.[0];
          if (grow || oldest === undefined) {
            lists.add(list, next);
            live.set(next, list);
            next += 1;
          } else {
            live.delete(oldest);
            lists.markDead(list);
            deaths += 1;
          }
        }
        for (const list of [0, 1, 2, 3]) {
          const count = lists.read(list, Infinity);
          const held = [...lists.entries.subarray(0, count)].filter((entry) => live.has(entry));
          const expected = [...live].filter(([, where]) => where === list).map(([entry]) => entry);
          expect(held.toSorted((one, other) => one - other)).toEqual(expected);
          expect(lists.size(list)).toBe(expected.length);
        }
        expect(new Set(left).size).toBe(left.length);
        expect(left.length).toBeLessThanOrEqual(deaths);
      }),
      { numRuns: 50 },
    );
  });

  test('read their newest entries first', () => {
    const lists = new PostingLists({ isLive: () => true, onRemoved: () => {} });
    for (let entry = 0; entry < 5000; entry += 1) lists.add(7, entry);
    const count = lists.read(7, 1500);
    expect([...lists.entries.subarray(0, count)].toSorted((one, other) => one - other)).toEqual(
      Array.from({ length: 1500 }, (_, index) => 3500 + index),
    );
  });

  test('that start with entries in reversed order read the newest entries from both ends', () => {
    const sizes = fc.tuple(fc.nat(6000), fc.nat(6000), fc.nat(9000));
    fc.assert(
      fc.property(sizes, ([built, later, most]) => {
        const lists = new PostingLists({ isLive: () => true, onRemoved: () => {} });
        for (let entry = 0; entry < built; entry += 1) lists.add(2, entry);
        // Later entries can have any order.
        for (let entry = built + later - 1; entry >= built; entry -= 1) lists.add(2, entry);
        const count = lists.read(2, most, built);
        const read = [...lists.entries.subarray(0, count)];
        const oldestFirst = [
          ...Array.from({ length: built }, (_, at) => built - 1 - at),
          ...Array.from({ length: later }, (_, at) => built + later - 1 - at),
        ];
        expect(new Set(read)).toEqual(new Set(most === 0 ? [] : oldestFirst.slice(-most)));
        expect(read).toHaveLength(Math.min(most, built + later));
      }),
      { numRuns: 100 },
    );
  });

  test('of ascending entries are searched without reading all of them', () => {
    const entries = fc.uniqueArray(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 3000 });
    fc.assert(
      fc.property(entries, fc.array(fc.nat(21_000), { maxLength: 50 }), (added, limits) => {
        const lists = new PostingLists({ isLive: () => true, onRemoved: () => {} });
        const ascending = Uint32Array.from(added).toSorted();
        for (const entry of ascending) lists.add(3, entry);
        expect(lists.isSorted(3)).toBe(true);
        const results = Uint32Array.from(limits).toSorted();
        const expected = Array.from(results, (limit) => ascending.findLast((entry) => entry <= limit) ?? 0);
        lists.findBelow(3, results, results.length);
        expect([...results]).toEqual(expected);
      }),
      { numRuns: 100 },
    );
  });

  test('are sorted until a lower entry is added, and sorted again when dead entries are removed', () => {
    const dead = new Set<number>();
    const lists = new PostingLists({ isLive: (entry) => !dead.has(entry), onRemoved: () => {} });
    for (const entry of [10, 20, 30, 5]) lists.add(0, entry);
    expect([lists.isSorted(0), lists.isSorted(1)]).toEqual([false, true]);
    for (const entry of [10, 20, 30]) {
      dead.add(entry);
      lists.markDead(0);
    }
    for (const entry of [40, 50]) lists.add(0, entry);
    expect(lists.isSorted(0)).toBe(true);
    const limits = Uint32Array.of(4, 5, 45, 60);
    lists.findBelow(0, limits, 4);
    expect([...limits]).toEqual([0, 5, 40, 50]);
  });

  test('free the memory of dead entries', () => {
    const live = new Set<number>();
    const lists = new PostingLists({ isLive: (entry) => live.has(entry), onRemoved: () => {} });
    const fill = (): void => {
      for (let entry = 0; entry < 20_000; entry += 1) {
        live.add(entry);
        lists.add(entry % 5, entry);
      }
      for (let entry = 0; entry < 20_000; entry += 1) {
        live.delete(entry);
        lists.markDead(entry % 5);
      }
    };
    fill();
    const { bytes } = lists;
    for (let round = 0; round < 10; round += 1) fill();
    expect(lists.bytes).toBe(bytes);
  });
});

test('the best facts of a posting list are the same whether they are offered together or one by one', () => {
  const posting = fc.record({ number: fc.nat(3000), level: fc.integer({ min: 1, max: 255 }), accepted: fc.boolean() });
  const postings = fc.uniqueArray(posting, { selector: ({ number }) => number, maxLength: 2000, size: 'max' });
  fc.assert(
    fc.property(postings, fc.integer({ min: 1, max: 100 }), (all, most) => {
      const accepted = new Set(all.filter((one) => one.accepted).map(({ number }) => number));
      const facts = { isLive: (fact: number) => fact % 7 > 0, updatedAt: (fact: number) => fact % 100 };
      const [together, apart] = [new BestFacts(facts, most), new BestFacts(facts, most)];
      const accepts = (fact: number): boolean => accepted.has(fact);
      together.offerPostings(
        Uint32Array.from(all, ({ number, level }) => number * 256 + level),
        all.length,
        accepts,
      );
      for (const { number, level } of all) apart.offer(number, level, accepts);
      expect(together.takeAll()).toEqual(apart.takeAll());
    }),
    { numRuns: 50 },
  );
});

test('an index returns the ids of its facts unchanged', () => {
  const ids = [0, 7, -7, 1.5, 1e21, Number.MAX_SAFE_INTEGER, '', '7', '#7', '=', 'key'];
  const index = new FactIndex();
  for (const id of ids) index.add(id, { key: 'key', category: 'c', tags: [], value: 'v', updatedAt: 1 });
  expect(ids.map((_, number) => index.factAt(number).id)).toEqual(ids);
});

test('a name is counted while a fact has it, and takes no memory afterwards', () => {
  const name = fc.string({ unit: 'grapheme', maxLength: 12 });
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.boolean()), { maxLength: 600 }), (steps) => {
      const names = new NameTable();
      const model = new Map<string, number>();
      for (const [one, comes] of [...steps, ...steps.toReversed()]) {
        const known = model.get(one) ?? 0;
        if (comes) names.retain(one);
        else names.release(one);
        if (comes) model.set(one, known + 1);
        else if (known > 1) model.set(one, known - 1);
        else model.delete(one);
      }
      const counted = names.mostUsed(Infinity);
      expect(new Map(counted.map(({ name: one, count }) => [one, count]))).toEqual(model);
      expect(counted.map(({ count }) => count)).toEqual([...model.values()].toSorted((one, other) => other - one));
    }),
  );
  const names = new NameTable();
  for (let round = 0; round < 20; round += 1) {
    for (let one = 0; one < 1000; one += 1) names.retain(`a longer name ${one}`);
    for (let one = 0; one < 1000; one += 1) names.release(`a longer name ${one}`);
  }
  expect(names.bytes).toBeLessThan(1 << 18);
});

test('a term has a number until it is removed', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }), fc.boolean()), { maxLength: 600 }),
      (steps) => {
        const lexicon = new Lexicon();
        const model = new Map<string, number>();
        for (const [term, keep] of steps) {
          const known = model.get(term);
          if (keep && known === undefined) model.set(term, lexicon.add(term));
          if (!keep && known !== undefined) {
            lexicon.erase(known);
            lexicon.recycle(known);
            model.delete(term);
          }
        }
        for (const [term] of steps) expect(lexicon.find(term)).toBe(model.get(term));
        for (const [term, id] of model) expect(lexicon.text(id)).toBe(term);
        expect(lexicon.size).toBe(model.size);
      },
    ),
    { numRuns: 100 },
  );
});

test('similar terms share a gram with the word, and either start with its first four letters or contain it', () => {
  const term = fc
    .array(fc.constantFrom('ab', 'c', 'é', 'щ', '𐐨', 'abcd'), { minLength: 1, maxLength: 5 })
    .map((letters) => letters.join(''));
  fc.assert(
    fc.property(fc.uniqueArray(term, { maxLength: 30 }), fc.array(fc.nat(29)), term, (terms, gone, word) => {
      const vocabulary = new Vocabulary();
      for (const one of terms) vocabulary.add(one);
      for (const at of new Set(gone)) {
        const id = vocabulary.find(terms[at] ?? '');
        if (id !== undefined) vocabulary.remove(id);
      }
      for (const piece of gramsOfTerm(word)) {
        const textsOf = (ids: readonly number[]): string[] => ids.map((id) => vocabulary.text(id)).toSorted();
        const all = textsOf(vocabulary.withGram(piece, Infinity));
        const head = word.slice(0, characterBoundary(word, 4));
        const expected = all.filter((one) => one.startsWith(head) || one.includes(word));
        expect(textsOf(vocabulary.similarTo(word, piece, Infinity))).toEqual(expected);
      }
    }),
    { numRuns: 300 },
  );
});

test('texts are read unchanged after they were moved, and free their memory when removed', () => {
  const addresses = new Map<number, number>();
  const texts = new TextPages((owner, address) => addresses.set(owner, address));
  // Some texts are longer than a page.
  const lengthOf = (owner: number): number => (owner % 50 === 0 ? 40_000 + owner : owner);
  const textOf = (owner: number): string[] => [`${owner}`, 'ü'.repeat(lengthOf(owner))];
  for (let owner = 0; owner < 2000; owner += 1) {
    addresses.set(owner, texts.add(owner, textOf(owner)));
    const gone = owner - 20;
    if (gone < 0 || gone % 10 === 0) continue;
    texts.remove(addresses.get(gone) ?? 0);
    addresses.delete(gone);
  }
  for (const [owner, address] of addresses) expect(texts.read(address)).toEqual(textOf(owner));
  let held = 0;
  for (const owner of addresses.keys()) held += 2 * lengthOf(owner);
  expect(texts.bytes).toBeLessThan(3 * held + 3_000_000);
});

describe('an index after all facts were removed', () => {
  const fill = (index: FactIndex): void => {
    for (let id = 0; id < 500; id += 1) {
      index.add(id, { key: `key/${id}`, category: 'facts', tags: ['tag'], value: `secret${id} and common words`, updatedAt: id });
    }
    for (let id = 0; id < 500; id += 1) index.remove(id);
  };

  test('knows no term', () => {
    const index = new FactIndex();
    fill(index);
    expect(index.size).toBe(0);
    expect(index.vocabulary.size).toBe(0);
    expect(index.vocabulary.find('secret7')).toBeUndefined();
    expect(index.findCategory('facts')).toBeUndefined();
  });

  test('is not damaged by a fact that failed while it was added', () => {
    const index = new FactIndex();
    const fact = { category: 'facts', tags: [], updatedAt: 1 };
    const learn = vi.spyOn(index.vocabulary, 'add').mockImplementation((term) => {
      if (term === 'gamma') throw new RangeError('There is no room.');
      return Vocabulary.prototype.add.call(index.vocabulary, term);
    });
    expect(() => index.add(1, { ...fact, key: 'one', value: 'alpha beta gamma' })).toThrow(RangeError);
    learn.mockRestore();
    index.add(2, { ...fact, key: 'two', value: 'alpha beta' });
    const countOf = (term: string): number => index.count(index.vocabulary.find(term) ?? NaN);
    expect(['alpha', 'beta', 'two'].map(countOf)).toEqual([1, 1, 1]);
  });

  test('does not grow when it is filled again and again', () => {
    const index = new FactIndex();
    fill(index);
    const { bytes, top } = index;
    for (let round = 0; round < 20; round += 1) fill(index);
    expect(index.top).toBeLessThanOrEqual(2 * top);
    expect(index.bytes).toBeLessThanOrEqual(2 * bytes);
  });
});

test('a cleared hash table contains no hashes', () => {
  const chains = new HashChains();
  for (let number = 0; number < 1000; number += 1) chains.add(number, number * 7919 + 1);
  expect(chains.first(7920)).toBe(1);
  chains.clear();
  for (let number = 0; number < 1000; number += 1) expect(chains.first(number * 7919 + 1)).toBe(NOT_FOUND);
});
