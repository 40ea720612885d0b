import { namespaceOf } from '../access/caller.ts';
import { teachesText } from '../packs/audit.ts';
import { isWrittenFor } from '../store/entry.ts';
import { selectionOf } from '../store/scope.ts';
import type { Entry, EntryCursor, RevertOutcome, Space, UndoRange } from '../store/store.ts';
import { isInUndoRange } from '../store/undo.ts';
import { noteOf, writeOf } from './activity.ts';
import { decodeCursor } from './cursor.ts';
import { isRunOf } from './facts.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { notesOf } from './pipelines.ts';

/** Number of facts that are reverted in one commit. A larger commit would delay the calls of other subjects. */
const SLICE = 24;

const UNDONE = 'The run was cancelled, because the changes of the client that started it or that wrote its pipeline were undone.';

export const undo = ({ store, scheduler, forgotten, packs: { pipelines } }: MemoryDeps): Pick<Memory, 'undo'> => ({
  async undo(caller, { client, since, from, until, dry_run: dry }, context) {
    // Undoing an earlier forget must not restore facts of this client.
    using _exclusion = dry ? undefined : forgotten.exclude(caller.subject, ({ author }) => isWrittenFor(author, client));
    const between = (): Promise<void> => scheduler.yieldTurn(caller.subject);
    if (!dry) await pipelines.cancelRuns(caller.subject, isRunOf(client), UNDONE, context);
    const space = store.space(namespaceOf(caller), 'fact');
    const unwanted = { client, since: Date.parse(since), ...(until !== undefined && { until: Date.parse(until) }) };
    const lastSpared =
      from === undefined ? undefined : await writtenBefore(store.space(namespaceOf(caller), 'activity'), client, from, between);
    const count = { removed: 0, restored: 0, skipped: 0, untouched: 0 } satisfies Record<RevertOutcome, number>;
    const skipped: string[] = [];
    const sinceOf = (written: ReadonlyMap<string, number> | undefined, name: string): number =>
      Math.max(unwanted.since, (written?.get(name) ?? 0) + 1);
    const revert = async (key: string): Promise<{ key: string; what: RevertOutcome; returned: number }> => {
      const range = { ...unwanted, since: sinceOf(lastSpared?.facts, key) };
      const { what, returned } = await space.revert(key, range, dry ? undefined : noteOf(caller, 'undo', { key }));
      // A superseded fact keeps its dates, so the pages can already have passed its place.
      let kept = returned.length;
      for (const other of dry ? [] : returned) {
        const { what: whatOther, returned: others } = await revert(other);
        if (whatOther === 'removed') [kept, count.removed] = [kept - 1, count.removed + 1];
        if (whatOther === 'skipped') skipped.push(other);
        kept += others;
      }
      return { key, what, returned: kept };
    };
    let after: EntryCursor | undefined;
    do {
      // Visit the newest facts first: a restored fact gets a newer date, so it is not visited again.
      const { entries, next } = await space.page({ sort: 'updated', limit: SLICE, ...(after && { after }) });
      const suspect = entries.filter((entry) => isInUndoRange(entry, unwanted));
      const reverted = await Promise.all(suspect.map(({ key }) => revert(key)));
      for (const { key, what, returned } of reverted) {
        count[what] += 1;
        if (what === 'skipped') skipped.push(key);
        count.restored += returned;
      }
      // A page can be empty because all its rows are damaged. In that case, continue with the next page.
      const last = entries.at(-1);
      after = last === undefined || last.updatedAt >= unwanted.since ? next : undefined;
      if (after) await between();
    } while (after);
    const rangeOf = (id: string): UndoRange => ({ ...unwanted, since: sinceOf(lastSpared?.pipelines, id) });
    const undonePipelines = await pipelines.definitions.undo(caller, rangeOf, dry, notesOf(caller));
    if (!dry) {
      const { subject, session } = caller;
      const taught = (entry: Entry): boolean => isInUndoRange(entry, unwanted) && teachesText(entry);
      await store.forget(
        subject,
        { kinds: ['audit'], matches: taught, ...(session !== undefined && { session }) },
        undefined,
        between,
      );
      for (const name of undonePipelines.removed) await store.forget(subject, selectionOf({ kind: 'pipeline', name }));
    }
    return {
      client,
      since,
      ...(until !== undefined && { until }),
      removed: count.removed,
      restored: count.restored,
      skipped,
      ...(Object.values(undonePipelines).some((ids) => ids.length > 0) && { pipelines: undonePipelines }),
      ...(dry && { dry_run: true as const }),
    };
  },
});

/**
 * Maximum milliseconds by which the stored time of a write can be ahead of the clock. Several writes to one key within a
 * millisecond are stored with increasing times.
 */
const DRIFT_MS = 1000;

interface LastWrites {
  readonly facts: ReadonlyMap<string, number>;
  readonly pipelines: ReadonlyMap<string, number>;
}

/**
 * Returns the client's last write to each fact and pipeline before the given activity row. Times alone are not enough, because
 * writes before and after that row can have the same time. Stops at rows so old that their writes cannot have the same time as
 * that row.
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
