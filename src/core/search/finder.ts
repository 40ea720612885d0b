import { setImmediate as nextTurn } from 'node:timers/promises';
import { SEARCHED_RUNS } from '../../contract/limits.ts';
import type { FactMeaning } from '../meaning/nearest.ts';
import { windowsOf } from '../meaning/windows.ts';
import type { Entry, EntryEvent, MemoryStore, Namespace } from '../store/store.ts';
import { NEAREST_ASKED, type NearFact, nearFacts } from './near-facts.ts';
import { runText } from './run-text.ts';
import { searchByMeaning } from './search-by-meaning.ts';
import { type Hit, SearchIndex, type SearchQuery } from './search-index.ts';

/**
 * Maximum facts and bytes that are decrypted and indexed without a pause if no queries arrive, so that other calls are not delayed
 * (R-VIEW-04). While queries arrive, several smaller slices can run in one turn of the event loop, at most for `MAX_WORK_MS`.
 */
const SLICE = { limit: 100, bytes: 32 * 1024 } as const;
/** The maximum for a slice that is shortly after a query, because the next query waits for its end. */
const BUSY_SLICE = { limit: 16, bytes: 4 * 1024 } as const;
const BUSY_MS = 50;
/**
 * While queries arrive, the build takes half of the time: it pauses for as long as its last slices took, and works for as long as
 * the queries of the last turns took. This is the maximum for which it works without a pause, in milliseconds.
 */
const MAX_WORK_MS = 3;
/** Maximum bytes of all indexes together. The least recently used index is dropped first. */
const MAX_BYTES = 512 * 1024 * 1024;
/**
 * If all indexes together are larger than this, those that no query has used for `IDLE_MS` are dropped, so that a server with many
 * subjects needs memory only for those in use. A memory of one person stays below it.
 */
const IDLE_BYTES = 64 * 1024 * 1024;
const IDLE_MS = 10 * 60 * 1000;
/**
 * Fraction of `MAX_BYTES` that building an index can use. The rest is reserved for later writes. Otherwise each later write would
 * drop an index, which is slow to rebuild.
 */
const BUILD_FRACTION = 3 / 4;
/** Maximum milliseconds that a search waits for the meaning of its question. It then answers by words. */
const MEANING_MS = 3000;
/** Number of nearest facts to compare. If the search has filters, most of the nearest facts may be excluded. */
const NEAREST = { all: 100, filtered: 2000 };
/** Only the beginning of a fact is compared with other facts. */
const COMPARED_CHARACTERS = 1000;
/**
 * Milliseconds after the first slice of a build during which queries wait for the index, so that a small memory gives no partial
 * results. Later queries do not wait: they search the facts that are indexed so far.
 */
const BUILD_GRACE_MS = 100;

/**
 * The kind of the indexed entries. Facts and audit records of runs have separate indexes, so a search of one kind never returns
 * the other.
 */
type IndexedKind = 'fact' | 'audit';

interface NamespaceIndex {
  readonly namespace: Namespace;
  readonly kind: IndexedKind;
  readonly index: SearchIndex;
  /** Row numbers of the indexed runs. Only the newest runs are indexed. Empty in an index of facts. */
  readonly runs: Set<number>;
  /**
   * Row numbers of entries that were deleted during the build, because a page that was read before can still contain them. Undefined
   * after the build.
   */
  deleted: Set<number> | undefined;
  /** Row numbers of entries that were written during the build, oldest first. They are newer than the entries around them. */
  readonly written: Set<number>;
  /** Resolved when the first slice of entries, the newest ones, is indexed. The value is the end of the grace period. */
  readonly begun: PromiseWithResolvers<number>;
  built: Promise<void>;
  complete: boolean;
  /** Time of the last query that came during the build, in milliseconds on the clock of `performance`. */
  queriedAt: number;
  /** Time of the last use, on the same clock. */
  usedAt: number;
}

export interface FindRequest {
  /** Variants of one query, whose hits are merged. */
  readonly texts: readonly string[];
  /**
   * With `words`, only words are compared. With `meaning`, only meanings. With `auto`, which is the default, meanings are compared as
   * well unless the words are enough, and with `both` in any case. If meanings cannot be compared, words are.
   */
  readonly mode?: 'auto' | 'both' | 'words' | 'meaning';
  /** The text whose meaning is compared. If absent, the first of the texts. */
  readonly question?: string;
  readonly signal?: AbortSignal | undefined;
  /** Waits for a turn. Called after the meaning of the question was computed, before the search resumes. */
  readonly yieldTurn?: () => Promise<void>;
  readonly limit: number;
  readonly category?: string;
  readonly tag?: string;
  readonly client?: string;
  /** If set, finds only facts that expire within this many milliseconds. */
  readonly expiringWithin?: number;
}

interface FindResult {
  readonly found: readonly Hit[];
  /** True if the index is still being built, or contains only the newest facts because of its size. */
  readonly partial: boolean;
  /** Present if meanings were compared. It is `partial` if some facts have no vector yet. */
  readonly meaning?: 'complete' | 'partial';
}

interface FinderOptions {
  readonly maxBytes?: number;
  readonly idleBytes?: number;
  /** Finds facts by their meaning. If absent, facts are found by their words only. */
  readonly meaning?: FactMeaning | undefined;
}

/**
 * Searches facts and runs by their words, and facts also by their meaning. There is one index for each searched namespace and kind, in RAM only. The index is
 * built in small steps, updated by every commit before the writer gets its response, and dropped when the memory is locked.
 */
export class Finder implements Disposable {
  readonly #store: MemoryStore;
  readonly #maxBytes: number;
  readonly #idleBytes: number;
  readonly #meaning: FactMeaning | undefined;
  readonly #subscription: Disposable;
  /** The indexes by name, least recently used first. */
  readonly #indexes = new Map<string, NamespaceIndex>();

  constructor(store: MemoryStore, { maxBytes = MAX_BYTES, idleBytes = IDLE_BYTES, meaning }: FinderOptions = {}) {
    this.#store = store;
    this.#meaning = meaning;
    this.#maxBytes = maxBytes;
    this.#idleBytes = idleBytes;
    this.#subscription = store.onEntryEvent((event) => this.#onEntryEvent(event));
  }

  get bytes(): number {
    let bytes = 0;
    for (const { index } of this.#indexes.values()) bytes += index.bytes;
    return bytes;
  }

  async find(namespace: Namespace, request: FindRequest, kind: IndexedKind = 'fact'): Promise<FindResult> {
    if (this.#store.refresh) await this.#store.refresh();
    const indexed = this.#indexOf(namespace, kind);
    if (!indexed.complete) {
      indexed.queriedAt = performance.now();
      // Wait for the first entries without a timeout, because not even partial results are possible before them.
      const graceEnd = await Promise.race([indexed.built, indexed.begun.promise]);
      const grace = (graceEnd ?? 0) - performance.now();
      if (grace > 0) await Promise.race([indexed.built, wait(grace)]);
    }
    // If the index was dropped during the wait, its results are invalid, so search again. The new search may fail, for example
    // because the memory was locked.
    if (!this.#isCurrent(indexed)) return this.find(namespace, request, kind);
    const query = this.#queryOf(request);
    const { mode = 'auto', question = request.texts[0] ?? '' } = request;
    const found = mode === 'meaning' ? [] : indexed.index.search(query);
    const isEnough = mode === 'words' || (mode === 'auto' && found[0]?.isSure === true);
    const meaning = this.#meaning;
    if (!meaning?.isAvailable || kind !== 'fact' || isEnough || question.trim() === '') {
      const hits = mode === 'meaning' ? indexed.index.search(query) : found;
      return { found: hits, partial: !indexed.complete };
    }
    return this.#findByMeaning(meaning, indexed, { ...request, mode, question });
  }

  /** Searches again after the wait for the meaning of the question, because facts may have changed or expired meanwhile. */
  async #findByMeaning(
    meaning: FactMeaning,
    indexed: NamespaceIndex,
    request: FindRequest & { readonly mode: 'auto' | 'both' | 'meaning'; readonly question: string },
  ): Promise<FindResult> {
    const { mode, question, signal, yieldTurn } = request;
    const timeout = AbortSignal.timeout(MEANING_MS);
    const narrowed = (['category', 'tag', 'client', 'expiringWithin'] as const).some((filter) => request[filter] !== undefined);
    const nearest = await meaning
      .nearest(indexed.namespace, question, {
        limit: narrowed ? NEAREST.filtered : NEAREST.all,
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      })
      // Words answer if the model does not.
      .catch(() => undefined);
    signal?.throwIfAborted();
    if (yieldTurn) await yieldTurn();
    if (nearest === undefined || !this.#isCurrent(indexed)) return this.find(indexed.namespace, { ...request, mode: 'words' });
    const found = searchByMeaning(indexed.index, { ...this.#queryOf(request), mode, question }, nearest);
    return { found, partial: !indexed.complete, meaning: nearest.partial ? 'partial' : 'complete' };
  }

  #queryOf({ texts, limit, category, tag, client, expiringWithin: within }: FindRequest): SearchQuery {
    // Passing `now` excludes expired facts that have not been deleted yet.
    const now = this.#store.now();
    return {
      text: texts,
      limit,
      now,
      ...(category !== undefined && { category }),
      ...(tag !== undefined && { tag }),
      ...(client !== undefined && { client }),
      ...(within !== undefined && { expiresBefore: now + within + 1 }),
    };
  }

  /** Whether `findNear` can find anything. */
  get comparesMeanings(): boolean {
    return this.#meaning?.isAvailable === true;
  }

  /** Whether `find` can compare meanings without waiting until the model is loaded. */
  get isMeaningWarm(): boolean {
    return this.#meaning?.isWarm === true;
  }

  /** Begins to load what `find` needs to compare meanings, because a question will probably follow. */
  warmMeaning(namespace: Namespace): void {
    this.#meaning?.warm(namespace);
  }

  /**
   * Finds facts under other keys that probably repeat or contradict a fact. Undefined if meanings cannot be compared. Throws the reason
   * of the signal if it is aborted first.
   */
  async findNear(
    namespace: Namespace,
    fact: Pick<Entry, 'key' | 'category' | 'value'>,
    { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
  ): Promise<readonly NearFact[] | undefined> {
    const [text = ''] = windowsOf({ ...fact, value: fact.value.slice(0, COMPARED_CHARACTERS) });
    const nearest = await this.#meaning?.nearest(namespace, text, { limit: NEAREST_ASKED, signal });
    if (!nearest) return undefined;
    const indexed = this.#indexOf(namespace, 'fact');
    await indexed.built;
    signal.throwIfAborted();
    if (!this.#isCurrent(indexed)) return undefined;
    return nearFacts(indexed.index, { key: fact.key, limit, now: this.#store.now() }, nearest);
  }

  /** Returns the tags and clients with the most facts. Waits until all facts are indexed. */
  async names(namespace: Namespace, most: number): Promise<ReturnType<SearchIndex['names']>> {
    if (this.#store.refresh) await this.#store.refresh();
    const indexed = this.#indexOf(namespace, 'fact');
    await indexed.built;
    return this.#isCurrent(indexed) ? indexed.index.names(most) : this.names(namespace, most);
  }

  /**
   * Builds indexes in advance, so that no search waits for them. If there are so many that idle ones would be dropped, the others are
   * built when they are first searched.
   */
  async prepare(): Promise<void> {
    for (const kind of ['fact', 'audit'] as const) {
      for (const { namespace } of await this.#store.namespaces(kind)) {
        if (this.bytes > this.#idleBytes) return;
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
    const usedAt = performance.now();
    if (known) {
      known.usedAt = usedAt;
      this.#indexes.delete(name);
      this.#indexes.set(name, known);
      this.#dropIdle(usedAt);
      return known;
    }
    this.#dropIdle(usedAt);
    const indexed: NamespaceIndex = {
      namespace,
      kind,
      index: new SearchIndex({ newestFirst: true }),
      runs: new Set(),
      deleted: new Set(),
      written: new Set(),
      begun: Promise.withResolvers(),
      built: Promise.resolve(),
      complete: false,
      queriedAt: -Infinity,
      usedAt,
    };
    this.#indexes.set(name, indexed);
    indexed.built = this.#build(indexed)
      .catch((error: unknown) => {
        if (this.#indexes.get(name) === indexed) this.#indexes.delete(name);
        throw error;
      })
      .finally(() => (indexed.deleted = undefined));
    // Searches that wait for the build receive its error. If no search is waiting, the error must not become an unhandled
    // rejection.
    indexed.built.catch(() => undefined);
    return indexed;
  }

  /**
   * Indexes entries page by page, newest first. A page never replaces an entry that is already indexed, because that entry was
   * changed during the build and is newer.
   */
  async #build(indexed: NamespaceIndex): Promise<void> {
    const space = this.#store.space(indexed.namespace, indexed.kind);
    let due = 0;
    for (let after = {}; !isFull(indexed);) {
      const start = performance.now();
      const slice = start - indexed.queriedAt < BUSY_MS ? BUSY_SLICE : SLICE;
      const limit = Math.min(slice.limit, SEARCHED_RUNS - indexed.runs.size);
      const { entries, rows, next } = await space.page({ sort: 'updated', uncached: true, ...slice, limit, ...after });
      if (!this.#isCurrent(indexed)) return;
      for (const [position, entry] of entries.entries()) {
        const row = rows[position];
        if (row === undefined || indexed.index.has(row) || indexed.deleted?.has(row)) continue;
        if (indexEntry(indexed, row, entry) && !this.#makeRoom(indexed)) return this.#endBuild(indexed);
      }
      const end = performance.now();
      indexed.begun.resolve(end + BUILD_GRACE_MS);
      if (!next) break;
      after = { after: next };
      due -= end - start;
      if (due <= 0) due = await otherWork(indexed, due);
    }
    await this.#endBuild(indexed);
    indexed.complete = true;
  }

  /** Adds the entries again that were written during the build, so that searches can tell which entries are the newest. */
  async #endBuild(indexed: NamespaceIndex): Promise<void> {
    indexed.index.endBuild();
    let renewed = 0;
    for (const row of indexed.written) {
      indexed.written.delete(row);
      indexed.index.renew(row);
      renewed += 1;
      if (renewed % SLICE.limit > 0) continue;
      await nextTurn();
      if (!this.#isCurrent(indexed)) return;
    }
  }

  #onEntryEvent(change: EntryEvent): void {
    if (change.what === 'reset') return this.#drop();
    if (change.what === 'deleted') {
      for (const { index, runs, deleted, written } of this.#indexes.values()) {
        index.remove(change.row);
        runs.delete(change.row);
        deleted?.add(change.row);
        written.delete(change.row);
      }
      return;
    }
    if (change.kind !== 'fact' && change.kind !== 'audit') return;
    const indexed = this.#indexes.get(nameOf(change.namespace, change.kind));
    if (!indexed) return;
    indexed.deleted?.delete(change.row);
    // An entry that is written twice during the build moves to the end.
    indexed.written.delete(change.row);
    if (indexed.deleted) indexed.written.add(change.row);
    const grown = indexEntry(indexed, change.row, change.entry);
    if (isFull(indexed, SEARCHED_RUNS + 1)) dropOldest(indexed);
    if (grown) this.#dropUntil(this.#maxBytes);
  }

  #isCurrent(indexed: NamespaceIndex): boolean {
    return this.#indexes.get(nameOf(indexed.namespace, indexed.kind)) === indexed;
  }

  /**
   * Frees memory by dropping other indexes. Returns false if this index alone is too large. The caller then stops the build, and
   * the index contains only the newest facts.
   */
  #makeRoom(indexed: NamespaceIndex): boolean {
    const most = BUILD_FRACTION * this.#maxBytes;
    this.#dropUntil(most, indexed);
    return this.bytes <= most;
  }

  /**
   * Drops the least recently used indexes until the remaining indexes use at most `most` bytes. The next search rebuilds a
   * dropped index.
   */
  #dropUntil(most: number, except?: NamespaceIndex): void {
    for (const [name, indexed] of this.#indexes) {
      if (this.bytes <= most) return;
      if (indexed === except) continue;
      this.#indexes.delete(name);
      indexed.index.clear();
    }
  }

  /** Drops the indexes that are idle, the least recently used first, while all indexes together are large. */
  #dropIdle(now: number): void {
    for (const [name, indexed] of this.#indexes) {
      if (now - indexed.usedAt < IDLE_MS || this.bytes <= this.#idleBytes) return;
      this.#indexes.delete(name);
      indexed.index.clear();
    }
  }

  /** Overwrites and drops all indexes, because they contain decrypted text. */
  #drop(): void {
    for (const { index } of this.#indexes.values()) index.clear();
    this.#indexes.clear();
  }
}

/**
 * Waits while queries take the time that the build owes them, at least one turn of the event loop. `due` is the time that the
 * build is due, in milliseconds, and is negative if the build took more than the queries. Returns its new value.
 */
async function otherWork(indexed: NamespaceIndex, due: number): Promise<number> {
  for (let rest = due; ;) {
    const start = performance.now();
    await nextTurn();
    // A query takes several turns, and its client needs time to send the next, so a turn without a query does not end the pause.
    if (start - indexed.queriedAt >= BUSY_MS) return 0;
    rest += performance.now() - start;
    if (rest >= 0) return Math.min(rest, MAX_WORK_MS);
  }
}

/** Adds an entry to its index. Returns true if the index uses more memory now. */
function indexEntry({ kind, index, runs }: NamespaceIndex, row: number, entry: Entry): boolean {
  const { key, category, tags, author, updatedAt, expiresAt } = entry;
  const value = kind === 'fact' ? entry.value : runText(entry);
  if (value === undefined) return false;
  if (kind === 'audit') runs.add(row);
  const { client, definedBy } = author;
  return index.add({ id: row, key, value, category, tags, client, definedBy, updatedAt, expiresAt });
}

/** Whether the index contains the maximum number of runs. Facts have no such limit. */
const isFull = ({ runs }: NamespaceIndex, rows = SEARCHED_RUNS): boolean => runs.size >= rows;

/** Removes the oldest run, which has the lowest row number, because row numbers grow with each insert. */
function dropOldest({ index, runs }: NamespaceIndex): void {
  const oldest = runs.keys().reduce((least, row) => Math.min(least, row), Infinity);
  runs.delete(oldest);
  index.remove(oldest);
}

/**
 * Returns a name that is unique for each namespace and kind. The length of the subject separates the subject from the session.
 */
const nameOf = ({ subject, session = '' }: Namespace, kind: IndexedKind): string =>
  `${kind} ${subject.length} ${subject}${session}`;

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
