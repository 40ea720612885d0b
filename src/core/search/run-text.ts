import * as z from 'zod';
import { lazy } from '../../contract/schema.ts';
import type { Entry } from '../store/store.ts';

const Row = lazy(() =>
  z.object({
    outcome: z.string(),
    version: z.string().optional(),
    run_id: z.string().optional(),
    duration_ms: z.number().optional(),
    learn_inputs: z.record(z.string(), z.string()).default({}),
  }),
);

/** White space, and the control characters that some readers take for the end of a line. */
const BLANKS = /[\s\p{Cc}]+/gu;

/** A row of the record as it can be searched and shown, below its heading. Undefined for what is no such row. */
export function runText({ value }: Pick<Entry, 'value'>): string | undefined {
  const { data } = Row().safeParse(JSON.parse(value));
  if (!data) return undefined;
  const { outcome, version, run_id: run, duration_ms: duration, learn_inputs: inputs } = data;
  const lines = [
    `Outcome: ${outcome}`,
    ...(version === undefined ? [] : [`Version: ${version}`]),
    ...(run === undefined ? [] : [`Run ID: ${run}`]),
    ...(duration === undefined ? [] : [`Duration: ${duration}ms`]),
  ];
  const fields = Object.entries(inputs).toSorted(([one], [other]) => (one < other ? -1 : 1));
  if (fields.length === 0) return lines.join('\n');
  // One line each: what somebody sent must not look like a line of ours.
  const used = fields.map(([name, said]) => `- ${name}: ${said.replace(BLANKS, ' ')}`);
  return [...lines, '', 'Inputs used:', ...used].join('\n');
}

interface Run {
  readonly what: 'pack' | 'pipeline';
  readonly id: string;
}

/** Which pack or pipeline a row is about, by its key. */
export function runOf(key: string): Run {
  const [category, id = ''] = key.split('/');
  return { what: category === 'pack_history' ? 'pack' : 'pipeline', id };
}
