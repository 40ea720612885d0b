import { entryOf } from './entry.ts';
import { shortens } from './expiry-grace.ts';
import type { Entry, ActivityNote, WriteOutcome } from './store.ts';

/** What to note of a write that took place at `now`; undefined when the note says all there is. */
export function outcomeOf(before: Entry | undefined, after: Entry, now: number): WriteOutcome | undefined {
  const late = after.updatedAt > now;
  const shortened = before !== undefined && shortens(before, after);
  if (!late && !shortened) return undefined;
  return {
    ...(late && { written: after.updatedAt }),
    ...(shortened && { shortened: { from: before.expiresAt, to: after.expiresAt } }),
  };
}

/** The entry that a note becomes. */
export function activityEntryOf(note: ActivityNote, outcome: WriteOutcome | undefined, now: number): Entry {
  const value = outcome && note.valueFor?.(outcome);
  return entryOf(value === undefined ? note : { ...note, value }, now);
}
