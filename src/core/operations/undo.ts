import { namespaceOf } from '../caller.ts';
import type { Cursor, Reverted } from '../store.ts';
import { isUnwanted } from '../undo.ts';
import { noteOf } from './activity.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { notesOf } from './pipelines.ts';

/** Facts taken back in one commit. More would keep other subjects waiting for it. */
const SLICE = 24;

/** Takes back what one client wrote: one name and one moment say what. */
export const undo = ({ store, turns, packs: { pipelines } }: MemoryDeps): Pick<Memory, 'undo'> => ({
  async undo(caller, { client, since, until, dry_run: dry }) {
    const space = store.space(namespaceOf(caller), 'fact');
    const unwanted = { client, since: Date.parse(since), ...(until !== undefined && { until: Date.parse(until) }) };
    const count = { removed: 0, restored: 0, skipped: 0, untouched: 0 } satisfies Record<Reverted, number>;
    const skipped: string[] = [];
    let after: Cursor | undefined;
    do {
      // From the newest backwards: what is put back becomes newer, and is not met again.
      const { entries, next } = await space.page({ sort: 'updated', limit: SLICE, ...(after && { after }) });
      const suspect = entries.filter((entry) => isUnwanted(entry, unwanted));
      const reverted = await Promise.all(
        suspect.map(async ({ key }) => ({
          key,
          what: await space.revert(key, unwanted, dry ? undefined : noteOf(caller, 'undo', { key })),
        })),
      );
      for (const { key, what } of reverted) {
        count[what] += 1;
        if (what === 'skipped') skipped.push(key);
      }
      // A page of nothing but broken rows says nothing about those after it.
      const last = entries.at(-1);
      after = last === undefined || last.updatedAt >= unwanted.since ? next : undefined;
      if (after) await turns.next(caller.subject);
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
