import { isSameWriter, isWrittenFor, sameContent } from './entry.ts';
import type { Entry, EntryDraft, UndoRange } from './store.ts';

export type RevertPlan =
  | { readonly what: 'untouched' }
  | {
      readonly what: 'removed' | 'skipped';
      readonly returns: Supersession;
    }
  | {
      readonly what: 'restored';
      readonly to: Entry;
      /** Versions to delete, in this order, if the quota has no space for another version. */
      readonly expendable: readonly Entry[];
      readonly returns: Supersession;
    };

/** Whether the facts that were superseded at this time become facts of their own again. */
export type Supersession = (until: number) => boolean;

/** Value of `author.origin` in a version that an undo wrote. */
const UNDO = 'undo';

export const isInUndoRange = ({ author, updatedAt }: Entry, { client, since, until = Infinity }: UndoRange): boolean =>
  isWrittenFor(author, client) && updatedAt >= since && updatedAt <= until;

/**
 * Plans the undo of a client's writes to one fact. If another client wrote the last version, the fact is not changed, whoever
 * wrote earlier versions. The facts that an undone write superseded are returned. `versions` are the earlier versions, newest first.
 */
export function planRevert(entry: Entry, versions: readonly Entry[], range: UndoRange): RevertPlan {
  const unwanted = (version: Entry): boolean => isInUndoRange(version, range);
  const own = versions.filter(({ formerKeys }) => !formerKeys);
  const [last = entry, ...before] = effectiveVersions([entry, ...own]);
  if (!unwanted(last)) return { what: 'untouched' };
  const to = before.find((version) => !unwanted(version));
  const returns: Supersession = (until) => until > (to?.updatedAt ?? 0);
  const returnsAny = versions.some(({ formerKeys: [newest] = [] }) => newest && returns(newest.until));
  if (to && !returnsAny && isWrittenFor(to.author, range.client) && sameContent(to, entry)) return { what: 'untouched' };
  // The restored version is then both the current version and in the history. If space is needed, delete the undone versions
  // from the history first, and then this copy.
  if (to) return { what: 'restored', to, expendable: [...before.slice(0, before.indexOf(to)).toReversed(), to], returns };
  // The client is known to have created the fact only if the history is complete, back to the creation.
  const first = own.at(-1) ?? entry;
  if (first.updatedAt === first.createdAt) return { what: 'removed', returns };
  // Otherwise a client could hide a fact for good, by superseding it and then evicting its own versions.
  const { since, until: end = Infinity } = range;
  return { what: 'skipped', returns: (until) => until >= since && until <= end };
}

/**
 * Returns the versions that were not undone, newest first. A version that an undo restored is replaced by its original. The
 * versions between the two were undone, and a later undo must not restore them.
 */
function effectiveVersions(versions: readonly Entry[]): Entry[] {
  const effective: Entry[] = [];
  for (let at = 0; at < versions.length; at += 1) {
    const version = versions[at];
    const original =
      version?.author.origin === UNDO ? versions.findIndex((other, index) => index > at && isOriginal(other, version)) : -1;
    at = Math.max(at, original);
    const current = versions[at];
    if (current) effective.push(current);
  }
  return effective;
}

const isOriginal = (other: Entry, copy: Entry): boolean =>
  other.author.origin !== UNDO && isSameWriter(other.author, copy.author) && sameContent(other, copy);

/** Makes an earlier version the current version again, with its original author and expiry. */
export const restoredVersion = (entry: Entry, to: Entry, now: number): Entry => ({
  ...to,
  author: { ...to.author, origin: UNDO },
  createdAt: entry.createdAt,
  updatedAt: Math.max(now, entry.updatedAt + 1),
});

export type Grace = Pick<EntryDraft, 'grace' | 'graceOwn'>;

/**
 * Returns the expiry that a write can set. When a fact expires, its history is deleted too, including the versions of other
 * clients that the writer replaced. So the fact stays for at least `grace` milliseconds after the writer replaced or shortened
 * such a version, so that the owner can undo the write. `versions` is called only if the result depends on the versions.
 */
export function expiryWithGrace(
  before: Entry,
  versions: () => readonly Entry[],
  { author, expiresAt, grace, graceOwn }: Pick<Entry, 'author' | 'expiresAt'> & Grace,
  now: number,
): number {
  if (grace === undefined || expiresAt >= Math.min(before.expiresAt, now + grace)) return expiresAt;
  if (graceOwn) return Math.max(expiresAt, Math.min(before.expiresAt, now + grace));
  // A superseded fact was replaced when it was superseded, so its versions count apart from those of the fact itself.
  const facts = Map.groupBy([before, ...versions()], ({ formerKeys = [] }) =>
    JSON.stringify(formerKeys.map(({ key, until }) => [key, until])),
  );
  const ends = [...facts.values()].map((ofFact) => {
    let replacedAt = ofFact[0]?.formerKeys?.at(-1)?.until ?? now;
    for (const version of effectiveVersions(ofFact)) {
      if (!isSameWriter(version.author, author)) return version.expiresAt > expiresAt ? replacedAt + grace : 0;
      replacedAt = version.updatedAt;
    }
    return 0;
  });
  return Math.max(expiresAt, Math.min(before.expiresAt, Math.max(...ends)));
}
