import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { schemaFrom } from '../../../src/main/own-packs/schema.ts';

/** Two branches at every step: 2^steps paths. */
function doubling(keyword: 'allOf' | 'anyOf' | 'oneOf', steps: number): Record<string, unknown> {
  const $defs: Record<string, unknown> = { [`d${steps}`]: { type: 'object' } };
  for (let step = 0; step < steps; step += 1) {
    $defs[`d${step}`] = { [keyword]: [{ $ref: `#/$defs/d${step + 1}` }, { $ref: `#/$defs/d${step + 1}` }] };
  }
  return { type: 'object', properties: { a: { $ref: '#/$defs/d0' } }, required: ['a'], $defs };
}

describe('the schema of an own pack does not delay other callers (R-PACK-19)', () => {
  test.each(['allOf', 'anyOf', 'oneOf'] as const)('by nested %s', (keyword) => {
    // A full check would take practically forever.
    expect(schemaFrom(doubling(keyword, 60)).safeParse({ a: 5 })).toMatchObject({ success: true });
    expect(schemaFrom(doubling(keyword, 3)).safeParse({ a: 5 })).toMatchObject({ success: false });
  });

  test('by recursion over deep values', () => {
    const tree = {
      type: 'object',
      properties: { a: { anyOf: [{ $ref: '#' }, { $ref: '#' }] } },
      additionalProperties: false,
    };
    const deep = JSON.parse(`${'{"a":'.repeat(50)}5${'}'.repeat(50)}`) as object;
    expect(schemaFrom(tree).safeParse(deep)).toMatchObject({ success: true });
  });

  test('by a long list of values with many alternatives', () => {
    const one = { anyOf: Array.from({ length: 500 }, (_, at) => ({ type: 'object', required: [`f${at}`] })) };
    const json = { type: 'object', properties: { list: { type: 'array', items: one } } };
    expect(schemaFrom(json).safeParse({ list: Array.from({ length: 300_000 }, () => 1) })).toMatchObject({ success: true });
    expect(schemaFrom(json).safeParse({ list: [1] })).toMatchObject({ success: false });
  });
});

test('a schema reports the path of an invalid value, and is shown as written', () => {
  const json = z.toJSONSchema(z.object({ list: z.array(z.object({ name: z.string().max(3) })) }));
  const schema = schemaFrom(json);
  expect(schema.safeParse({ list: [{ name: 'Ada' }] })).toEqual({ success: true, data: { list: [{ name: 'Ada' }] } });
  const { error } = schema.safeParse({ list: [{ name: 'Grace' }] });
  expect(error?.issues[0]).toMatchObject({ path: ['list', 0, 'name'], code: 'too_big' });
  expect(z.toJSONSchema(schema, { io: 'input' })).toMatchObject({ properties: { list: { type: 'array' } } });
});
