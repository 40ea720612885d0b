import { explainIssue } from '../../contract/explain.ts';
import { Failure } from '../../contract/failure.ts';
import type { SchemaOutput } from '../../contract/lazy.ts';
import { SHORTENING_GRACE, TTL } from '../../contract/limits.ts';
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

type Transfer = Pick<Memory, 'export' | 'import'>;
type Outcome = 'created' | 'updated' | 'unchanged' | 'dropped' | Failure;
type Written = NonNullable<ImportReceipt['written']>;

const SLICE = 64 * 1024;

/** Facts on their way to another place and back. */
export const transfer = ({ store, scheduler: turns, secrets }: MemoryDeps): Transfer => ({
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
    const foreseen = new Map<string, EntryDraft>();
    const moments: number[] = [];
    const outcomes: { line: number; outcome: Outcome }[] = [];
    for (const slice of slicesOf(lines)) {
      if (outcomes.length > 0) await turns.yieldTurn(caller.subject);
      const imported = slice.map(async ([index, line]) => ({
        line: first + index,
        outcome: await importOne(line).catch(asOutcome),
      }));
      outcomes.push(...(await Promise.all(imported)));
    }
    return {
      ...counted(outcomes),
      ...(moments.length > 0 && { written: writtenAt(moments, caller) }),
      ...(dry && { dry_run: true as const }),
    };

    async function importOne(line: string): Promise<Outcome> {
      const draft = draftOf(caller, readLine(line), store.now());
      refuseSecrets(secrets, draft);
      if (draft.lifetime < TTL.min * 1000) return 'dropped';
      if (dry) return foresee(space, draft, foreseen);
      const { status, entry } = await space.put(draft, noteOf(caller, 'import', { key: draft.key }));
      if (status !== 'unchanged') moments.push(entry.updatedAt);
      return status;
    }
  },
});

/** Lines that are looked at in one step, with their numbers: about so many letters, so that nobody waits long behind them. */
function* slicesOf(lines: readonly string[]): Generator<[number, string][]> {
  let slice: [number, string][] = [];
  let letters = 0;
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    slice.push([index, line]);
    letters += line.length;
    if (letters < SLICE) continue;
    yield slice;
    [slice, letters] = [[], 0];
  }
  if (slice.length > 0) yield slice;
}

type Line = SchemaOutput<typeof ImportLine>;

function readLine(line: string): Line {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    throw new Failure('invalid_input', 'The line is not JSON; send one JSON object a line, as an export writes them.');
  }
  const parsed = ImportLine().safeParse(json);
  if (!parsed.success) throw new Failure('invalid_input', explainIssue(parsed.error, json));
  return parsed.data;
}

/** Time goes on while facts travel: they keep their end, and none gets more than a year. A file ends no fact soon, whoever imports it and whoever wrote the fact. */
function draftOf(
  caller: Caller,
  { key, value, category, tags, expires_at: end, ttl_seconds: ttl }: Line,
  now: number,
): EntryDraft {
  const lifetime = end === undefined ? (ttl ?? TTL.default) * 1000 : Math.min(Date.parse(end) - now, TTL.max * 1000);
  return { key, value, category, tags, author: authorOf(caller), lifetime, grace: SHORTENING_GRACE * 1000, graceOwn: true };
}

/** As if the lines before had been written. */
async function foresee(space: Space, draft: EntryDraft, foreseen: Map<string, EntryDraft>): Promise<Outcome> {
  const earlier = foreseen.get(draft.key);
  foreseen.set(draft.key, draft);
  const before = earlier ?? (await space.get(draft.key));
  if (!before) return 'created';
  return sameContent(before, draft) ? 'unchanged' : 'updated';
}

/** What is wrong with one line is no reason to stop; what is wrong with the memory is. */
function asOutcome(error: unknown): Failure {
  if (error instanceof Failure && (error.code === 'invalid_input' || error.code === 'quota_exceeded')) return error;
  throw error;
}

function counted(outcomes: readonly { line: number; outcome: Outcome }[]): ImportReceipt {
  const count = (wanted: Outcome): number => outcomes.filter(({ outcome }) => outcome === wanted).length;
  return {
    created: count('created'),
    updated: count('updated'),
    unchanged: count('unchanged'),
    dropped: count('dropped'),
    errors: outcomes.flatMap(({ line, outcome }) => (outcome instanceof Failure ? [{ line, message: outcome.message }] : [])),
  };
}

/** A request holds few lines, so its moments fit into one call. */
const writtenAt = (moments: readonly number[], { client }: Caller): Written => ({
  client,
  since: formatTime(Math.min(...moments)),
  until: formatTime(Math.max(...moments)),
});
