import type * as z from 'zod';

/**
 * Describes the first validation error in one sentence that names the field. The message never quotes the input. Models often send
 * null for an optional field, so for a null in `input` the message adds that the field can be left out.
 */
export function explainIssue(error: z.ZodError, input?: unknown): string {
  const [first] = error.issues;
  if (first === undefined) return 'The request is invalid; compare it with the schema of this operation.';
  const field = first.path.map(String).join('.') || 'The request';
  let value = input;
  for (const part of first.path) value = Object(value)[part];
  const isNull = value === null && first.path.length > 0 && first.message.startsWith('must be');
  return `${field} ${first.message}${isNull ? '; if the field is optional, leave it out instead of sending null' : ''}.`;
}
