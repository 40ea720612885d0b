import { runInThisContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as json from '../../../src/main/connect/json-text.ts';

const { json5 } = json;

/** A handwritten text with every JSON5 feature. */
const BY_HAND = `// mine
{
\tgateway: { mode: 'local', "port": 0x4965, },
\t'it\\'s': "a\\
b", // two lines of one
\t\\u0061llow_: [ .5, 5., +1, -Infinity, NaN, '\\x41\\v\\0' ], /* { ' */
\tplugins: {
\t\tallow: [
\t\t\t'memory-core', // theirs
\t\t],
\t},
}
`;

describe('the JSON5 editor (R-CLAW-14)', () => {
  test('reads every value', () => {
    expect(json5.valueAt(BY_HAND, [])).toEqual({
      gateway: { mode: 'local', port: 18789 },
      "it's": 'ab',
      allow_: [0.5, 5, 1, -Infinity, Number.NaN, 'A\v\0'],
      plugins: { allow: ['memory-core'] },
    });
  });

  test('adds and removes a value and changes nothing else', () => {
    const set = json5.setValue(BY_HAND, ['mcp', 'servers', 'helmdeck'], { command: 'x' });
    expect(set).toBe(
      BY_HAND.replace(
        /\n\}\n$/,
        '\n\t"mcp": {\n\t\t"servers": {\n\t\t\t"helmdeck": {\n\t\t\t\t"command": "x"\n\t\t\t}\n\t\t}\n\t},\n}\n',
      ),
    );
    expect(json5.dropValue(set, ['mcp'])).toBe(BY_HAND);
    const added = json5.addToList(BY_HAND, ['plugins', 'allow'], 'ours');
    expect(added).toBe(BY_HAND.replace('// theirs', `// theirs\n\t\t\t"ours",`));
    expect(json5.dropFromList(added, ['plugins', 'allow'], 'ours')).toBe(BY_HAND);
    expect(json5.setValue(BY_HAND, ['gateway', 'mode'], 'local')).toBe(BY_HAND);
  });

  test('appends after a comment that ends with an unusual line break', () => {
    for (const end of ['\r', '\u2028']) {
      const text = `{ a: 1 // one${end}}`;
      expect(json5.valueAt(json5.setValue(text, ['b'], 2), [])).toEqual({ a: 1, b: 2 });
    }
  });

  test.each([
    '{ a: 01 }',
    "{ a: 'x }",
    "{ a: 'x\n' }",
    "{ a: '\\u00x1' }",
    "{ a: '\\1' }",
    '{ 1a: 1 }',
    '{ \\u0011a: 1 }',
    '{ a: truely }',
    '{ a: 1 b: 2 }',
    '{ a: [,] }',
    '{ a: 1 /* }',
  ])('refuses invalid JSON5: %s', (text) => {
    expect(() => json5.setValue(text, ['b'], 1)).toThrow(
      /The file is not valid JSON5 \(line \d\), so the file was not changed\. Correct the file/,
    );
  });
});

test.each(["{ 'a': 1 }", '{ a: 1 }', '{ "a": 0x1 }', '{ "a": +1 }', '{ "a": .5 }', '{\u00A0"a": 1 }'])(
  'the JSON editor refuses JSON5 syntax other than comments and trailing commas: %s (R-CONN-06)',
  (text) => {
    expect(() => json.setValue(text, ['b'], 1)).toThrow(/The file is not valid JSON \(line 1\)/);
  },
);

/** White space and comments between two tokens. Some comments contain text that looks like syntax. */
const gaps = fc
  .array(fc.constantFrom('', ' ', '\n', '\r\n', '\t', '\n  ', '// a "{ [,\n', '// b */\r\n', '/* c, } */', '/*\n// " */'), {
    maxLength: 3,
  })
  .map((parts) => parts.join(''));

/** Random texts: an object with servers, ours at any position, and a list `allow`. */
const textsIn = (dialect: 'json' | 'json5'): fc.Arbitrary<string> => {
  const holder = (open: string, close: string, members: fc.Arbitrary<readonly string[]>): fc.Arbitrary<string> =>
    fc.tuple(members, fc.infiniteStream(gaps), fc.boolean()).map(([all, stream, comma]) => {
      const gap = (): string => stream.next().value as string;
      const laid = all.map((one, index) => {
        const ended = index < all.length - 1 || comma;
        return gap() + one + gap() + (ended ? ',' : '');
      });
      return open + laid.join('') + gap() + close;
    });
  const named = (names: readonly string[], values: fc.Arbitrary<string>): fc.Arbitrary<readonly string[]> =>
    fc
      .shuffledSubarray([...names])
      .chain((some) =>
        fc.tuple(...some.map((name) => fc.tuple(gaps, gaps, values).map(([one, two, value]) => `${name}${one}:${two}${value}`))),
      );
  const plain = fc.constantFrom('1', '-2.5e3', '"a // b"', '"{\\"}"', 'null', 'true');
  const own = fc.constantFrom('.5', '0x1F', "'it\\'s'", '+1', 'Infinity');
  const value = dialect === 'json' ? plain : fc.oneof(plain, own);
  const quoted = dialect === 'json' ? ['"helmdeck"', '"a"', '"b"', '"c"'] : ['helmdeck', "'a'", '"b"', '$c'];
  const inner = fc.oneof(
    { weight: 3, arbitrary: value },
    holder('{', '}', named(['"x"', '"helmdeck"'], value)),
    holder('[', ']', fc.array(value, { maxLength: 3 })),
  );
  const servers = holder('{', '}', named(quoted, inner));
  const allowed = holder('[', ']', fc.array(fc.oneof(value, fc.constant('"helmdeck"')), { maxLength: 4 }));
  const members = fc
    .tuple(named(['"theme"'], value), servers, allowed, gaps, gaps)
    .chain(([more, some, list, one, two]) => fc.shuffledSubarray([...more, `"servers"${one}:${two}${some}`, `"allow":${list}`]));
  return fc.tuple(gaps, holder('{', '}', members), gaps).map((parts) => parts.join(''));
};

/** The text's value in JavaScript, of which both dialects are a subset. */
const evaluate = (text: string): Record<string, unknown> => runInThisContext(`(${text}\n)`) as Record<string, unknown>;

describe.each([
  { dialect: 'json' as const, edits: json },
  { dialect: 'json5' as const, edits: json5 },
])('random $dialect texts (R-CONN-01, R-CONN-03)', ({ dialect, edits }) => {
  const entry = { command: 'x', args: ['// y'] };

  test('adding, changing and removing our entry leaves the rest unchanged', () => {
    fc.assert(
      fc.property(textsIn(dialect), (text) => {
        const was = evaluate(text);
        const { helmdeck: _, ...others } = Object(was['servers']) as Record<string, unknown>;
        const set = edits.setValue(text, ['servers', 'helmdeck'], entry);
        expect(evaluate(set)).toEqual({ ...was, servers: { ...others, helmdeck: entry } });
        const dropped = edits.dropValue(text, ['servers', 'helmdeck']);
        expect(evaluate(dropped)).toEqual(was['servers'] === undefined ? was : { ...was, servers: others });
        expect(evaluate(edits.dropValue(set, ['servers', 'helmdeck']))).toEqual({ ...was, servers: others });
      }),
      { numRuns: 500 },
    );
  });
});

test('adding and removing our list element leaves random lists otherwise unchanged (R-CLAW-14)', () => {
  fc.assert(
    fc.property(textsIn('json5'), (text) => {
      const was = evaluate(text);
      const list = was['allow'] as unknown[] | undefined;
      const others = list?.filter((one) => one !== 'helmdeck');
      const dropped = json5.dropFromList(text, ['allow'], 'helmdeck');
      expect(evaluate(dropped)).toEqual(list ? { ...was, allow: others } : was);
      const added = json5.addToList(dropped, ['allow'], 'helmdeck');
      expect(evaluate(added)).toEqual(list ? { ...was, allow: [...(others ?? []), 'helmdeck'] } : was);
      expect(evaluate(json5.dropFromList(added, ['allow'], 'helmdeck'))).toEqual(evaluate(dropped));
    }),
    { numRuns: 500 },
  );
});

test('removing our entry after a line comment does not comment out the rest of the line (R-CONN-03)', () => {
  const text = '{\n  "servers": { // mine\n    "helmdeck": {}, "other": { "a": 1 }\n  }\n}\n';
  expect(json.dropValue(text, ['servers', 'helmdeck'])).toBe(text.replace('"helmdeck": {}, ', ''));
  const last = '{ "servers": { "other": 1, // mine\n    "helmdeck": {} } }';
  expect(json.dropValue(last, ['servers', 'helmdeck'])).toBe('{ "servers": { "other": 1 // mine\n    } }');
});
