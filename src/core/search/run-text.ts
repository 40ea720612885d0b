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

/** Matches white space and control characters, because programs treat some of them as line ends. */
const BLANKS = /[\s\p{Cc}]+/gu;

/** Returns the text of a run, which is searched and shown in results. Returns undefined if the row is not a run. */
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
  // Each input is put on a single line, so that an input cannot imitate another line of this text.
  const inputLines = fields.map(([name, input]) => `- ${name}: ${input.replace(BLANKS, ' ')}`);
  return [...lines, '', 'Inputs used:', ...inputLines].join('\n');
}

interface Run {
  readonly what: 'pack' | 'pipeline';
  readonly id: string;
}

/** Returns the pack or pipeline that ran, from the key of its audit row. */
export function runOf(key: string): Run {
  const [category, id = ''] = key.split('/');
  return { what: category === 'pack_history' ? 'pack' : 'pipeline', id };
}
