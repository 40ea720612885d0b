import { isSameWriter, isWrittenFor, sameContent } from './entry.ts';
import type { Entry, EntryDraft, RevertOutcome, UndoRange } from './store.ts';

export type RevertPlan =
  | { readonly what: Exclude<RevertOutcome, 'restored'> }
  | {
      readonly what: 'restored';
      readonly to: Entry;
      /** Versions to delete, in this order, if the memory has no room for one more. */
      readonly expendable: readonly Entry[];
    };

/** The transport of a version that an undo wrote. */
const UNDO = 'undo';

export const isInUndoRange = ({ author, updatedAt }: Entry, { client, since, until = Infinity }: UndoRange): boolean =>
  isWrittenFor(author, client) && updatedAt >= since && updatedAt <= until;

/**
 * Plans the undo of a client's writes to one fact. A fact whose last version is another client's stays, also when the client
 * wrote earlier versions. `versions` are the earlier versions, newest first.
 */
export function planRevert(entry: Entry, versions: readonly Entry[], range: UndoRange): RevertPlan {
  const unwanted = (version: Entry): boolean => isInUndoRange(version, range);
  const [last = entry, ...before] = standingVersions([entry, ...versions]);
  if (!unwanted(last)) return { what: 'untouched' };
  const to = before.find((version) => !unwanted(version));
  if (to && isWrittenFor(to.author, range.client) && sameContent(to, entry)) return { what: 'untouched' };
  // The restored version would be stored twice, so it may be deleted too, but after the undone ones.
  if (to) return { what: 'restored', to, expendable: [...before.slice(0, before.indexOf(to)).toReversed(), to] };
  // Only a history that reaches back to the creation shows that no other client created the fact.
  const first = versions.at(-1) ?? entry;
  const made = first.updatedAt === first.createdAt;
  return { what: made ? 'removed' : 'skipped' };
}

/**
 * The versions that were not undone, newest first. A restored version is dated by its original. The versions between the two were
 * undone, and no later undo may restore them.
 */
function standingVersions(versions: readonly Entry[]): Entry[] {
  const standing: Entry[] = [];
  for (let at = 0; at < versions.length; at += 1) {
    const version = versions[at];
    const original =
      version?.author.transport === UNDO ? versions.findIndex((other, index) => index > at && isOriginal(other, version)) : -1;
    at = Math.max(at, original);
    const stands = versions[at];
    if (stands) standing.push(stands);
  }
  return standing;
}

const isOriginal = (other: Entry, copy: Entry): boolean =>
  other.author.transport !== UNDO && isSameWriter(other.author, copy.author) && sameContent(other, copy);

/** An earlier version as the new present one, with its author and its end of life. */
export const restoredVersion = (entry: Entry, to: Entry, now: number): Entry => ({
  ...to,
  author: { ...to.author, transport: UNDO },
  createdAt: entry.createdAt,
  updatedAt: Math.max(now, entry.updatedAt + 1),
});

export type Grace = Pick<EntryDraft, 'grace' | 'graceOwn'>;

/**
 * The end of life that a write may give a fact. When a fact expires its history is deleted too, and with it the versions of other
 * clients that the writer replaced. So the fact stays for `grace` milliseconds after the writer replaced or shortened such a
 * version, for the owner to undo it. `versions` is called only if they decide.
 */
export function expiryWithGrace(
  before: Entry,
  versions: () => readonly Entry[],
  { author, expiresAt, grace, graceOwn }: Pick<Entry, 'author' | 'expiresAt'> & Grace,
  now: number,
): number {
  if (grace === undefined || expiresAt >= Math.min(before.expiresAt, now + grace)) return expiresAt;
  if (graceOwn) return Math.max(expiresAt, Math.min(before.expiresAt, now + grace));
  let replacedAt = now;
  for (const version of standingVersions([before, ...versions()])) {
    if (!isSameWriter(version.author, author)) {
      return version.expiresAt > expiresAt ? Math.max(expiresAt, Math.min(before.expiresAt, replacedAt + grace)) : expiresAt;
    }
    replacedAt = version.updatedAt;
  }
  return expiresAt;
}
