import { randomUUID } from 'node:crypto';
import type { Activity } from '../../contract/history.ts';
import { ACTIVITY_TTL } from '../../contract/limits.ts';
import { authorOf, type Caller } from '../access/caller.ts';
import { signatures } from '../store/entry.ts';
import type { Entry, ActivityNote, WriteOutcome } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';

type Row = Activity['activity'][number];
type Details = Pick<Row, 'key' | 'scope' | 'target' | 'failed'>;
type StoredRow = Pick<Row, 'operation'> & Details & WriteOutcome;

/** Creates the activity row for an operation. The store adds the time and the outcome of a write. */
export const noteOf = (caller: Caller, operation: Row['operation'], details: Details): ActivityNote => {
  const valueOf = (outcome?: WriteOutcome): string => JSON.stringify({ operation, ...details, ...outcome } satisfies StoredRow);
  return {
    key: randomUUID(),
    value: valueOf(),
    category: 'activity',
    tags: [],
    author: authorOf(caller),
    lifetime: ACTIVITY_TTL * 1000,
    valueFor: valueOf,
  };
};

// This cast is safe: only `noteOf` writes these rows, and decryption proves that they are unchanged.
const parse = ({ value }: Entry): StoredRow => JSON.parse(value) as StoredRow;

const PIPELINE_CHANGES: ReadonlySet<Row['operation']> = new Set(['createPipeline', 'replacePipeline', 'adoptPipeline']);

/** Returns the fact key or the pipeline that the row's operation wrote, and the `updatedAt` of that entry. */
export function writeOf(entry: Entry): { key: string | undefined; pipeline: string | undefined; at: number } {
  const { operation, key, target, written = entry.updatedAt } = parse(entry);
  return { key, pipeline: PIPELINE_CHANGES.has(operation) ? target : undefined, at: written };
}

export function activityRowOf(entry: Entry): Omit<Row, 'id'> {
  const { operation, key, scope, target, failed, shortened } = parse(entry);
  return {
    at: formatTime(entry.updatedAt),
    operation,
    ...signatures(entry.author),
    ...(key !== undefined && { key }),
    ...(scope !== undefined && { scope }),
    ...(target !== undefined && { target }),
    ...(failed && { failed }),
    ...(shortened && { shortened: { from: formatTime(shortened.from), to: formatTime(shortened.to) } }),
  };
}
