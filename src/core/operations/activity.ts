import { randomUUID } from 'node:crypto';
import type { Activity } from '../../contract/history.ts';
import { ACTIVITY_TTL } from '../../contract/limits.ts';
import { authorOf, type Caller } from '../access/caller.ts';
import { signatures } from '../store/entry.ts';
import type { Entry, ActivityNote, WriteOutcome } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';

type Row = Activity['activity'][number];
type About = Pick<Row, 'key' | 'scope' | 'target' | 'failed'>;
/** The sealed value of a row. */
type Kept = Pick<Row, 'operation'> & About & WriteOutcome;

/** What is kept about a write or a forget, besides who and when. */
export const noteOf = (caller: Caller, operation: Row['operation'], about: About): ActivityNote => {
  const valueOf = (outcome?: WriteOutcome): string => JSON.stringify({ operation, ...about, ...outcome } satisfies Kept);
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

// Only `noteOf` writes these, and the seal says that nobody changed them.
const parse = ({ value }: Entry): Kept => JSON.parse(value) as Kept;

const PIPELINE_CHANGES: ReadonlySet<Row['operation']> = new Set(['createPipeline', 'replacePipeline', 'adoptPipeline']);

/** The fact or the pipeline that a row says was written, and the time that the fact or pipeline itself bears. */
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
