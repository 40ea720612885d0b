import type { Entry, EntryDraft } from './store.ts';
import { standingVersions } from './undo.ts';
import { isSameWriter } from './writer.ts';

type Ending = Pick<Entry, 'author' | 'expiresAt'>;
/** In milliseconds, for the words of others, or also for the writer's own. */
export type Grace = Pick<EntryDraft, 'grace' | 'graceOwn'>;

/** Whether a write ends another writer's fact sooner. The later end must stay in the history, or nobody could undo it. */
export const shortens = (before: Entry, { author, expiresAt }: Ending): boolean =>
  !isSameWriter(author, before.author) && expiresAt < before.expiresAt;

/**
 * The end that a write may give a fact. When a fact expires its history goes too, and with it the words of other clients that
 * the writer replaced. So the fact stays for `grace` milliseconds after the writer replaced or shortened such words: as long
 * as that the owner can undo it. `versions` are read only where they decide.
 */
export function expiryWithGrace(
  before: Entry,
  versions: () => readonly Entry[],
  { author, expiresAt, grace, graceOwn }: Ending & Grace,
  now: number,
): number {
  if (grace === undefined || expiresAt >= Math.min(before.expiresAt, now + grace)) return expiresAt;
  if (graceOwn) return Math.max(expiresAt, Math.min(before.expiresAt, now + grace));
  let replacedAt = now;
  for (const word of standingVersions([before, ...versions()])) {
    if (!isSameWriter(word.author, author)) {
      return word.expiresAt > expiresAt ? Math.max(expiresAt, Math.min(before.expiresAt, replacedAt + grace)) : expiresAt;
    }
    replacedAt = word.updatedAt;
  }
  return expiresAt;
}
