import { isWrittenFor, sameContent } from './entry.ts';
import type { Entry, RevertOutcome, UndoRange } from './store.ts';
import { isSameWriter } from './writer.ts';

export type RevertPlan =
  | { readonly what: Exclude<RevertOutcome, 'restored'> }
  | {
      readonly what: 'restored';
      readonly to: Entry;
      /** Versions that a memory without room for one more can do without, in this order. */
      readonly expendable: readonly Entry[];
    };

/** The door by which a word came back that had been said before. */
const UNDO = 'undo';

export const isInUndoRange = ({ author, updatedAt }: Entry, { client, since, until = Infinity }: UndoRange): boolean =>
  isWrittenFor(author, client) && updatedAt >= since && updatedAt <= until;

/**
 * What taking back a client's writes means for one fact. Its last word decides: if that is somebody else's, it stays, also
 * when the client wrote in between. `versions` are those before, newest first.
 */
export function planRevert(entry: Entry, versions: readonly Entry[], which: UndoRange): RevertPlan {
  const unwanted = (word: Entry): boolean => isInUndoRange(word, which);
  const [last = entry, ...before] = standingVersions([entry, ...versions]);
  if (!unwanted(last)) return { what: 'untouched' };
  const to = before.find((version) => !unwanted(version));
  if (to && isWrittenFor(to.author, which.client) && sameContent(to, entry)) return { what: 'untouched' };
  // Said twice, it loses nothing; but first goes what was taken back.
  if (to) return { what: 'restored', to, expendable: [...before.slice(0, before.indexOf(to)).toReversed(), to] };
  // Only a history that reaches back to the beginning shows that nobody else made the fact.
  const first = versions.at(-1) ?? entry;
  const made = first.updatedAt === first.createdAt;
  return { what: made ? 'removed' : 'skipped' };
}

/**
 * What was said and stands, newest first. A word that came back by an undo is judged by when it was first said, and what lies
 * between was taken back: no later undo may bring it to life again.
 */
export function standingVersions(words: readonly Entry[]): Entry[] {
  const said: Entry[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at];
    const original =
      word?.author.transport === UNDO ? words.findIndex((other, index) => index > at && isOriginal(other, word)) : -1;
    at = Math.max(at, original);
    const stands = words[at];
    if (stands) said.push(stands);
  }
  return said;
}

const isOriginal = (other: Entry, copy: Entry): boolean =>
  other.author.transport !== UNDO && isSameWriter(other.author, copy.author) && sameContent(other, copy);

/** What was said before, said again: by whom and until when it was. */
export const restoredVersion = (entry: Entry, to: Entry, now: number): Entry => ({
  ...to,
  author: { ...to.author, transport: UNDO },
  createdAt: entry.createdAt,
  updatedAt: Math.max(now, entry.updatedAt + 1),
});
