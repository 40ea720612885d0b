import type * as z from 'zod';

/** The first thing wrong, as one sentence that names the field. Paths hold our own field names and positions, nothing sent. */
export function explain(error: z.ZodError): string {
  const [first] = error.issues;
  if (first === undefined) return 'The request does not fit; compare it with the schema of this operation.';
  const field = first.path.map(String).join('.') || 'The request';
  return `${field} ${first.message}.`;
}
