import { namespaceOf } from '../access/caller.ts';
import type { EntryCursor, RevertOutcome, Space } from '../store/store.ts';
import { isInUndoRange } from '../store/undo.ts';
import { noteOf, writeOf } from './activity.ts';
import { decodeCursor } from './cursor.ts';
import { isRunOf } from './facts.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { notesOf } from './pipelines.ts';

/** Facts taken back in one commit. More would keep other subjects waiting for it. */
const SLICE = 24;

const UNDONE = 'The changes of the client that started or defined this run were undone, so the run was cancelled.';

/** Takes back what one client wrote: one name and one moment say what. */
export const undo = ({ store, scheduler: turns, packs: { pipelines } }: MemoryDeps): Pick<Memory, 'undo'> => ({
  async undo(caller, { client, since, from, until, dry_run: dry }, during) {
    const between = (): Promise<void> => turns.yieldTurn(caller.subject);
    if (!dry) await pipelines.cancelRuns(caller.subject, isRunOf(client), UNDONE, during);
    const space = store.space(namespaceOf(caller), 'fact');
    const unwanted = { client, since: Date.parse(since), ...(until !== undefined && { until: Date.parse(until) }) };
    const spared =
      from === undefined ? undefined : await writtenBefore(store.space(namespaceOf(caller), 'activity'), client, from, between);
    const count = { removed: 0, restored: 0, skipped: 0, untouched: 0 } satisfies Record<RevertOutcome, number>;
    const skipped: string[] = [];
    const sinceOf = (key: string): number => Math.max(unwanted.since, (spared?.get(key) ?? 0) + 1);
    let after: EntryCursor | undefined;
    do {
      // From the newest backwards: what is put back becomes newer, and is not met again.
      const { entries, next } = await space.page({ sort: 'updated', limit: SLICE, ...(after && { after }) });
      const suspect = entries.filter((entry) => isInUndoRange(entry, unwanted));
      const reverted = await Promise.all(
        suspect.map(async ({ key }) => ({
          key,
          what: await space.revert(key, { ...unwanted, since: sinceOf(key) }, dry ? undefined : noteOf(caller, 'undo', { key })),
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
    const taken = await pipelines.definitions.undo(caller, unwanted, dry, notesOf(caller));
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

/**
 * The last moment of each key that a client wrote before an activity row, as far as it may not be earlier than that row: several
 * writes can bear one moment.
 */
async function writtenBefore(
  record: Space,
  client: string,
  row: string,
  between: () => Promise<void>,
): Promise<ReadonlyMap<string, number>> {
  const written = new Map<string, number>();
  const begin = decodeCursor(row, 'updated');
  let after: EntryCursor | undefined = begin;
  while (after && after.at >= begin.at - DRIFT_MS) {
    const { entries, next } = await record.page({ sort: 'updated', limit: SLICE, after });
    for (const entry of entries.filter(({ author }) => author.client === client)) {
      const { key, at } = writeOf(entry);
      if (key !== undefined) written.set(key, Math.max(at, written.get(key) ?? 0));
    }
    after = next;
    if (after) await between();
  }
  return written;
}
