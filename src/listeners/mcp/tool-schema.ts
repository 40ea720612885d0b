import * as z from 'zod';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Bounds that every JSON number has. */
const BOUNDS: ReadonlySet<unknown> = new Set([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]);

/**
 * A model pays for this on every turn. The tool has the title and the description already, and `terse` says of fields in a
 * few words what the contract says in full.
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
 * Of what comes back, only what `said` names is explained; the rest explains itself. Fields may be added later: a client that
 * read this schema before must not refuse them.
 */
export function toolOutputSchema(schema: z.ZodType, said: readonly string[]): JsonSchema & { type: 'object' } {
  const { $schema: _draft, ...rest } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' });
  const spoken: ReadonlySet<string> = new Set(said);
  return pruned(rest, (name, value, path) => {
    if (name === 'description') return typeof value === 'string' && !spoken.has(path.at(-1) ?? '');
    // A model needs no bounds of what it receives.
    return name === 'additionalProperties' || name === 'minimum' || name === 'maximum';
  }) as JsonSchema & { type: 'object' };
}

const isUnbounded = (name: string, value: unknown): boolean => (name === 'maximum' || name === 'minimum') && BOUNDS.has(value);

type Drop = (name: string, value: unknown, path: readonly string[]) => boolean;

function pruned(value: unknown, drop: Drop, path: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((item) => pruned(item, drop, path));
  if (typeof value !== 'object' || value === null) return value;
  // A field may be called `description`: below `properties` stand names, not keywords.
  const names = path.at(-1) === 'properties';
  const kept = Object.entries(value).filter(([name, part]) => names || !drop(name, part, path));
  return Object.fromEntries(kept.map(([name, part]) => [name, pruned(part, drop, [...path, name])]));
}
