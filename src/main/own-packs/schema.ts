import * as z from 'zod';

type JsonSchema = Record<string, unknown>;

/**
 * Maximum work of one check: the number of schema parts, multiplied by the number of value parts. A longer check would block the
 * program for every caller. Nested alternatives multiply the work, and a recursive schema has no bound.
 */
const MAX_WORK = 500_000;

/**
 * Creates the program's copy of a pack's schema. Shows the schema as the author wrote it. Checks values only within the work
 * limit, and ignores patterns, because patterns can take exponential time. The pack's process checks values fully.
 */
export function schemaFrom(json: JsonSchema): z.ZodType {
  // Parses JSON Schema that zod wrote in the pack's process. Throws if zod cannot represent a part of the schema.
  const whole = z.fromJSONSchema(withoutPatterns(json) as Parameters<typeof z.fromJSONSchema>[0]);
  const parts = partsOfSchema(json);
  const schema = z.unknown().transform((value, context) => {
    if (parts * countOf(value, MAX_WORK / parts) > MAX_WORK) return value;
    const { success, data, error } = whole.safeParse(value);
    if (success) return data;
    context.issues.push(...error.issues.map((issue) => ({ ...issue, input: value }) as z.core.$ZodRawIssue));
    return z.NEVER;
  });
  schema._zod.toJSONSchema = () => structuredClone(json);
  return schema;
}

/** JSON Schema keywords: `ONE_SCHEMA` takes a schema, `SCHEMA_LIST` a list of schemas, and `NAMED_SCHEMAS` an object whose values are schemas. */
const ONE_SCHEMA = new Set(['additionalProperties', 'contains', 'else', 'if', 'items', 'not', 'propertyNames', 'then']);
const SCHEMA_LIST = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']);
const NAMED_SCHEMAS = new Set(['$defs', 'definitions', 'dependentSchemas', 'properties']);
const PATTERNS = new Set(['contentEncoding', 'format', 'pattern', 'patternProperties']);
const DEFINITIONS = new Set(['$defs', 'definitions']);

function withoutPatterns(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema).filter(([keyword]) => !PATTERNS.has(keyword));
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, withoutPatternsIn(keyword, value)]));
}

function withoutPatternsIn(keyword: string, value: unknown): unknown {
  if (SCHEMA_LIST.has(keyword) && Array.isArray(value)) return value.map(withoutPatterns);
  if (ONE_SCHEMA.has(keyword)) return withoutPatterns(value);
  if (!NAMED_SCHEMAS.has(keyword) || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, withoutPatterns(schema)]));
}

/** Counts the parts of a schema with every reference expanded. The count exceeds the limit if a schema refers to itself. */
function partsOfSchema(json: JsonSchema): number {
  let parts = 0;
  const waiting: unknown[] = [json];
  while (waiting.length > 0 && parts <= MAX_WORK) {
    const schema = waiting.pop();
    if (!isObject(schema)) continue;
    parts += 1;
    const { $ref: to } = schema;
    if (typeof to === 'string') waiting.push(resolveReference(json, to));
    for (const [keyword, value] of Object.entries(schema)) {
      if (DEFINITIONS.has(keyword)) continue;
      if (SCHEMA_LIST.has(keyword) && Array.isArray(value)) waiting.push(...(value as unknown[]));
      else if (ONE_SCHEMA.has(keyword)) waiting.push(value);
      else if (NAMED_SCHEMAS.has(keyword) && isObject(value)) waiting.push(...Object.values(value));
    }
  }
  return parts;
}

/** Resolves a reference in the form that zod writes: to the root or to a definition. */
function resolveReference(json: JsonSchema, to: string): unknown {
  if (to === '#') return json;
  const [, place = '', name = ''] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(to) ?? [];
  const definitions = json[place];
  return isObject(definitions) ? definitions[name] : undefined;
}

/** Returns the number of values inside a value, including itself. Stops counting above `most`. */
function countOf(value: unknown, most: number): number {
  let count = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0 && count <= most) {
    const part = waiting.pop();
    count += 1;
    if (typeof part === 'object' && part !== null) for (const inner of Object.values(part)) waiting.push(inner);
  }
  return count;
}

const isObject = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null && !Array.isArray(value);
