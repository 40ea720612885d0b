import type * as z from 'zod';

/**
 * The first thing wrong, as one sentence that names the field. Paths hold our own field names and positions, nothing sent. Models
 * often send null for what they leave open, so where `input` has it there, that is said.
 */
export function explainIssue(error: z.ZodError, input?: unknown): string {
  const [first] = error.issues;
  if (first === undefined) return 'The request does not fit; compare it with the schema of this operation.';
  const field = first.path.map(String).join('.') || 'The request';
  let value = input;
  for (const part of first.path) value = Object(value)[part];
  const isNull = value === null && first.path.length > 0 && first.message.startsWith('must be');
  return `${field} ${first.message}${isNull ? ', and where the field may be left out, leave it out instead of sending null' : ''}.`;
}
