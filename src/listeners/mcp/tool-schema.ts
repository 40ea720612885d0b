import * as z from 'zod';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Bounds that zod adds to every integer. */
const BOUNDS: ReadonlySet<unknown> = new Set([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]);

/**
 * The input schema without what a model does not need, because it pays for every word on every turn. The tool has the title and
 * description already; `terse` shortens the descriptions of fields.
 */
export function toolInputSchema(
  schema: z.ZodType,
  terse: Readonly<Record<string, string>> = {},
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
  for (const [name, description] of Object.entries(terse)) Object.assign(rest.properties?.[name] ?? {}, { description });
  return pruned(rest, isUnbounded) as JsonSchema & { type: 'object' };
}

/**
 * The output schema, with descriptions only of the fields in `described`. It allows additional fields, so that clients with an older
 * schema accept new ones.
 */
export function toolOutputSchema(schema: z.ZodType, described: readonly string[]): JsonSchema & { type: 'object' } {
  const { $schema: _draft, ...rest } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' });
  const kept: ReadonlySet<string> = new Set(described);
  return pruned(rest, (name, value, path) => {
    if (name === 'description') return typeof value === 'string' && !kept.has(path.at(-1) ?? '');
    // A model does not need the bounds of values it receives.
    return name === 'additionalProperties' || name === 'minimum' || name === 'maximum';
  }) as JsonSchema & { type: 'object' };
}

const isUnbounded = (name: string, value: unknown): boolean => (name === 'maximum' || name === 'minimum') && BOUNDS.has(value);

type Drop = (name: string, value: unknown, path: readonly string[]) => boolean;

function pruned(value: unknown, drop: Drop, path: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((item) => pruned(item, drop, path));
  if (typeof value !== 'object' || value === null) return value;
  // The keys below `properties` are field names, not keywords; a field may be called `description`.
  const names = path.at(-1) === 'properties';
  const entries = Object.entries(value).filter(([name, part]) => names || !drop(name, part, path));
  return Object.fromEntries(entries.map(([name, part]) => [name, pruned(part, drop, [...path, name])]));
}
