import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stemOf } from '../../../src/core/search/vocabulary.ts';
import { foldText, TERM_UNITS, TermFilter, readAscii, readUnicode, type Word, wordsOf } from '../../../src/core/search/words.ts';
import { measureCpu } from '../../support/work.ts';

const parts = (text: string): string =>
  wordsOf(text)
    .filter((word) => word.parts === 0)
    .map(({ term }) => term)
    .join(' ');
const wholes = (text: string): string =>
  wordsOf(text)
    .filter((word) => word.parts > 0)
    .map(({ term }) => term)
    .join(' ');

describe('a text is split into words', () => {
  test.each([
    { text: 'React over Vue (Konflux)', gives: 'react over vue konflux' },
    { text: "l'école de Kadıköy'de", gives: 'l ecole de kadikoy de' },
    { text: '  … — ()', gives: '' },
    { text: 'mail jo@example.org', gives: 'mail jo example org' },
    { text: 'src/core/store/store.ts', gives: 'src core store store ts' },
    { text: 'नमस्ते दुनिया', gives: 'नमस्ते दुनिया' },
    { text: 'القَهْوَة', gives: 'القهوه' },
    { text: 'ＦＵＬＬ　Ｗｉｄｔｈ', gives: 'full width' },
  ])('$text', ({ text, gives }) => {
    expect(parts(text)).toBe(gives);
  });

  test.each([
    { text: 'useCart()', gives: 'use cart', whole: 'usecart' },
    { text: 'HTTPServer', gives: 'http server', whole: 'httpserver' },
    { text: 'rate-limit', gives: 'rate limit', whole: 'ratelimit' },
    { text: 'DATABASE_URL', gives: 'database url', whole: 'databaseurl' },
    { text: 'KFX-2291', gives: 'kfx 2291', whole: 'kfx2291' },
    { text: 'v2', gives: '2', whole: 'v2' },
    { text: '2.18.0-rc.3', gives: '2 18 0 rc 3', whole: '2.18.0rc' },
    { text: '168.119.44.210', gives: '168 119 44 210', whole: '168.119.44.210' },
    { text: 'Tomáš', gives: 'tomas', whole: '' },
  ])('a name gives its parts and the whole name: $text', ({ text, gives, whole }) => {
    expect(parts(text)).toBe(gives);
    expect(wholes(text)).toBe(whole);
  });

  test.each([
    { text: '数据库备份', gives: '数据 据库 库备 备份' },
    { text: '猫', gives: '猫' },
    { text: 'Redisからに', gives: 'redis から らに' },
    { text: 'ﾃﾞｰﾀ', gives: 'デー ータ' },
    { text: '회의는 언제', gives: '회의 의는 언제' },
    { text: '🚀', gives: '🚀' },
  ])('a script without spaces gives pairs: $text', ({ text, gives }) => {
    expect(parts(text)).toBe(gives);
  });

  test('each word has its position', () => {
    expect(wordsOf('an useCart, 数据库').map(({ term, start, end, position }) => [term, start, end, position])).toEqual([
      ['an', 0, 2, 0],
      ['use', 3, 6, 1],
      ['cart', 6, 10, 2],
      ['usecart', 3, 10, 1],
      ['数据', 12, 14, 3],
      ['据库', 13, 15, 4],
    ]);
  });

  test('the words of any text are inside it, in order, and short', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const words = wordsOf(text);
        for (const { term, start, end } of words) {
          expect(start).toBeGreaterThanOrEqual(0);
          expect(end).toBeGreaterThan(start);
          expect(end).toBeLessThanOrEqual(text.length);
          expect(term.length).toBeLessThanOrEqual(TERM_UNITS);
        }
        const positions = words.filter(({ parts: count }) => count === 0).map(({ position }) => position);
        expect(positions).toEqual([...new Set(positions)].toSorted((one, other) => one - other));
      }),
    );
  });

  test('ASCII gives the same words as a string, as bytes, and as a part of another text', () => {
    const unit = fc.constantFrom('a', 'B', '1', '-', '_', '.', ' ', 'useCart', 'HTTPServer', 'v1.2.3', 'x'.repeat(70));
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 30 }), fc.nat(4), (units, before) => {
        const text = units.join('');
        const bytes = Buffer.from('-'.repeat(before) + text + 'after');
        const words: Word[] = [];
        readAscii(bytes, before, before + text.length, {
          filter: TermFilter.all,
          onPart: (source, from, to, start, position) => {
            const term = source.toString('latin1', from, to).toLowerCase().slice(0, TERM_UNITS);
            words.push({ term, start, end: start + to - from, position, parts: 0 });
          },
          onTerm: (term, start, end, position, count) => words.push({ term, start, end, position, parts: count }),
        });
        expect(words).toEqual(wordsOf(text));
        const terms: Word[] = [];
        readUnicode(text, {
          filter: TermFilter.all,
          onTerm: (term, start, end, position, count) => terms.push({ term, start, end, position, parts: count }),
        });
        expect(terms).toEqual(words);
      }),
    );
  });

  test.each(['a', 'a-', 'aA', '1.', 'a1', '漢', 'é', 'e\u0301', '\u0301', '🚀', '\ud800', "a'"])(
    'in time that grows with its length: many of %j',
    (unit) => {
      const text = unit.repeat(65_536 / unit.length);
      expect(measureCpu(() => wordsOf(text))).toBeLessThan(500);
    },
  );
});

describe('folding makes variants equal', () => {
  test.each([
    ['CAFÉ', 'cafe'],
    ['Straße', 'strasse'],
    ['İSTANBUL', 'istanbul'],
    ['ılık', 'ilik'],
    ['Łódź', 'lodz'],
    ['smørrebrød', 'smorrebrod'],
    ['œuf', 'oeuf'],
    ['Ελλάς', 'ελλασ'],
    ['ёлка', 'елка'],
    ['أحمد', 'احمد'],
    ['שָׁלוֹם', 'שלום'],
    ['がぎ', 'がぎ'],
    ['한국', '한국'],
    ['ﬁn', 'fin'],
  ])('%s becomes %s', (text, folded) => {
    expect(foldText(text)).toBe(folded);
  });

  test('folding a folded text changes nothing', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(foldText(foldText(text))).toBe(foldText(text));
      }),
    );
  });
});

test('every form contains its stem except for the last letter', () => {
  const letters = fc.constantFrom(...'a b e g i l m n o r s t u y а б в г е и м о у х ы я ال ات و ל ה'.split(' '));
  const endings = fc.constantFrom('', 's', 'es', 'ies', 'ing', 'ed', 'ly', 'ment', 'tion', 'ions', 'ами', 'ого', 'ين');
  fc.assert(
    fc.property(fc.array(letters, { minLength: 1, maxLength: 8 }), endings, (word, ending) => {
      const term = word.join('') + ending;
      expect(term).toContain(stemOf(term).slice(0, -1));
    }),
    { numRuns: 2000 },
  );
});

describe('the forms of a word share a stem', () => {
  test.each([
    ['deploy', 'deploys', 'deployed', 'deploying', 'deployment'],
    ['cache', 'caches', 'cached', 'caching'],
    ['allergy', 'allergies'],
    ['plan', 'plans', 'planned', 'planning'],
    ['migrate', 'migrates', 'migrated', 'migrating', 'migration', 'migrations'],
    ['box', 'boxes'],
    ['reunion', 'reunions'],
    ['книга', 'книги', 'книгу', 'книгами'],
    ['قهوه', 'القهوه'],
  ])('%s, %s …', (...forms) => {
    expect(new Set(forms.map(stemOf)).size).toBe(1);
  });

  test.each([
    ['list', 'listen'],
    ['bus', 'bu'],
    ['this', 'thi'],
    ['thing', 'th'],
    ['code', 'cod-liver'],
    ['class', 'clas'],
  ])('other words have different stems: %s, %s', (one, other) => {
    expect(stemOf(one)).not.toBe(stemOf(other));
  });
});
