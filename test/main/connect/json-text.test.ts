import { describe, expect, test } from 'vitest';
import * as json from '../../../src/main/connect/json-text.ts';

const { json5 } = json;

/** As somebody writes it by hand, with all that JSON5 has beyond JSON. */
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

describe('JSON5, as OpenClaw reads it (R-CLAW-14)', () => {
  test('says what it says', () => {
    expect(json5.valueAt(BY_HAND, [])).toEqual({
      gateway: { mode: 'local', port: 18789 },
      "it's": 'ab',
      allow_: [0.5, 5, 1, -Infinity, Number.NaN, 'A\v\0'],
      plugins: { allow: ['memory-core'] },
    });
  });

  test('gets what is ours and nothing else, and lets go of it again', () => {
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

  test('whose only line ends with a comment goes on behind it', () => {
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
  ])('that it is not is refused: %s', (text) => {
    expect(() => json5.setValue(text, ['b'], 1)).toThrow(/It is not JSON5 \(line \d\), so it is left as it is; mend the file/);
  });
});

test.each(["{ 'a': 1 }", '{ a: 1 }', '{ "a": 0x1 }', '{ "a": +1 }', '{ "a": .5 }', '{\u00A0"a": 1 }'])(
  'what goes beyond comments and commas is no JSON to a client that reads JSON: %s (R-CONN-06)',
  (text) => {
    expect(() => json.setValue(text, ['b'], 1)).toThrow(/It is not JSON \(line 1\)/);
  },
);
