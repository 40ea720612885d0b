import * as z from 'zod';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The bounds that zod adds to every integer. They are left out of tool schemas. */
const BOUNDS: ReadonlySet<unknown> = new Set([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]);

/** Maximum characters of a pattern in a tool schema. A model understands the description of a field better than a long pattern. */
const MAX_PATTERN = 40;

/**
 * Returns the JSON Schema of a tool's input. The schema is short, because models read it on every turn. Its title and description
 * are left out, because the tool already has them. `shortDescriptions` replaces the descriptions of fields. The server checks the
 * input with the full schema, and its error message says what to send.
 */
export function toolInputSchema(
  schema: z.ZodType,
  shortDescriptions: Readonly<Record<string, string>> = {},
): JsonSchema & { type: 'object' } {
  const {
    $schema: _draft,
    title: _title,
    description: _description,
    ...rest
  } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
  });
  for (const [name, description] of Object.entries(shortDescriptions))
    Object.assign(rest.properties?.[name] ?? {}, { description });
  return pruned(rest, isNeedless) as JsonSchema & { type: 'object' };
}

/**
 * Returns the JSON Schema of a tool's output, with descriptions only of the fields in `described`. Additional fields are allowed,
 * so that a client that has an older schema accepts new fields.
 */
export function toolOutputSchema(schema: z.ZodType, described: readonly string[]): JsonSchema & { type: 'object' } {
  const { $schema: _draft, ...rest } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' });
  const kept: ReadonlySet<string> = new Set(described);
  return pruned(rest, (name, value, path) => {
    if (name === 'description') return typeof value === 'string' && !kept.has(path.at(-1) ?? '');
    // Bounds are left out, because a model does not need the bounds of values that it receives.
    return name === 'additionalProperties' || name === 'minimum' || name === 'maximum';
  }) as JsonSchema & { type: 'object' };
}

const isNeedless = (name: string, value: unknown): boolean =>
  ((name === 'maximum' || name === 'minimum') && BOUNDS.has(value)) ||
  (name === 'pattern' && String(value).length > MAX_PATTERN) ||
  // Every name of a JSON object is a string.
  name === 'propertyNames';

type Drop = (name: string, value: unknown, path: readonly string[]) => boolean;

function pruned(value: unknown, drop: Drop, path: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((item) => pruned(item, drop, path));
  if (typeof value !== 'object' || value === null) return value;
  // The keys below `properties` are names of fields, not schema keywords, and a field can be called `description`.
  const isFieldList = path.at(-1) === 'properties';
  const entries = Object.entries(value).filter(([name, part]) => isFieldList || !drop(name, part, path));
  return Object.fromEntries(entries.map(([name, part]) => [name, pruned(part, drop, [...path, name])]));
}
