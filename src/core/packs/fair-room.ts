import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { PACK, PAGE } from '../../contract/limits.ts';
import { clientId } from '../store/entry.ts';
import type { Author, Entry, MemoryStore } from '../store/store.ts';
import { allEntries } from './all-entries.ts';

/** How much of what the largest holder stores is deleted at once, so that not every write has to look for room. */
const EVICTED_SHARE = 1 / 8;

/** Entries of one client that may be evicted. */
interface Holding {
  readonly client: string;
  bytes: number;
  /** When each was written. */
  readonly moments: number[];
}

/** Definitions, their earlier versions and unfinished runs are never evicted: something relies on them. */
const isEvictable = ({ category }: Entry): boolean => !category.startsWith('pipeline:') || category === 'pipeline:ended';

/**
 * Writes what a pack or pipeline stores for a client. If the subject's room for packs is used up, the client that stores the most
 * gives way: its oldest entries are deleted (R-PACK-28). A write of that client itself is refused.
 */
export async function putFairly<T>(store: MemoryStore, subject: string, author: Author, write: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      const isFull = error instanceof Failure && error.code === 'quota_exceeded';
      if (!isFull || !(await evictFromLargestHolder(store, subject, clientId(author)))) throw error;
    }
  }
}

/** Returns false if no other client stores more than this one. */
async function evictFromLargestHolder(store: MemoryStore, subject: string, client: string): Promise<boolean> {
  const { most } = await store.usage(subject);
  const shareOf = ({ bytes, moments }: Holding): number => Math.max(bytes / most.bytes, moments.length / PACK.memory);
  const own: Holding = { client, bytes: 0, moments: [] };
  const holdings = new Map([[client, own]]);
  for await (const { value, updatedAt, author } of evictableEntries(store, subject)) {
    const name = clientId(author);
    const holding = holdings.get(name) ?? { client: name, bytes: 0, moments: [] };
    holdings.set(name, holding);
    holding.bytes += Buffer.byteLength(value);
    holding.moments.push(updatedAt);
  }
  const largest = [...holdings.values()].reduce((top, one) => (shareOf(one) > shareOf(top) ? one : top), own);
  if (largest === own) return false;
  const oldest = largest.moments.toSorted((one, other) => one - other);
  const until = oldest[Math.ceil(oldest.length * EVICTED_SHARE) - 1] ?? 0;
  const matches = (entry: Entry): boolean =>
    isEvictable(entry) && entry.updatedAt <= until && clientId(entry.author) === largest.client;
  await store.forget(subject, { kinds: ['pack'], matches }, undefined, nextTurn);
  return true;
}

async function* evictableEntries(store: MemoryStore, subject: string): AsyncGenerator<Entry> {
  const query = { sort: 'oldest', limit: PAGE.max, uncached: true, matches: isEvictable } as const;
  for (const { namespace } of await store.namespaces('pack')) {
    if (namespace.subject === subject) yield* allEntries(store.space(namespace, 'pack'), query);
  }
}
