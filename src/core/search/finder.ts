import { setImmediate as nextTurn } from 'node:timers/promises';
import { SEARCHED_RUNS } from '../../contract/limits.ts';
import type { Entry, EntryEvent, MemoryStore, Namespace } from '../store/store.ts';
import { runText } from './run-text.ts';
import { type Hit, SearchIndex } from './search-index.ts';

/** The most facts and bytes that are opened and indexed in one turn, so that other calls are not delayed (R-VIEW-04). */
const SLICE = { limit: 100, bytes: 32 * 1024 } as const;
/** The memory of all indexes together. The least recently used index is dropped first. */
const MAX_BYTES = 512 * 1024 * 1024;
/** The part of it that a build may use. The rest is for later writes, which would otherwise force a rebuild each. */
const BUILD_PART = 3 / 4;
/** How long a query waits for an index that is being built, before it returns partial results. */
const BUILD_TIMEOUT_MS = 250;

/** Facts and records of runs have separate indexes, so a search of one never returns the other. */
type IndexedKind = 'fact' | 'audit';

interface NamespaceIndex {
  readonly namespace: Namespace;
  readonly kind: IndexedKind;
  readonly index: SearchIndex;
  /** The indexed rows of runs; the index holds only the newest. */
  readonly runs: Set<number>;
  /** Resolved when the newest facts are indexed. */
  readonly begun: PromiseWithResolvers<void>;
  built: Promise<void>;
  complete: boolean;
}

interface FindRequest {
  /** Variants of one query. */
  readonly texts: readonly string[];
  readonly limit: number;
  readonly category?: string;
  readonly tag?: string;
  readonly client?: string;
  /** Finds only facts that expire within so many milliseconds. */
  readonly expiringWithin?: number;
}

interface FindResult {
  readonly found: readonly Hit[];
  /** The index is still being built, or holds only the newest facts. */
  readonly partial: boolean;
}

/**
 * Searches facts and runs by their words. There is one index for each namespace that was searched, in memory only. It is built
 * in slices, updated by every commit before the writer gets its response, and dropped when the memory is locked.
 */
export class Finder implements Disposable {
  readonly #store: MemoryStore;
  readonly #maxBytes: number;
  readonly #subscription: Disposable;
  /** Least recently used first. */
  readonly #indexes = new Map<string, NamespaceIndex>();

  constructor(store: MemoryStore, maxBytes = MAX_BYTES) {
    this.#store = store;
    this.#maxBytes = maxBytes;
    this.#subscription = store.onEntryEvent((event) => this.#onEntryEvent(event));
  }

  /** The memory that all indexes take together. */
  get bytes(): number {
    let bytes = 0;
    for (const { index } of this.#indexes.values()) bytes += index.bytes;
    return bytes;
  }

  async find(namespace: Namespace, request: FindRequest, kind: IndexedKind = 'fact'): Promise<FindResult> {
    const { texts, expiringWithin: within, ...rest } = request;
    const indexed = this.#indexOf(namespace, kind);
    if (!indexed.complete) {
      // Reading the first entries can wait for the owner to provide the key. There are no partial results before that.
      await Promise.race([indexed.built, indexed.begun.promise]);
      await Promise.race([indexed.built, wait(BUILD_TIMEOUT_MS)]);
    }
    // The index was dropped during the wait, so its results mean nothing. The new search may fail, for example if the memory was locked.
    if (!this.#isCurrent(indexed)) return this.find(namespace, request, kind);
    // An expired fact is not found, even if it was not swept yet.
    const now = this.#store.now();
    const expiry = within === undefined ? {} : { expiresBefore: now + within + 1 };
    const hits = indexed.index.search({ text: texts, ...rest, ...expiry, now });
    return { found: hits, partial: !indexed.complete };
  }

  /** The tags and clients of all facts. Waits until all facts are indexed. */
  async names(namespace: Namespace, most: number): Promise<ReturnType<SearchIndex['names']>> {
    const indexed = this.#indexOf(namespace, 'fact');
    await indexed.built;
    return this.#isCurrent(indexed) ? indexed.index.names(most) : this.names(namespace, most);
  }

  /** Builds all indexes in advance, so that no search waits for them. */
  async prepare(): Promise<void> {
    for (const kind of ['fact', 'audit'] as const) {
      for (const { namespace } of await this.#store.namespaces(kind)) {
        await this.#indexOf(namespace, kind).built.catch(() => undefined);
      }
    }
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
    this.#drop();
  }

  #indexOf(namespace: Namespace, kind: IndexedKind): NamespaceIndex {
    const name = nameOf(namespace, kind);
    const known = this.#indexes.get(name);
    if (known) {
      this.#indexes.delete(name);
      this.#indexes.set(name, known);
      return known;
    }
    const indexed: NamespaceIndex = {
      namespace,
      kind,
      index: new SearchIndex(),
      runs: new Set(),
      begun: Promise.withResolvers(),
      built: Promise.resolve(),
      complete: false,
    };
    this.#indexes.set(name, indexed);
    indexed.built = this.#build(indexed).catch((error: unknown) => {
      if (this.#indexes.get(name) === indexed) this.#indexes.delete(name);
      throw error;
    });
    // Searches that wait for the build get its failure. Without them it must not become an unhandled rejection.
    indexed.built.catch(() => undefined);
    return indexed;
  }

  /** Indexes the newest first. A change that arrives meanwhile is newer than any page, so a page never replaces it. */
  async #build(indexed: NamespaceIndex): Promise<void> {
    const space = this.#store.space(indexed.namespace, indexed.kind);
    for (let after = {}; ;) {
      const { entries, rows, next } = await space.page({ sort: 'updated', uncached: true, ...SLICE, ...after });
      if (!this.#isCurrent(indexed)) return;
      for (const [position, entry] of entries.entries()) {
        const row = rows[position];
        if (row === undefined || indexed.index.has(row)) continue;
        if (indexEntry(indexed, row, entry) && !this.#hasRoom(indexed)) return;
      }
      indexed.begun.resolve();
      if (!next || isFull(indexed)) break;
      after = { after: next };
      await nextTurn();
    }
    indexed.complete = true;
  }

  #onEntryEvent(change: EntryEvent): void {
    if (change.what === 'reset') return this.#drop();
    if (change.what === 'deleted') {
      for (const { index, runs } of this.#indexes.values()) {
        index.remove(change.row);
        runs.delete(change.row);
      }
      return;
    }
    if (change.kind !== 'fact' && change.kind !== 'audit') return;
    const indexed = this.#indexes.get(nameOf(change.namespace, change.kind));
    if (!indexed) return;
    const grown = indexEntry(indexed, change.row, change.entry);
    if (isFull(indexed, SEARCHED_RUNS + 1)) dropOldest(indexed);
    if (grown) this.#dropUntil(this.#maxBytes);
  }

  #isCurrent(indexed: NamespaceIndex): boolean {
    return this.#indexes.get(nameOf(indexed.namespace, indexed.kind)) === indexed;
  }

  /** Drops other indexes first. An index that is too large alone keeps the newest facts and reports partial results. */
  #hasRoom(indexed: NamespaceIndex): boolean {
    const most = BUILD_PART * this.#maxBytes;
    this.#dropUntil(most, indexed);
    return this.bytes <= most;
  }

  /** Drops the least recently used indexes until the rest fits. The next search of a dropped one builds it again. */
  #dropUntil(most: number, except?: NamespaceIndex): void {
    for (const [name, indexed] of this.#indexes) {
      if (this.bytes <= most) return;
      if (indexed === except) continue;
      this.#indexes.delete(name);
      indexed.index.clear();
    }
  }

  /** Drops all indexes, because their texts were opened with the key. */
  #drop(): void {
    for (const { index } of this.#indexes.values()) index.clear();
    this.#indexes.clear();
  }
}

/** Returns whether the index takes more memory now. */
function indexEntry({ kind, index, runs }: NamespaceIndex, row: number, entry: Entry): boolean {
  const { key, category, tags, author, updatedAt, expiresAt } = entry;
  const value = kind === 'fact' ? entry.value : runText(entry);
  if (value === undefined) return false;
  if (kind === 'audit') runs.add(row);
  const { client, definedBy } = author;
  return index.add({ id: row, key, value, category, tags, client, definedBy, updatedAt, expiresAt });
}

/** Facts have no limit of their own; of runs, only the newest are indexed. */
const isFull = ({ runs }: NamespaceIndex, rows = SEARCHED_RUNS): boolean => runs.size >= rows;

/** Row numbers grow with each insert, so the lowest one is the oldest run. */
function dropOldest({ index, runs }: NamespaceIndex): void {
  const oldest = runs.keys().reduce((least, row) => Math.min(least, row), Infinity);
  runs.delete(oldest);
  index.remove(oldest);
}

/** Unique for each namespace: the length marks the end of the subject. */
const nameOf = ({ subject, session = '' }: Namespace, kind: IndexedKind): string =>
  `${kind} ${subject.length} ${subject}${session}`;

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
