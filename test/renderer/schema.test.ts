import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { fieldsOf, inputOf, parseObject } from '../../src/renderer/src/packs/schema.ts';

const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' }) as Record<string, unknown>;
const kindOf = (schema: z.ZodType) => fieldsOf(schemaOf(z.object({ field: schema })))?.[0]?.kind;

describe('a form made from a schema', () => {
  test.each([
    ['a text', z.string(), 'text'],
    ['a number', z.number(), 'number'],
    ['a whole number', z.int().min(1), 'number'],
    ['a choice', z.enum(['a', 'b']), 'choice'],
    ['yes or no', z.boolean(), 'flag'],
    ['a list of texts', z.array(z.string()), 'lines'],
    ['a list of numbers', z.array(z.number()), 'json'],
    ['a list of choices', z.array(z.enum(['a'])), 'json'],
    ['an object', z.object({ a: z.string() }), 'json'],
    ['one of several', z.union([z.string(), z.number()]), 'json'],
    ['anything', z.unknown(), 'json'],
  ])('asks for %s', (_what, schema, kind) => {
    expect(kindOf(schema)).toBe(kind);
  });

  test('marks required fields and shows default values', () => {
    const fields = fieldsOf(
      schemaOf(
        z.object({
          a: z.string().describe('The first.'),
          b: z.string().default('b'),
          c: z.int().default(3),
          d: z.string().optional(),
        }),
      ),
    );
    expect(fields?.map(({ name, required, defaultText }) => [name, required, defaultText])).toEqual([
      ['a', true, ''],
      ['b', false, 'b'],
      ['c', false, '3'],
      ['d', false, ''],
    ]);
    expect(fields?.[0]?.description).toBe('The first.');
  });

  test.each([{}, { type: 'object' }, { anyOf: [] }, { type: 'object', properties: [] }, { type: 'string' }])(
    'asks for JSON for %j',
    (schema) => {
      expect(fieldsOf(schema)).toBeUndefined();
    },
  );
});

describe('the input of a form', () => {
  const fields = fieldsOf(
    schemaOf(z.object({ a: z.string(), b: z.number(), c: z.boolean(), d: z.array(z.string()), e: z.unknown() })),
  );

  test('has the types of the schema and omits empty fields', () => {
    const texts = { a: ' a ', b: '1.5', c: 'no', d: 'x\n\ny\n', e: '{"f": null}' };
    expect(inputOf(fields ?? [], texts)).toEqual({ a: ' a ', b: 1.5, c: false, d: ['x', 'y'], e: { f: null } });
    expect(inputOf(fields ?? [], { a: '' })).toEqual({});
  });

  test('is rejected with the name of a field that is not JSON', () => {
    expect(() => inputOf(fields ?? [], { e: 'f' })).toThrow(/^e is not valid JSON/);
  });

  test('must be an object as JSON, and defaults to an empty one', () => {
    expect(parseObject(' ')).toEqual({});
    expect(parseObject('{"a": 1}')).toEqual({ a: 1 });
    for (const text of ['[]', '1', 'null', '"x"']) expect(() => parseObject(text)).toThrow(/must be a JSON object/);
    expect(() => parseObject('{')).toThrow(/is not valid JSON/);
  });

  test('never changes the prototype', () => {
    const [field] = fieldsOf({ type: 'object', properties: JSON.parse('{"__proto__": {"type": "string"}}') as object }) ?? [];
    expect(field?.name).toBe('__proto__');
    expect(inputOf(field ? [field] : [], {})).toEqual({});
    const input = inputOf(field ? [field] : [], JSON.parse('{"__proto__": "x"}') as Record<string, string>);
    expect(Object.getPrototypeOf(input)).toBe(Object.prototype);
  });
});
