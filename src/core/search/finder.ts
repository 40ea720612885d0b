import { setImmediate as nextTurn } from 'node:timers/promises';
import { SEARCHED_RUNS } from '../../contract/limits.ts';
import type { Entry, EntryEvent, MemoryStore, Namespace } from '../store/store.ts';
import { runText } from './run-text.ts';
import { type Hit, SearchIndex } from './search-index.ts';

/** Facts opened and indexed in one turn, and their bytes: few enough that nobody waiting behind them notices (R-VIEW-04). */
const SLICE = { limit: 100, bytes: 32 * 1024 } as const;
/** What all indexes together may take; the one that was asked least recently makes room. */
const MOST_BYTES = 512 * 1024 * 1024;
/** Of that, what is built at most: what is written from then on needs room too, or it would be built anew at every write. */
const BUILT = 3 / 4;
/** So long a question waits for an index that is being built, before it is answered from what is there. */
const PATIENCE_MS = 250;

/** What can be searched, each by itself: nobody finds a row of the record among facts, or the other way round. */
type IndexedKind = 'fact' | 'audit';

interface NamespaceIndex {
  readonly namespace: Namespace;
  readonly kind: IndexedKind;
  readonly index: SearchIndex;
  /** Of a record: its rows, of which only the newest are held. */
  readonly runs: Set<number>;
  /** The newest are in it. */
  readonly begun: PromiseWithResolvers<void>;
  built: Promise<void>;
  complete: boolean;
}

interface FindRequest {
  /** Several ways to ask the same. */
  readonly texts: readonly string[];
  readonly limit: number;
  readonly category?: string;
  readonly tag?: string;
  readonly client?: string;
  /** Only what goes within so many milliseconds. */
  readonly expiringWithin?: number;
}

interface FindResult {
  readonly found: readonly Hit[];
  /** The index is still being built, or holds only what fits. */
  readonly partial: boolean;
}

/**
 * Finds facts, and what ran, by their words. Indexes live in memory only, one for each namespace that asks, built from opened entries in
 * slices, kept in step with every commit before its writer is answered, and dropped when the memory is locked.
 */
export class Finder implements Disposable {
  readonly #store: MemoryStore;
  readonly #mostBytes: number;
  readonly #following: Disposable;
  /** The one asked last stands last. */
  readonly #shelves = new Map<string, NamespaceIndex>();

  constructor(store: MemoryStore, mostBytes = MOST_BYTES) {
    this.#store = store;
    this.#mostBytes = mostBytes;
    this.#following = store.onEntryEvent((change) => this.#hear(change));
  }

  /** What all indexes together take. */
  get bytes(): number {
    let bytes = 0;
    for (const { index } of this.#shelves.values()) bytes += index.bytes;
    return bytes;
  }

  async find(namespace: Namespace, question: FindRequest, kind: IndexedKind = 'fact'): Promise<FindResult> {
    const { texts, expiringWithin: within, ...rest } = question;
    const shelf = this.#shelf(namespace, kind);
    if (!shelf.complete) {
      // Whether the key is there may take as long as its owner takes; until then there is no answer, not even a partial one.
      await Promise.race([shelf.built, shelf.begun.promise]);
      await Promise.race([shelf.built, wait(PATIENCE_MS)]);
    }
    // Emptied while we waited: nothing found there would mean nothing, and what emptied it may refuse to be asked again.
    if (!this.#stands(shelf)) return this.find(namespace, question, kind);
    // What has expired is not found, swept or not.
    const now = this.#store.now();
    const ending = within === undefined ? {} : { expiresBefore: now + within + 1 };
    const hits = shelf.index.search({ text: texts, ...rest, ...ending, now });
    return { found: hits, partial: !shelf.complete };
  }

  /** The tags and clients of all facts, which takes until all are indexed. */
  async names(namespace: Namespace, most: number): Promise<ReturnType<SearchIndex['names']>> {
    const shelf = this.#shelf(namespace, 'fact');
    await shelf.built;
    return this.#stands(shelf) ? shelf.index.names(most) : this.names(namespace, most);
  }

  /** Builds what will be asked for, so that nobody has to wait for it. */
  async prepare(): Promise<void> {
    for (const kind of ['fact', 'audit'] as const) {
      for (const { namespace } of await this.#store.namespaces(kind)) {
        await this.#shelf(namespace, kind).built.catch(() => undefined);
      }
    }
  }

  [Symbol.dispose](): void {
    this.#following[Symbol.dispose]();
    this.#drop();
  }

  #shelf(namespace: Namespace, kind: IndexedKind): NamespaceIndex {
    const name = nameOf(namespace, kind);
    const known = this.#shelves.get(name);
    if (known) {
      this.#shelves.delete(name);
      this.#shelves.set(name, known);
      return known;
    }
    const shelf: NamespaceIndex = {
      namespace,
      kind,
      index: new SearchIndex(),
      runs: new Set(),
      begun: Promise.withResolvers(),
      built: Promise.resolve(),
      complete: false,
    };
    this.#shelves.set(name, shelf);
    shelf.built = this.#build(shelf).catch((error: unknown) => {
      if (this.#shelves.get(name) === shelf) this.#shelves.delete(name);
      throw error;
    });
    // Whoever waits for it hears of a failure; where nobody waits it is not one.
    shelf.built.catch(() => undefined);
    return shelf;
  }

  /** The newest first: they are what is asked for soonest. What changes meanwhile is heard, and is newer than any page. */
  async #build(shelf: NamespaceIndex): Promise<void> {
    const space = this.#store.space(shelf.namespace, shelf.kind);
    for (let after = {}; ;) {
      const { entries, rows, next } = await space.page({ sort: 'updated', uncached: true, ...SLICE, ...after });
      if (!this.#stands(shelf)) return;
      for (const [index, entry] of entries.entries()) {
        const row = rows[index];
        if (row === undefined || shelf.index.has(row)) continue;
        if (tell(shelf, row, entry) && !this.#hasRoom(shelf)) return;
      }
      shelf.begun.resolve();
      if (!next || isFull(shelf)) break;
      after = { after: next };
      await nextTurn();
    }
    shelf.complete = true;
  }

  #hear(change: EntryEvent): void {
    if (change.what === 'reset') return this.#drop();
    if (change.what === 'deleted') {
      for (const { index, runs } of this.#shelves.values()) {
        index.remove(change.row);
        runs.delete(change.row);
      }
      return;
    }
    if (change.kind !== 'fact' && change.kind !== 'audit') return;
    const shelf = this.#shelves.get(nameOf(change.namespace, change.kind));
    if (!shelf) return;
    const grown = tell(shelf, change.row, change.entry);
    if (isFull(shelf, SEARCHED_RUNS + 1)) dropOldest(shelf);
    if (grown) this.#keepWithin(this.#mostBytes);
  }

  #stands(shelf: NamespaceIndex): boolean {
    return this.#shelves.get(nameOf(shelf.namespace, shelf.kind)) === shelf;
  }

  /** Others make room first; an index that is too large by itself keeps the newest and says so. */
  #hasRoom(shelf: NamespaceIndex): boolean {
    const most = BUILT * this.#mostBytes;
    this.#keepWithin(most, shelf);
    return this.bytes <= most;
  }

  /** Drops what was asked least recently until the rest fits. Whoever asks for it again has it built, from the newest on. */
  #keepWithin(most: number, except?: NamespaceIndex): void {
    for (const [name, shelf] of this.#shelves) {
      if (this.bytes <= most) return;
      if (shelf === except) continue;
      this.#shelves.delete(name);
      shelf.index.clear();
    }
  }

  /** Everything in it was opened with the key. */
  #drop(): void {
    for (const { index } of this.#shelves.values()) index.clear();
    this.#shelves.clear();
  }
}

/** Whether the index has grown: it does by pages, so that after most facts nobody need look at all the others. */
function tell({ kind, index, runs }: NamespaceIndex, row: number, entry: Entry): boolean {
  const { key, category, tags, author, updatedAt, expiresAt } = entry;
  const value = kind === 'fact' ? entry.value : runText(entry);
  if (value === undefined) return false;
  if (kind === 'audit') runs.add(row);
  const before = index.bytes;
  const { client, definedBy } = author;
  index.add({ id: row, key, value, category, tags, client, definedBy, updatedAt, expiresAt });
  return index.bytes > before;
}

/** Of facts there are as many as there may be; of what ran only the newest are looked at. */
const isFull = ({ runs }: NamespaceIndex, rows = SEARCHED_RUNS): boolean => runs.size >= rows;

/** Rows are numbered as they are written. */
function dropOldest({ index, runs }: NamespaceIndex): void {
  const oldest = runs.keys().reduce((least, row) => Math.min(least, row), Infinity);
  runs.delete(oldest);
  index.remove(oldest);
}

/** Different for every pair: the length tells where the one ends. */
const nameOf = ({ subject, session = '' }: Namespace, kind: IndexedKind): string =>
  `${kind} ${subject.length} ${subject}${session}`;

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
