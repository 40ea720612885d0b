import * as z from 'zod';

type JsonSchema = Record<string, unknown>;

/**
 * Parts of a schema times parts of a value: what takes longer is not checked here, where everybody would wait. Alternatives within
 * alternatives double the work with each step down, and a schema that refers to itself has no end of them.
 */
const MOST_WORK = 500_000;

/**
 * The schema of a pack as the program uses it. Shown as its author wrote it; checked here without its patterns, for a pattern
 * can take for ever, and only as far as that is little work. The pack's own process checks it whole.
 */
export function schemaFrom(json: JsonSchema): z.ZodType {
  // What the library wrote in one process it reads in another, and says what it cannot.
  const whole = z.fromJSONSchema(withoutPatterns(json) as Parameters<typeof z.fromJSONSchema>[0]);
  const parts = partsOfSchema(json);
  const schema = z.unknown().transform((value, context) => {
    if (parts * countOf(value, MOST_WORK / parts) > MOST_WORK) return value;
    const { success, data, error } = whole.safeParse(value);
    if (success) return data;
    context.issues.push(...error.issues.map((issue) => ({ ...issue, input: value }) as z.core.$ZodRawIssue));
    return z.NEVER;
  });
  schema._zod.toJSONSchema = () => structuredClone(json);
  return schema;
}

/** Keywords whose value is a schema, a list of them, or schemas by name. */
const ONE = new Set(['additionalProperties', 'contains', 'else', 'if', 'items', 'not', 'propertyNames', 'then']);
const MANY = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems']);
const NAMED = new Set(['$defs', 'definitions', 'dependentSchemas', 'properties']);
const PATTERNS = new Set(['contentEncoding', 'format', 'pattern', 'patternProperties']);
const ASIDE = new Set(['$defs', 'definitions']);

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

/** How many schemas it is with each reference in full; more than anybody can count where it refers to itself. */
function partsOfSchema(json: JsonSchema): number {
  let parts = 0;
  const waiting: unknown[] = [json];
  while (waiting.length > 0 && parts <= MOST_WORK) {
    const schema = waiting.pop();
    if (!isObject(schema)) continue;
    parts += 1;
    const { $ref: to } = schema;
    if (typeof to === 'string') waiting.push(referred(json, to));
    for (const [keyword, value] of Object.entries(schema)) {
      if (ASIDE.has(keyword)) continue;
      if (MANY.has(keyword) && Array.isArray(value)) waiting.push(...(value as unknown[]));
      else if (ONE.has(keyword)) waiting.push(value);
      else if (NAMED.has(keyword) && isObject(value)) waiting.push(...Object.values(value));
    }
  }
  return parts;
}

/** As the library writes it: the whole, or one that is set aside. */
function referred(json: JsonSchema, to: string): unknown {
  if (to === '#') return json;
  const [, place = '', name = ''] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(to) ?? [];
  const aside = json[place];
  return isObject(aside) ? aside[name] : undefined;
}

/** How many values it is, as far as that matters. */
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
