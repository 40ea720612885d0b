import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { FactInput } from '../../src/contract/fact.ts';
import { parseScope, spellScope } from '../../src/contract/forget.ts';
import { operations } from '../../src/contract/operations.ts';
import { foldCase, visibleText } from '../../src/contract/schema.ts';
import { runs } from '../support/runs.ts';
import { aFact, misleading, refusal } from './asking.ts';

const anyText = fc.string({ unit: 'binary' });
/** Texts that are likely to be valid, so that the properties are not only checked on refused texts. */
const likelyText = fc.oneof(
  anyText,
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
  fc.stringMatching(/^ ?[A-Za-z0-9_.-]{1,70} ?$/),
);

const likelyFact = fc.record(
  {
    key: likelyText,
    value: likelyText,
    category: likelyText,
    tags: fc.array(likelyText, { maxLength: 40 }),
    ttl_seconds: fc.oneof(fc.constant(0), fc.integer({ min: 3000, max: 40_000_000 })),
  },
  { requiredKeys: ['key', 'value'] },
);

describe('the canonical form', () => {
  test('of a fact does not change when validated again (R-FACT-12)', () => {
    let seen = 0;
    fc.assert(
      fc.property(likelyFact, (sent) => {
        const once = FactInput().safeParse(sent);
        if (!once.success) return;
        seen += 1;
        expect(FactInput().parse(once.data)).toEqual(once.data);
      }),
      { numRuns: runs(5000) },
    );
    expect(seen).toBeGreaterThan(runs(5000) / 50);
  });

  test('plain text is folded like text with other characters', () => {
    const plain = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCodePoint(code)) });
    fc.assert(
      fc.property(plain, (text) => {
        // The last letter makes each function take its general path.
        expect(`${foldCase(text)}日`).toBe(foldCase(`${text}日`));
        expect(`${visibleText(text)}日`).toBe(visibleText(`${text}日`));
      }),
    );
  });

  test('of a folded text does not change when folded again (R-FACT-06)', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(foldCase(foldCase(text))).toBe(foldCase(text));
      }),
    );
  });

  test('of every single character does not change when folded again (R-FACT-06)', () => {
    const restless = Array.from({ length: 0x110000 }, (_, point) => String.fromCodePoint(point)).filter((character) => {
      const folded = foldCase(character);
      return foldCase(folded) !== folded;
    });
    expect(restless).toEqual([]);
  });
});

describe('a scope', () => {
  const kinds = ['pack', 'pipeline', 'key', 'prefix', 'category', 'tag', 'client'] as const;

  test('of a scope can be formatted and parsed without loss (R-FORGET-02)', () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), fc.string({ unit: 'grapheme' }), (kind, name) => {
        fc.pre(name.trim() !== '');
        expect(parseScope(spellScope({ kind, name }))).toEqual({ kind, name });
      }),
    );
  });

  test('of a scope keeps exactly the text that was sent (R-FORGET-02)', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          anyText,
          fc.constantFrom(...kinds).chain((kind) => anyText.map((rest) => `${kind}:${rest}`)),
        ),
        (text) => {
          const scope = parseScope(text);
          expect(scope === undefined || spellScope(scope) === text).toBe(true);
        },
      ),
    );
  });
});

describe('any input', () => {
  const names = Object.keys(operations) as (keyof typeof operations)[];
  const fields = [...new Set(names.flatMap((name) => Object.keys(operations[name].input().shape)))];
  const anything = fc.oneof(
    fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withSparseArray: true }),
    fc.dictionary(fc.constantFrom(...fields, '__proto__', 'constructor'), fc.anything(), { maxKeys: 6 }),
  );

  test.each(names)('is accepted by %s or refused as a ZodError (R-OPS-03)', (name) => {
    fc.assert(
      fc.property(anything, (input) => {
        const parsed = operations[name].input().safeParse(input);
        expect(parsed.success || parsed.error instanceof z.ZodError).toBe(true);
      }),
      { numRuns: runs(500) },
    );
  });

  test.each(names)(
    'refused by %s gets one sentence with a remedy that does not quote the input (R-FACT-11, R-ERR-02)',
    (name) => {
      const secret = 'Hunter2';
      const planted = fc.oneof(
        fc.constant(secret),
        fc.constant({ [secret]: secret }),
        fc.array(fc.oneof(fc.constant(secret), fc.constant(-1), fc.constant({ type: secret, query: 7 })), { maxLength: 3 }),
        fc.constant(secret.repeat(20_000)),
        fc.constant(-1),
        fc.constant(null),
      );
      const input = fc.dictionary(fc.constantFrom(...fields, secret), planted, { minKeys: 1, maxKeys: 6 });
      fc.assert(
        fc.property(input, (sent) => {
          const says = refusal(operations[name].input(), sent);
          if (says === undefined) return;
          expect(says).toMatch(/^(The request|[a-z_A-Z]+(\.[a-z0-9]+)*) (must|is|has|holds|begins|belongs)\b[^\n]*; [^\n]+\.$/);
          expect(says).not.toContain(secret);
          expect(says).not.toMatch(misleading);
        }),
        { numRuns: runs(500) },
      );
    },
  );
});

describe('the work of validating (R-FACT-13)', () => {
  /** A repeated group that contains a repetition. Such a pattern can take exponential time. */
  const nested = /\((?:[^()\\]|\\.)*(?:[+*]|\{\d+,\d*\})(?:[^()\\]|\\.)*\)(?:[+*]|\{\d+,)/;

  const folder = resolve('src/contract');
  const patterns = readdirSync(folder).flatMap((file) =>
    [
      ...readFileSync(resolve(folder, file), 'utf8').matchAll(
        /[=(\s]\/(?![/*])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+)\/[a-z]*[,;.)\s]/g,
      ),
    ].map(([, pattern = '']) => pattern),
  );

  test('has no pattern that nests quantifiers', () => {
    expect(patterns.length).toBeGreaterThan(3);
    expect(patterns.filter((pattern) => nested.test(pattern))).toEqual([]);
  });

  test.each(['(a+)+', '(a*)*b', String.raw`(\d+,)*`, '(x{2,})+'])('the check detects %s', (pattern) => {
    expect(pattern).toMatch(nested);
  });

  const huge = ['a', ' a', 'ü', '\u{1d41a}', '\ufdfa', 'e\u0301', '\u200b'].map((unit) => unit.repeat(100_000 / unit.length));

  test.each(['key', 'category', 'tags'])('does not normalize a %s that is too long', (field) => {
    const normalize: (this: string, form?: string) => string = Reflect.get(String.prototype, 'normalize');
    let worked = 0;
    vi.spyOn(String.prototype, 'normalize').mockImplementation(function (this: string, form) {
      worked += this.length;
      return normalize.call(this, form);
    });
    for (const text of huge) refusal(FactInput(), { ...aFact, [field]: field === 'tags' ? [text] : text });
    expect(worked).toBeLessThan(2000);
  });

  test('does not read the tags if there are too many', () => {
    const parsed = FactInput().safeParse({ ...aFact, tags: Array(30_000).fill('') });
    expect(parsed.error?.issues).toHaveLength(1);
  });
});
