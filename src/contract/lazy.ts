import type * as z from 'zod';

/** Creates a schema or a large pattern on first use, so that start-up does not wait for any of them. */
export function lazy<T>(create: () => T): () => T {
  let value: T | undefined;
  return () => (value ??= create());
}

/** The parsed type of a lazy schema. */
export type SchemaOutput<Schema extends () => z.ZodType> = z.output<ReturnType<Schema>>;
