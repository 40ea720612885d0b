import { randomFillSync } from 'node:crypto';
import { CATEGORY } from '../../contract/categories.ts';
import type { Activity } from '../../contract/history.ts';
import { ACTIVITY_TTL } from '../../contract/limits.ts';
import { authorOf, type Caller, signatures } from '../access/caller.ts';
import type { Entry, ActivityNote, WriteOutcome } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';

type Row = Activity['activity'][number];
type Details = Pick<Row, 'key' | 'supersedes' | 'scope' | 'target' | 'failed' | 'keys' | 'session' | 'moment'>;
type StoredRow = Pick<Row, 'operation'> & Details & WriteOutcome;

/** The operations on one fact, each with the character that represents it in the database. A character must never change its meaning. */
const KEYED: ReadonlyMap<string, Row['operation']> = new Map([
  ['r', 'remember'],
  ['p', 'patch'],
  ['f', 'forget'],
  ['z', 'undoForget'],
  ['u', 'undo'],
  ['i', 'import'],
]);
const CODES: ReadonlyMap<Row['operation'], string> = new Map([...KEYED].map(([code, operation]) => [operation, code]));

/**
 * Writes an activity row. Most rows say only that a client wrote a fact, so such a row is one character and the key. Other rows
 * are JSON.
 */
function textOf({ operation, ...details }: StoredRow): string {
  const code = CODES.get(operation);
  const isKeyOnly = details.key !== undefined && Object.values(details).filter((value) => value !== undefined).length === 1;
  return code !== undefined && isKeyOnly ? code + details.key : JSON.stringify({ operation, ...details });
}

const KEY_BYTES = 3;
/** Random bytes for the next keys. One system call fills them all. */
const random = Buffer.alloc(KEY_BYTES * 1024);
let used = random.length;

function shortKey(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  return random.toString('base64url', used, (used += KEY_BYTES));
}

/** Creates the activity row for an operation. The store adds the time and the outcome of a write. */
export const noteOf = (caller: Caller, operation: Row['operation'], details: Details): ActivityNote => {
  const valueOf = (outcome?: WriteOutcome): string => textOf({ operation, ...details, ...outcome });
  return {
    // Rows are found by time. The key is needed only to tell apart the rows that a forget deletes.
    key: shortKey(),
    value: valueOf(),
    // No activity row is found by its category. The default category is the shortest in the database.
    category: CATEGORY.default,
    tags: [],
    author: authorOf(caller),
    lifetime: ACTIVITY_TTL * 1000,
    valueFor: valueOf,
  };
};

function parse({ value }: Entry): StoredRow {
  const operation = KEYED.get(value.charAt(0));
  // The cast is safe: only `noteOf` writes these rows, and decryption proves that they are unchanged.
  return operation ? { operation, key: value.slice(1) } : (JSON.parse(value) as StoredRow);
}

const PIPELINE_CHANGES: ReadonlySet<Row['operation']> = new Set(['createPipeline', 'replacePipeline', 'adoptPipeline']);

/** Returns the fact key or the pipeline that the row's operation wrote, and the `updatedAt` of that entry. */
export function writeOf(entry: Entry): { key: string | undefined; pipeline: string | undefined; at: number } {
  const { operation, key, target, written = entry.updatedAt } = parse(entry);
  return { key, pipeline: PIPELINE_CHANGES.has(operation) ? target : undefined, at: written };
}

export type Moment = NonNullable<Row['moment']>;

/** What was put before an agent, when and at which moment of its session. */
export interface Receipt {
  readonly session: string | undefined;
  readonly moment: Moment | undefined;
  readonly keys: readonly string[];
  readonly client: string;
  readonly at: number;
}

/** Returns the receipt in an activity row. Undefined if the row is about another operation. */
export function receiptOf(entry: Entry): Receipt | undefined {
  // Most rows are short and about writes, so they are not parsed.
  if (!entry.value.startsWith('{"operation":"brief"')) return undefined;
  const { keys = [], session, moment } = parse(entry);
  return { keys, session, moment, client: entry.author.client, at: entry.updatedAt };
}

export function activityRowOf(entry: Entry): Omit<Row, 'id'> {
  const { operation, key, supersedes, scope, target, failed, shortened, keys, session, moment } = parse(entry);
  return {
    at: formatTime(entry.updatedAt),
    operation,
    ...signatures(entry.author),
    ...(key !== undefined && { key }),
    ...(supersedes !== undefined && { supersedes }),
    ...(scope !== undefined && { scope }),
    ...(target !== undefined && { target }),
    ...(keys && { keys }),
    ...(session !== undefined && { session }),
    ...(moment && { moment }),
    ...(failed && { failed }),
    ...(shortened && { shortened: { from: formatTime(shortened.from), to: formatTime(shortened.to) } }),
  };
}
