import type { ZodType } from 'zod';
import { explainIssue } from '../../src/contract/schema.ts';

export const aFact = { key: 'preferences/editor', value: 'Uses Helix' };

/** The error message for an input, or undefined if it is valid. */
export function refusal(schema: ZodType, input: unknown): string | undefined {
  const parsed = schema.safeParse(input);
  return parsed.success ? undefined : explainIssue(parsed.error, input);
}

/** Words that some clients search for in error messages. */
export const misleading = /timeout|401|unauthorized|forbidden|enoent/i;
