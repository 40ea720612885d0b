import type { ZodType } from 'zod';
import { explainIssue } from '../../src/contract/schema.ts';

export const aFact = { key: 'preferences/editor', value: 'Uses Helix' };

/** The sentence a caller gets for an input that is refused; undefined for one that is accepted. */
export function refusal(schema: ZodType, input: unknown): string | undefined {
  const parsed = schema.safeParse(input);
  return parsed.success ? undefined : explainIssue(parsed.error, input);
}

/** Words by which some clients tell kinds of failure apart, whatever the rest of the sentence says. */
export const misleading = /timeout|401|unauthorized|forbidden|enoent/i;
