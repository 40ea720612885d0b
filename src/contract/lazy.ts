import type * as z from 'zod';

/**
 * What is made when it is first asked for: schemas, and patterns with long classes. A start waits for none of them, an answer
 * for its own.
 */
export function lazy<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** What fits such a schema, as it comes out. */
export type SchemaOutput<Schema extends () => z.ZodType> = z.output<ReturnType<Schema>>;
