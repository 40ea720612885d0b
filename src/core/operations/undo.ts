import { namespaceOf } from '../access/caller.ts';
import { isWrittenFor } from '../store/entry.ts';
import type { EntryCursor, RevertOutcome, Space, UndoRange } from '../store/store.ts';
import { isInUndoRange } from '../store/undo.ts';
import { noteOf, writeOf } from './activity.ts';
import { decodeCursor } from './cursor.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { notesOf } from './pipelines.ts';

/** Facts taken back in one commit. More would keep other subjects waiting for it. */
const SLICE = 24;

/** Takes back what one client wrote: one name and one moment say what. */
export const undo = ({ store, scheduler: turns, forgotten, packs: { pipelines } }: MemoryDeps): Pick<Memory, 'undo'> => ({
  async undo(caller, { client, since, from, until, dry_run: dry }) {
    // A fact that the window forgot must not bring back the client's words afterwards.
    using _exclusion = dry ? undefined : forgotten.exclude(caller.subject, ({ author }) => isWrittenFor(author, client));
    const between = (): Promise<void> => turns.yieldTurn(caller.subject);
    const space = store.space(namespaceOf(caller), 'fact');
    const unwanted = { client, since: Date.parse(since), ...(until !== undefined && { until: Date.parse(until) }) };
    const spared =
      from === undefined ? undefined : await writtenBefore(store.space(namespaceOf(caller), 'activity'), client, from, between);
    const count = { removed: 0, restored: 0, skipped: 0, untouched: 0 } satisfies Record<RevertOutcome, number>;
    const skipped: string[] = [];
    const sinceOf = (written: ReadonlyMap<string, number> | undefined, name: string): number =>
      Math.max(unwanted.since, (written?.get(name) ?? 0) + 1);
    let after: EntryCursor | undefined;
    do {
      // From the newest backwards: what is put back becomes newer, and is not met again.
      const { entries, next } = await space.page({ sort: 'updated', limit: SLICE, ...(after && { after }) });
      const suspect = entries.filter((entry) => isInUndoRange(entry, unwanted));
      const reverted = await Promise.all(
        suspect.map(async ({ key }) => ({
          key,
          what: await space.revert(
            key,
            { ...unwanted, since: sinceOf(spared?.facts, key) },
            dry ? undefined : noteOf(caller, 'undo', { key }),
          ),
        })),
      );
      for (const { key, what } of reverted) {
        count[what] += 1;
        if (what === 'skipped') skipped.push(key);
      }
      // A page of nothing but broken rows says nothing about those after it.
      const last = entries.at(-1);
      after = last === undefined || last.updatedAt >= unwanted.since ? next : undefined;
      if (after) await between();
    } while (after);
    const rangeOf = (id: string): UndoRange => ({ ...unwanted, since: sinceOf(spared?.pipelines, id) });
    const taken = await pipelines.definitions.undo(caller, rangeOf, dry, notesOf(caller));
    return {
      client,
      since,
      ...(until !== undefined && { until }),
      removed: count.removed,
      restored: count.restored,
      skipped,
      ...(Object.values(taken).some((ids) => ids.length > 0) && { pipelines: taken }),
      ...(dry && { dry_run: true as const }),
    };
  },
});

/** Writes to one key within a millisecond bear later moments, by as much as this at most. */
const DRIFT_MS = 1000;

/** The last write to each fact and to each pipeline. */
interface LastWrites {
  readonly facts: ReadonlyMap<string, number>;
  readonly pipelines: ReadonlyMap<string, number>;
}

/**
 * The last writes of a client before an activity row, also those in the same millisecond. Reads back as far as a write could
 * still bear a later time than that row.
 */
async function writtenBefore(record: Space, client: string, row: string, between: () => Promise<void>): Promise<LastWrites> {
  const facts = new Map<string, number>();
  const pipelines = new Map<string, number>();
  const begin = decodeCursor(row, 'updated');
  let after: EntryCursor | undefined = begin;
  while (after && after.at >= begin.at - DRIFT_MS) {
    const { entries, next } = await record.page({ sort: 'updated', limit: SLICE, after });
    for (const entry of entries.filter(({ author }) => isWrittenFor(author, client))) {
      const { key, pipeline, at } = writeOf(entry);
      if (key !== undefined) facts.set(key, Math.max(at, facts.get(key) ?? 0));
      if (pipeline !== undefined) pipelines.set(pipeline, Math.max(at, pipelines.get(pipeline) ?? 0));
    }
    after = next;
    if (after) await between();
  }
  return { facts, pipelines };
}
