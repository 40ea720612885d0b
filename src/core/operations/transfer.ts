import { Failure } from '../../contract/failure.ts';
import { SHORTENING_GRACE, TTL } from '../../contract/limits.ts';
import { explainIssue, type SchemaOutput } from '../../contract/schema.ts';
import { ImportLine, type ImportReceipt } from '../../contract/transfer.ts';
import { authorOf, type Caller, namespaceOf } from '../access/caller.ts';
import { sameContent } from '../store/entry.ts';
import type { EntryDraft, Space } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import { noteOf } from './activity.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { factDetail } from './facts.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { refuseSecrets } from './secret-guard.ts';

type TransferOperations = Pick<Memory, 'export' | 'import'>;
type Outcome = 'created' | 'updated' | 'unchanged' | 'dropped' | Failure;
type Written = NonNullable<ImportReceipt['written']>;

const CHARACTERS_PER_STEP = 64 * 1024;

export const transfer = ({ store, scheduler, secrets }: MemoryDeps): TransferOperations => ({
  async export(caller, { limit, cursor }) {
    const { entries, next } = await store.space(namespaceOf(caller), 'fact').page({
      sort: 'oldest',
      limit,
      ...(cursor !== undefined && { after: decodeCursor(cursor, 'oldest') }),
    });
    return { facts: entries.map(factDetail), ...(next && { next_cursor: encodeCursor(next, 'oldest') }) };
  },

  async import(caller, { lines, first_line: first, dry_run: dry }) {
    const space = store.space(namespaceOf(caller), 'fact');
    const previewed = new Map<string, EntryDraft>();
    const moments: number[] = [];
    const outcomes: { line: number; outcome: Outcome }[] = [];
    for (const slice of slicesOf(lines)) {
      if (outcomes.length > 0) await scheduler.yieldTurn(caller.subject);
      const imported = slice.map(async ([index, line]) => ({
        line: first + index,
        outcome: await importOne(line).catch(asOutcome),
      }));
      outcomes.push(...(await Promise.all(imported)));
    }
    return {
      ...countOutcomes(outcomes),
      ...(moments.length > 0 && { written: writtenAt(moments, caller) }),
      ...(dry && { dry_run: true as const }),
    };

    async function importOne(line: string): Promise<Outcome> {
      const draft = draftOf(caller, readLine(line), store.now());
      refuseSecrets(secrets, draft);
      if (draft.lifetime < TTL.min * 1000) return 'dropped';
      if (dry) return previewImportOf(space, draft, previewed);
      const { status, entry } = await space.put(draft, noteOf(caller, 'import', { key: draft.key }));
      if (status !== 'unchanged') moments.push(entry.updatedAt);
      return status;
    }
  },
});

/** Groups the lines, with their indices, into short steps, so that other callers do not wait long. */
function* slicesOf(lines: readonly string[]): Generator<[number, string][]> {
  let slice: [number, string][] = [];
  let characters = 0;
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    slice.push([index, line]);
    characters += line.length;
    if (characters < CHARACTERS_PER_STEP) continue;
    yield slice;
    [slice, characters] = [[], 0];
  }
  if (slice.length > 0) yield slice;
}

type Line = SchemaOutput<typeof ImportLine>;

function readLine(line: string): Line {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    throw new Failure('invalid_input', 'The line is not JSON; send one JSON object per line, as in the file of an export.');
  }
  const parsed = ImportLine().safeParse(json);
  if (!parsed.success) throw new Failure('invalid_input', explainIssue(parsed.error, json));
  return parsed.data;
}

/**
 * Creates the draft of an imported fact, which keeps its expiry, up to a year from now. An import never makes a stored fact
 * expire within the grace period, even if the importing client wrote that fact.
 */
function draftOf(
  caller: Caller,
  { key, value, category, tags, expires_at: end, ttl_seconds: ttl }: Line,
  now: number,
): EntryDraft {
  const lifetime = end === undefined ? (ttl ?? TTL.default) * 1000 : Math.min(Date.parse(end) - now, TTL.max * 1000);
  return { key, value, category, tags, author: authorOf(caller), lifetime, grace: SHORTENING_GRACE * 1000, graceOwn: true };
}

/** Returns the outcome of a line in a dry run, as if the previous lines had been written. */
async function previewImportOf(space: Space, draft: EntryDraft, previewed: Map<string, EntryDraft>): Promise<Outcome> {
  const earlier = previewed.get(draft.key);
  previewed.set(draft.key, draft);
  const before = earlier ?? (await space.get(draft.key));
  if (!before) return 'created';
  return sameContent(before, draft) ? 'unchanged' : 'updated';
}

/** Returns the error if it concerns only this line: invalid input or a full memory. Any other error stops the import. */
function asOutcome(error: unknown): Failure {
  if (error instanceof Failure && (error.code === 'invalid_input' || error.code === 'quota_exceeded')) return error;
  throw error;
}

function countOutcomes(outcomes: readonly { line: number; outcome: Outcome }[]): ImportReceipt {
  const count = (wanted: Outcome): number => outcomes.filter(({ outcome }) => outcome === wanted).length;
  return {
    created: count('created'),
    updated: count('updated'),
    unchanged: count('unchanged'),
    dropped: count('dropped'),
    errors: outcomes.flatMap(({ line, outcome }) => (outcome instanceof Failure ? [{ line, message: outcome.message }] : [])),
  };
}

/** Returns the client and the times of the first and last write, so that the import can be undone. */
const writtenAt = (moments: readonly number[], { client }: Caller): Written => ({
  client,
  since: formatTime(Math.min(...moments)),
  until: formatTime(Math.max(...moments)),
});
