import * as z from 'zod';

type JsonSchema = Record<string, unknown>;

/**
 * The schema of a pack as the program uses it. Shown as its author wrote it; checked here without its patterns, for a pattern
 * can take for ever, and here everybody would wait. The pack's own process checks it whole.
 */
export function schemaFrom(json: JsonSchema): z.ZodType {
  // What the library wrote in one process it reads in another, and says what it cannot.
  const schema = z.fromJSONSchema(withoutPatterns(json) as Parameters<typeof z.fromJSONSchema>[0]);
  schema._zod.toJSONSchema = () => structuredClone(json);
  return schema;
}

/** Keywords whose value is a schema, a list of them, or schemas by name. */
const ONE = new Set(['additionalProperties', 'contains', 'else', 'if', 'items', 'not', 'propertyNames', 'then']);
const MANY = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']);
const NAMED = new Set(['$defs', 'definitions', 'dependentSchemas', 'properties']);
const PATTERNS = new Set(['contentEncoding', 'format', 'pattern', 'patternProperties']);

function withoutPatterns(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema).filter(([keyword]) => !PATTERNS.has(keyword));
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, inside(keyword, value)]));
}

function inside(keyword: string, value: unknown): unknown {
  if (MANY.has(keyword) && Array.isArray(value)) return value.map(withoutPatterns);
  if (ONE.has(keyword)) return withoutPatterns(value);
  if (!NAMED.has(keyword) || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, withoutPatterns(schema)]));
}

const isObject = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null && !Array.isArray(value);
