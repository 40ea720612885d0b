import { isReadable } from '../../contract/status.ts';
import type { EntryCursor, MemoryStore, Namespace, UnembeddedFact } from '../store/store.ts';
import type { Embedder, EmbeddingModel } from './embedder.ts';
import { encodeVectors } from './vector-codec.ts';
import { windowsOf } from './windows.ts';

/**
 * Maximum facts that one turn of a namespace embeds, and that one commit stores. The facts of a turn are stored in the order of their rows:
 * a database that gets them one by one, the newest first, needs almost twice the space.
 */
const FACTS_AT_ONCE = 128;
/** Facts that one call of the model embeds. After each call, new facts of other namespaces can go first. */
const FACTS_OF_A_CALL = 8;
/** Milliseconds after a write until its fact is embedded, so that facts that are written together share a commit. */
const DELAY_MS = 20;
/** Maximum further delay if several processes share the store, so that usually one of them embeds a new fact. */
const SHARED_DELAY_MS = 1000;
/** Milliseconds after a failure until the next attempt, for example on a full disk. */
const RETRY_MS = 60_000;
/** How often a fact may fail alone until it is skipped, so that a text that crashes the model does not stop all others. */
const MAX_FAILURES = 2;

/** The facts of a namespace that may need vectors. */
interface Work {
  readonly namespace: Namespace;
  /** Rows that were written since the start, the newest last. */
  readonly fresh: Set<number>;
  /** Position of the scan for older facts without a vector. Undefined after the scan. */
  scan: { readonly after?: EntryCursor } | undefined;
}

type Found = Awaited<ReturnType<MemoryStore['vectors']['missing']>>;
type EmbeddedFact = UnembeddedFact & { readonly vector: Uint8Array };

/** Called with the vectors of a fact that are stored. */
type OnVectors = (namespace: Namespace, row: number, version: number, vector: Uint8Array) => void;

/**
 * Embeds facts after their commit, the newest first, and each namespace in turn. Nothing is lost if the work ends at any point: the
 * next scan finds the facts that have no vector.
 */
export class BackgroundEmbedding {
  readonly #store: MemoryStore;
  readonly #embedder: Embedder;
  readonly #onVectors: OnVectors;
  /** The namespaces with work, the next one first. */
  readonly #work = new Map<string, Work>();
  /** The versions of the facts that are being embedded. */
  readonly #embedding = new Map<number, number>();
  readonly #failures = new Map<number, number>();
  #started = false;
  #running: Promise<void> | undefined;
  #cancel = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** Facts are embedded one at a time after a failure, to find the one that causes it. */
  #oneByOne = false;

  constructor(store: MemoryStore, embedder: Embedder, onVectors: OnVectors) {
    this.#store = store;
    this.#embedder = embedder;
    this.#onVectors = onVectors;
  }

  start(): void {
    this.#started = true;
    this.scan();
  }

  /** Looks for facts without a vector in all namespaces. */
  scan(): void {
    if (!this.#canWork()) return;
    const { signal } = this.#cancel;
    this.#store.namespaces().then(
      (found) => {
        if (signal.aborted) return;
        for (const { namespace } of found) this.#workOf(namespace).scan = {};
        this.#wake(0);
      },
      () => this.#retryLater(),
    );
  }

  /** Embeds a fact that was stored. Returns false if the fact was only renewed while it is being embedded. */
  stored(namespace: Namespace, row: number, version: number): boolean {
    if (this.#embedding.get(row) === version) return false;
    this.#embedding.delete(row);
    if (!this.#started || !this.#embedder.model) return true;
    const { fresh } = this.#workOf(namespace);
    fresh.delete(row);
    fresh.add(row);
    this.#wake(this.#store.refresh ? DELAY_MS + Math.random() * SHARED_DELAY_MS : DELAY_MS);
    return true;
  }

  deleted(row: number): void {
    this.#embedding.delete(row);
    this.#failures.delete(row);
    for (const { fresh } of this.#work.values()) fresh.delete(row);
  }

  /** Whether facts of a namespace wait for their vectors. */
  isPending(namespace: Namespace): boolean {
    return this.#work.has(nameOf(namespace));
  }

  /** Allows facts again that another model could not embed. */
  forgetFailures(): void {
    this.#failures.clear();
  }

  /** Ends the work. Resolves when nothing more is stored. */
  async cancel(): Promise<void> {
    this.#cancel.abort();
    this.#cancel = new AbortController();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#work.clear();
    this.#embedding.clear();
    await this.#running;
  }

  /** Ends the work for good. */
  stop(): void {
    this.#started = false;
    void this.cancel();
  }

  #canWork(): boolean {
    return this.#started && this.#embedder.model !== undefined && isReadable(this.#store.status());
  }

  #workOf(namespace: Namespace): Work {
    const name = nameOf(namespace);
    const known = this.#work.get(name);
    if (known) return known;
    const work: Work = { namespace, fresh: new Set(), scan: undefined };
    this.#work.set(name, work);
    return work;
  }

  /** Continues the work after a delay, unless it is running or planned. With the delay 0, it also ends the pause after a failure. */
  #wake(delay: number): void {
    if (this.#running || (this.#timer && delay > 0)) return;
    this.#plan(delay, () => {
      this.#running ??= this.#run(this.#cancel.signal).finally(() => {
        this.#running = undefined;
        // Work was added after the running work was cancelled.
        if (this.#work.size > 0 && this.#canWork()) this.#wake(DELAY_MS);
      });
    });
  }

  #retryLater(): void {
    this.#plan(RETRY_MS, () => this.scan());
  }

  #plan(delay: number, work: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      work();
    }, delay).unref();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#canWork()) {
      const next = this.#next();
      if (!next) return;
      try {
        await this.#turn(next, signal);
      } catch {
        if (signal.aborted) return;
        this.#oneByOne = true;
        // The later scan finds the facts of this turn again.
        return this.#retryLater();
      }
    }
  }

  /** Returns the namespace that waits longest. Namespaces with new facts go before those with old ones. */
  #next(): Work | undefined {
    const work = this.#work.values().find(({ fresh }) => fresh.size > 0) ?? this.#work.values().next().value;
    if (!work) return undefined;
    const name = nameOf(work.namespace);
    this.#work.delete(name);
    this.#work.set(name, work);
    return work;
  }

  /** Embeds some facts of a namespace, the newest first, and stores their vectors. */
  async #turn(work: Work, signal: AbortSignal): Promise<void> {
    const { model } = this.#embedder;
    if (!model) return;
    const { namespace, fresh } = work;
    const areFresh = fresh.size > 0;
    // The new facts were deleted meanwhile.
    if (!areFresh && !work.scan) return void this.#work.delete(nameOf(namespace));
    const { facts, next } = await (areFresh ? this.#freshFacts(work, model) : this.#olderFacts(work, model));
    const wanted = facts.filter(({ row }) => (this.#failures.get(row) ?? 0) < MAX_FAILURES);
    const embedded: EmbeddedFact[] = [];
    for (const { row, entry } of wanted) this.#embedding.set(row, entry.updatedAt);
    try {
      while (embedded.length < wanted.length && !signal.aborted) {
        const from = embedded.length;
        const batch = wanted.slice(from, from + (this.#oneByOne ? 1 : FACTS_OF_A_CALL));
        embedded.push(...(await this.#vectorsOf(batch, model, signal)));
        const waiting = this.#work.values().find((other) => other.fresh.size > 0 && !(areFresh && other === work));
        if (!waiting || embedded.length === wanted.length) continue;
        // New facts go first. Old ones wait for them, and are still stored together.
        if (!areFresh) await this.#turn(waiting, signal);
        else {
          for (const { row } of wanted.slice(embedded.length).toReversed()) fresh.add(row);
          break;
        }
      }
    } finally {
      // After a failure too, so that the facts before it need not be embedded again.
      await this.#putVectors(namespace, embedded, model, signal);
      for (const { row } of wanted) this.#embedding.delete(row);
    }
    if (!areFresh) {
      work.scan = next && { after: next };
      // The scan found no fact that fails. New facts say nothing about it.
      this.#oneByOne = false;
    }
    const name = nameOf(namespace);
    if (fresh.size === 0 && !work.scan && this.#work.get(name) === work) this.#work.delete(name);
  }

  async #freshFacts({ namespace, fresh }: Work, model: EmbeddingModel): Promise<Found> {
    const rows = [...fresh].slice(-FACTS_AT_ONCE);
    for (const row of rows) fresh.delete(row);
    const { facts, vectors } = await this.#store.vectors.read(namespace, model.id, rows);
    // Another process has embedded these, or they were only renewed.
    for (const { row, version, vector } of vectors) this.#onVectors(namespace, row, version, vector);
    return { facts };
  }

  #olderFacts({ namespace, scan }: Work, model: EmbeddingModel): Promise<Found> {
    return this.#store.vectors.missing(namespace, model.id, scan?.after);
  }

  /** Stores the vectors of facts that were not changed meanwhile. */
  async #putVectors(
    namespace: Namespace,
    embedded: readonly EmbeddedFact[],
    model: EmbeddingModel,
    signal: AbortSignal,
  ): Promise<void> {
    const isUnchanged = ({ row, entry }: UnembeddedFact): boolean => this.#embedding.get(row) === entry.updatedAt;
    const unchanged = embedded.filter(isUnchanged).toSorted((one, other) => one.row - other.row);
    if (unchanged.length === 0 || signal.aborted) return;
    const stored = new Set(await this.#store.vectors.put(namespace, model.id, unchanged));
    if (signal.aborted || this.#embedder.model?.id !== model.id) return;
    for (const fact of unchanged) {
      if (stored.has(fact.row) && isUnchanged(fact)) this.#onVectors(namespace, fact.row, fact.entry.updatedAt, fact.vector);
    }
  }

  async #vectorsOf(
    facts: readonly UnembeddedFact[],
    { dimensions }: EmbeddingModel,
    signal: AbortSignal,
  ): Promise<EmbeddedFact[]> {
    const windows = facts.map(({ entry }) => windowsOf(entry));
    try {
      const vectors = await this.#embedder.embed(windows.flat(), { urgent: false, signal });
      if (vectors.some(({ length }) => length !== dimensions))
        throw new RangeError('The model returned vectors of another length.');
      let at = 0;
      return facts.map((fact, index) => {
        const end = at + (windows[index]?.length ?? 0);
        const vector = encodeVectors(vectors.slice(at, end));
        at = end;
        return { ...fact, vector };
      });
    } catch (error) {
      const [only, ...others] = facts;
      if (only && others.length === 0) this.#failures.set(only.row, (this.#failures.get(only.row) ?? 0) + 1);
      throw error;
    }
  }
}

/** Returns a name that is unique for each namespace. */
export const nameOf = ({ subject, session = '' }: Namespace): string => `${subject.length} ${subject}${session}`;
