import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { PACK, PAGE } from '../../contract/limits.ts';
import { clientId, INBOX_CATEGORY } from '../store/entry.ts';
import type { Author, Entry, MemoryStore } from '../store/store.ts';
import { allEntries } from './all-entries.ts';

/** Fraction of a client's entries that one eviction deletes, so that not every write needs an eviction. */
const EVICTED_FRACTION = 1 / 8;

interface EvictableEntries {
  readonly client: string;
  bytes: number;
  /** The times when the entries were written, in milliseconds since 1970. */
  readonly moments: number[];
}

/**
 * Whether an entry can be evicted. Pipeline definitions, their earlier versions and unfinished runs cannot, because clients rely
 * on them. Items of the Inbox cannot, because only the owner decides on them.
 */
const isEvictable = ({ category }: Entry): boolean =>
  category === 'pipeline:ended' || (!category.startsWith('pipeline:') && category !== INBOX_CATEGORY);

/**
 * Writes an entry that a pack or pipeline stores for a client. If the subject's quota for packs is used up, deletes the oldest
 * entries of the client that stores the most (R-PACK-28). If that client is the writer itself, its write is refused instead.
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

/**
 * Evicts the oldest entries of the client that stores the most. Returns false if no other client stores more than this client.
 */
async function evictFromLargestHolder(store: MemoryStore, subject: string, client: string): Promise<boolean> {
  const { most } = await store.usage(subject);
  const shareOf = ({ bytes, moments }: EvictableEntries): number => Math.max(bytes / most.bytes, moments.length / PACK.memory);
  const own: EvictableEntries = { client, bytes: 0, moments: [] };
  const holdings = new Map([[client, own]]);
  for await (const { value, updatedAt, author } of countedEntries(store, subject, client)) {
    const name = clientId(author);
    const holding = holdings.get(name) ?? { client: name, bytes: 0, moments: [] };
    holdings.set(name, holding);
    holding.bytes += Buffer.byteLength(value);
    holding.moments.push(updatedAt);
  }
  const largest = [...holdings.values()].reduce((top, one) => (shareOf(one) > shareOf(top) ? one : top), own);
  if (largest === own) return false;
  const oldest = largest.moments.toSorted((one, other) => one - other);
  const until = oldest[Math.ceil(oldest.length * EVICTED_FRACTION) - 1] ?? 0;
  const matches = (entry: Entry): boolean =>
    isEvictable(entry) && entry.updatedAt <= until && clientId(entry.author) === largest.client;
  await store.forget(subject, { kinds: ['pack'], matches }, undefined, nextTurn);
  return true;
}

/**
 * Returns the entries that can be evicted. Of the client that wants to store an entry, also returns the items of the Inbox: otherwise
 * it could displace the entries of others by filling the Inbox.
 */
async function* countedEntries(store: MemoryStore, subject: string, client: string): AsyncGenerator<Entry> {
  const matches = (entry: Entry): boolean =>
    isEvictable(entry) || (entry.category === INBOX_CATEGORY && clientId(entry.author) === client);
  const query = { sort: 'oldest', limit: PAGE.max, uncached: true, matches } as const;
  for (const { namespace } of await store.namespaces('pack')) {
    if (namespace.subject === subject) yield* allEntries(store.space(namespace, 'pack'), query);
  }
}
