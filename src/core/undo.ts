import { sameContent } from './entry.ts';
import type { Entry, Reverted, Unwanted } from './store.ts';

export type Reversal =
  | { readonly what: Exclude<Reverted, 'restored'> }
  | {
      readonly what: 'restored';
      readonly to: Entry;
      /** Versions that a memory without room for one more can do without, in this order. */
      readonly spare: readonly Entry[];
    };

/**
 * What taking back a client's writes means for one fact. Its last word decides: if that is somebody else's, it stays, also
 * when the client wrote in between. `versions` are those before, newest first.
 */
export function reversalOf(entry: Entry, versions: readonly Entry[], { client, since }: Unwanted): Reversal {
  const unwanted = ({ author, updatedAt }: Entry): boolean => author.client === client && updatedAt >= since;
  if (!unwanted(entry)) return { what: 'untouched' };
  const before = versions.findIndex((version) => !unwanted(version));
  const to = versions[before];
  // It says already what the client itself said before that moment: nothing is left to take back, or it was taken back.
  if (to && to.author.client === client && sameContent(to, entry)) return { what: 'untouched' };
  if (to) {
    // Said twice, it loses nothing. But what the client itself said before shows the next time that this was taken back.
    const takenBack = [entry, ...versions.slice(0, before)].toReversed();
    return { what: 'restored', to, spare: to.author.client === client ? [...takenBack, to] : [to] };
  }
  // Only a history that reaches back to the beginning shows that nobody else made the fact.
  const first = versions.at(-1) ?? entry;
  return { what: first.updatedAt === first.createdAt ? 'removed' : 'skipped' };
}

/** What was said before, said again: by whom and until when it was. */
export const saidAgain = (entry: Entry, to: Entry, now: number): Entry => ({
  ...to,
  createdAt: entry.createdAt,
  updatedAt: Math.max(now, entry.updatedAt + 1),
});
