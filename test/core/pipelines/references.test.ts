import { describe, expect, test } from 'vitest';
import { valueAt, fillReferences, isShallow, referencesIn } from '../../../src/core/pipelines/references.ts';
import { measureCpu } from '../../support/work.ts';

const source = (value: unknown) =>
  referencesIn(value).map((reference) => (reference === 'unreadable' ? reference : reference.source));

describe('references', () => {
  test.each<[value: unknown, found: string[]]>([
    ['${{ inputs.repo }}', ['inputs.repo']],
    ['${{inputs.repo}}', ['inputs.repo']],
    ['a ${{ inputs.a }} b ${{ steps.one.output.x-y.0.z_1 }}', ['inputs.a', 'steps.one.output.x-y.0.z_1']],
    [{ deep: [{ in: '${{ steps.one.output }}' }], n: 5, nothing: null }, ['steps.one.output']],
    ['costs $5 {{ mustache }} $ {{ x }}', []],
    ['${{ }}', ['unreadable']],
    ['${{ inputs. }}', ['unreadable']],
    ['${{ inputs.a.b }}', ['unreadable']],
    ['${{ steps.one }}', ['unreadable']],
    ['${{ steps.one.input.x }}', ['unreadable']],
    ['${{ steps.one.output..x }}', ['unreadable']],
    ['${{ env.HOME }}', ['unreadable']],
    ['${{ inputs.a', ['unreadable']],
    ['${{ inputs.a + 1 }}', ['unreadable']],
    ['${{ ${{ inputs.a }} }}', ['inputs.a', 'unreadable']],
  ])('in %j are %j', (value, found) => {
    expect(source(value)).toEqual(found);
  });

  test('are found quickly in a text of references only', () => {
    const text = `\${{${' '.repeat(100)}`.repeat(10_000);
    expect(measureCpu(() => expect(referencesIn(text)).toEqual(['unreadable']))).toBeLessThan(500);
  });
});

describe('filling in', () => {
  const known: Record<string, unknown> = {
    'inputs.text': 'x',
    'inputs.number': 5,
    'inputs.list': [1, { a: 'b' }],
    'inputs.nothing': null,
    'inputs.braces': '${{ inputs.text }} $& $1',
  };
  const filled = (value: unknown) => fillReferences(value, ({ source: name }) => known[name]);

  test.each<[what: string, value: unknown, becomes: unknown]>([
    [
      'a reference that is the whole text keeps its type',
      { a: '${{ inputs.number }}', b: '${{ inputs.list }}' },
      { a: 5, b: [1, { a: 'b' }] },
    ],
    ['null stays null', { a: '${{ inputs.nothing }}' }, { a: null }],
    ['a reference within a text becomes text', 'n=${{ inputs.number }}, ${{ inputs.list }}', 'n=5, [1,{"a":"b"}]'],
    ['spaces around a reference make the value a text', ' ${{ inputs.number }}', ' 5'],
    ['two references make the value a text', '${{ inputs.number }}${{ inputs.number }}', '55'],
    ['an omitted input is left out of an object', { a: '${{ inputs.no }}', b: 1 }, { b: 1 }],
    ['an omitted input becomes null in a list', ['${{ inputs.no }}', 1], [null, 1]],
    ['an omitted input becomes empty in a text', 'a${{ inputs.no }}b', 'ab'],
    ['a reference inside a value is not filled in', '<${{ inputs.braces }}>', '<${{ inputs.text }} $& $1>'],
    ['values other than text are unchanged', { a: [true, null, 1.5] }, { a: [true, null, 1.5] }],
  ])('%s (R-PACK-22)', (_what, value, becomes) => {
    expect(filled(value)).toEqual(becomes);
  });

  test('creates plain objects only', () => {
    const made = fillReferences(JSON.parse('{"__proto__":{"polluted":"${{ inputs.x }}"}}'), () => 1) as object;
    expect(Object.getPrototypeOf(made)).toBe(Object.prototype);
    expect(Object.keys(made)).toEqual(['__proto__']);
  });

  test('fails if the referenced values are too large', () => {
    const big = 'x'.repeat(600 * 1024);
    expect(fillReferences('${{ inputs.a }}', () => big)).toBe(big);
    expect(() => fillReferences(['${{ inputs.a }}', '${{ inputs.a }}'], () => big)).toThrow(/1024 KiB/);
    expect(() => fillReferences('${{ inputs.a }}'.repeat(5000), () => big)).toThrow(/1024 KiB/);
  });
});

describe('the value at a path', () => {
  const value = { list: [{ a: 1 }, 'text'], empty: '', no: null, 'x-y': 2 };

  test.each<[path: string, found: unknown]>([
    ['list.0.a', 1],
    ['list.1', 'text'],
    ['x-y', 2],
    ['empty', ''],
    ['no', null],
    ['list.2', undefined],
    ['list.length', undefined],
    ['list.-1', undefined],
    ['list.1.0', undefined],
    ['list.1.length', undefined],
    ['no.x', undefined],
    ['constructor', undefined],
    ['__proto__', undefined],
    ['list.map', undefined],
    ['other', undefined],
  ])('%s is %j', (path, found) => {
    expect(valueAt(value, path.split('.'))).toEqual(found);
  });

  test('is the whole value for an empty path', () => {
    expect(valueAt(value, [])).toBe(value);
  });
});

test('the nesting depth is limited', () => {
  const nested = (depth: number): unknown => (depth === 0 ? 'x' : [nested(depth - 1)]);
  expect(isShallow(nested(32))).toBe(true);
  expect(isShallow(nested(33))).toBe(false);
  let endless: unknown = 'x';
  for (let turn = 0; turn < 1_000_000; turn += 1) endless = [endless];
  expect(isShallow(endless)).toBe(false);
});
