import { Failure } from '../../contract/failure.ts';
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
/** Facts after which new facts of the same namespace, or any facts of other namespaces, can go first. */
const FACTS_OF_A_STEP = 8;
/** Milliseconds after a write until its fact is embedded, so that facts that are written together share a commit. */
const DELAY_MS = 20;
/** Maximum further delay if several processes share the store, so that usually one of them embeds a new fact. */
const SHARED_DELAY_MS = 1000;
/** Milliseconds after a failure until the next attempt, for example on a full disk. */
const RETRY_MS = 60_000;
/** How often a fact may fail until it is skipped, so that a text that crashes the model does not stop all others. */
const MAX_FAILURES = 2;
/** Facts that fail in a row until the work pauses. A single failure may be caused by its text. */
const FAILURES_IN_A_ROW = 3;

/** The facts of a namespace that may need vectors. */
interface Work {
  readonly namespace: Namespace;
  /** Rows that were written since the start, the newest last. */
  readonly fresh: Set<number>;
  /** Position of the scan for older facts without a vector. Undefined after the scan. */
  scan: { readonly after?: EntryCursor } | undefined;
}

type Found = Awaited<ReturnType<MemoryStore['vectors']['missing']>>;
type EmbeddedFact = UnembeddedFact & { readonly vector: Uint8Array; readonly task: Task };

/** A fact that is being read or embedded. Aborted when the fact is changed or deleted, and when the work ends. */
interface Task {
  /** Undefined while the fact is being read. */
  version: number | undefined;
  readonly cancel: AbortController;
}

/** How often a version of a fact has failed. */
interface Failures {
  readonly version: number;
  readonly count: number;
}

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
  /** The work to which each new fact belongs, by row. */
  readonly #fresh = new Map<number, Work>();
  /** The facts that are being read or embedded, by row. */
  readonly #tasks = new Map<number, Task>();
  readonly #failures = new Map<number, Failures>();
  /** The fact that the model embeds. */
  #embedded: UnembeddedFact | undefined;
  #modelId: string | undefined;
  #started = false;
  #running: Promise<void> | undefined;
  #cancel = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  /** True after several failures, until the next scan. */
  #paused = false;
  #failuresInARow = 0;
  #lastWereFresh = false;

  constructor(store: MemoryStore, embedder: Embedder, onVectors: OnVectors) {
    this.#store = store;
    this.#embedder = embedder;
    this.#modelId = embedder.model?.id;
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
        this.#paused = false;
        this.#failuresInARow = 0;
        this.#wake(0);
      },
      () => this.#retryLater(),
    );
  }

  /** Embeds a fact that was stored. Returns false if the fact was only renewed while it is being embedded. */
  stored(namespace: Namespace, row: number, version: number): boolean {
    if (this.#tasks.get(row)?.version === version) return false;
    this.#cancelTask(row);
    if (!this.#started || !this.#embedder.model) return true;
    this.#dropFresh(row);
    this.#addFresh(this.#workOf(namespace), row);
    this.#wake(this.#store.refresh ? DELAY_MS + Math.random() * SHARED_DELAY_MS : DELAY_MS);
    return true;
  }

  deleted(row: number): void {
    this.#cancelTask(row);
    this.#failures.delete(row);
    this.#dropFresh(row);
  }

  /** Whether facts of a namespace wait for their vectors. */
  isPending(namespace: Namespace): boolean {
    return this.#work.has(nameOf(namespace));
  }

  /**
   * Called before the work is cancelled because the model became unavailable. The text that it was embedding may be the cause. Another
   * model may be able to embed the facts that failed.
   */
  modelChanged(): void {
    const id = this.#embedder.model?.id;
    if (id === undefined) {
      if (this.#embedded) this.#countFailure(this.#embedded);
    } else if (id !== this.#modelId) {
      this.#failures.clear();
      this.#modelId = id;
    }
  }

  /** Ends the work. Resolves when nothing more is stored. */
  async cancel(): Promise<void> {
    this.#cancel.abort();
    this.#cancel = new AbortController();
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    this.#timer = undefined;
    this.#retry = undefined;
    this.#paused = false;
    this.#work.clear();
    this.#fresh.clear();
    for (const row of this.#tasks.keys()) this.#cancelTask(row);
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

  /** Continues the work after a delay, unless it is running, planned or paused. */
  #wake(delay: number): void {
    if (this.#running || this.#paused || (this.#timer && delay > 0)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#running ??= this.#run(this.#cancel.signal).finally(() => {
        this.#running = undefined;
        // Work was added after the running work was cancelled.
        if (this.#work.size > 0 && this.#canWork()) this.#wake(DELAY_MS);
      });
    }, delay).unref();
  }

  /** Looks for the facts that failed, after a while. */
  #retryLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.scan();
    }, RETRY_MS).unref();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#paused && this.#canWork()) {
      // Old facts take turns with new ones. Otherwise a subject that always stores new facts would stop those of the others.
      const prefersFresh = !this.#lastWereFresh;
      const work = this.#next(prefersFresh) ?? this.#next(!prefersFresh);
      if (!work) return;
      this.#lastWereFresh = work.fresh.size > 0;
      try {
        await this.#turn(work, signal);
      } catch {
        if (signal.aborted) return;
        this.#pause();
      }
    }
  }

  #pause(): void {
    this.#paused = true;
    this.#retryLater();
  }

  /** Returns the namespace that waits longest, of those with new facts or of the others. */
  #next(fresh: boolean): Work | undefined {
    const work = this.#work.values().find((one) => one.fresh.size > 0 === fresh);
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
    const { namespace, fresh, scan } = work;
    const areFresh = fresh.size > 0;
    const rows = areFresh ? [...fresh].slice(-FACTS_AT_ONCE) : [];
    for (const row of rows) this.#dropFresh(row);
    // Begin the tasks before the facts are read, because a fact can be deleted while the result is on its way.
    const tasks = new Map(rows.map((row) => [row, this.#begin(row)]));
    const embedded: EmbeddedFact[] = [];
    try {
      const { facts, next } = await (areFresh ? this.#freshFacts(namespace, model, tasks) : this.#olderFacts(work, model));
      const wanted = facts.filter((fact) => this.#failuresOf(fact) < MAX_FAILURES);
      for (const { row, entry } of wanted) {
        const task = tasks.get(row) ?? this.#begin(row);
        task.version = entry.updatedAt;
        tasks.set(row, task);
      }
      for (const [at, fact] of wanted.entries()) {
        if (at > 0 && at % FACTS_OF_A_STEP === 0) {
          const others = this.#othersWaiting(work, areFresh);
          if (areFresh && others) {
            for (const { row } of wanted.slice(at).toReversed()) if (isCurrent(tasks.get(row))) this.#addFresh(work, row);
            break;
          }
          // New facts go first. Old ones wait for them, and are still stored together.
          if (others) await this.#turn(others, signal);
        }
        if (signal.aborted || this.#paused || this.#embedder.model?.id !== model.id) break;
        const task = tasks.get(fact.row);
        const vector = task && isCurrent(task) ? await this.#vectorOf(fact, model, task.cancel.signal) : undefined;
        if (task && vector) embedded.push({ ...fact, vector, task });
      }
      // A scan that was begun meanwhile starts with the newest facts.
      if (!areFresh && work.scan === scan) work.scan = next && { after: next };
    } finally {
      // After a failure too, so that the facts before it need not be embedded again.
      await this.#putVectors(namespace, embedded, model, signal).finally(() => {
        for (const { vector } of embedded) vector.fill(0);
        for (const [row, task] of tasks) if (this.#tasks.get(row) === task) this.#tasks.delete(row);
      });
    }
    const name = nameOf(namespace);
    if (fresh.size === 0 && !work.scan && this.#work.get(name) === work) this.#work.delete(name);
  }

  /**
   * Returns work that goes before the rest of a turn. New facts go before old ones. They give way to all facts of other namespaces, so
   * that a subject that always stores new facts delays no other for long.
   */
  #othersWaiting(work: Work, areFresh: boolean): Work | undefined {
    if (!areFresh) return this.#next(true);
    return this.#work.values().find((other) => other !== work);
  }

  #addFresh(work: Work, row: number): void {
    work.fresh.add(row);
    this.#fresh.set(row, work);
  }

  #dropFresh(row: number): void {
    this.#fresh.get(row)?.fresh.delete(row);
    this.#fresh.delete(row);
  }

  #begin(row: number): Task {
    const task = { version: undefined, cancel: new AbortController() };
    this.#tasks.set(row, task);
    return task;
  }

  #cancelTask(row: number): void {
    this.#tasks.get(row)?.cancel.abort();
    this.#tasks.delete(row);
  }

  async #freshFacts(namespace: Namespace, model: EmbeddingModel, tasks: ReadonlyMap<number, Task>): Promise<Found> {
    const { facts, vectors } = await this.#store.vectors.read(namespace, model.id, [...tasks.keys()]);
    // Another process has embedded these, or they were only renewed.
    for (const { row, version, vector } of vectors) {
      if (isCurrent(tasks.get(row))) this.#onVectors(namespace, row, version, vector);
      vector.fill(0);
    }
    return { facts: facts.filter(({ row }) => isCurrent(tasks.get(row))) };
  }

  #olderFacts({ namespace, scan }: Work, model: EmbeddingModel): Promise<Found> {
    return scan ? this.#store.vectors.missing(namespace, model.id, scan.after) : Promise.resolve({ facts: [] });
  }

  /** Stores the vectors of facts that were not changed meanwhile. */
  async #putVectors(
    namespace: Namespace,
    embedded: readonly EmbeddedFact[],
    model: EmbeddingModel,
    signal: AbortSignal,
  ): Promise<void> {
    const unchanged = embedded.filter(({ task }) => isCurrent(task)).toSorted((one, other) => one.row - other.row);
    if (unchanged.length === 0 || signal.aborted) return;
    const stored = new Set(await this.#store.vectors.put(namespace, model.id, unchanged));
    if (signal.aborted || this.#embedder.model?.id !== model.id) return;
    for (const { row, entry, vector, task } of unchanged) {
      if (stored.has(row) && isCurrent(task)) this.#onVectors(namespace, row, entry.updatedAt, vector);
    }
  }

  /**
   * Returns the vector of a fact, or undefined if the model fails or if the fact is deleted meanwhile. Then the texts that are still
   * waiting are not sent to the model any more.
   */
  async #vectorOf(fact: UnembeddedFact, model: EmbeddingModel, signal: AbortSignal): Promise<Uint8Array | undefined> {
    this.#embedded = fact;
    try {
      const vectors = await this.#embedder.embed(windowsOf(fact.entry), { urgent: false, signal });
      if (vectors.some(({ length }) => length !== model.dimensions))
        throw new RangeError('The model returned vectors of another length.');
      this.#failuresInARow = 0;
      this.#failures.delete(fact.row);
      return encodeVectors(vectors);
    } catch (error) {
      if (signal.aborted) return undefined;
      // The queue of Ollama is full, which says nothing about the fact.
      if (!(error instanceof Failure && error.code === 'rate_limited')) this.#countFailure(fact);
      this.#failuresInARow += 1;
      if (this.#failuresInARow >= FAILURES_IN_A_ROW) this.#pause();
      else this.#retryLater();
      return undefined;
    } finally {
      this.#embedded = undefined;
    }
  }

  #failuresOf({ row, entry }: UnembeddedFact): number {
    const known = this.#failures.get(row);
    return known?.version === entry.updatedAt ? known.count : 0;
  }

  #countFailure(fact: UnembeddedFact): void {
    this.#failures.set(fact.row, { version: fact.entry.updatedAt, count: this.#failuresOf(fact) + 1 });
  }
}

/** Whether the fact was neither changed nor deleted since it was read. */
const isCurrent = (task: Task | undefined): boolean => task?.cancel.signal.aborted === false;

/** Returns a name that is unique for each namespace. */
export const nameOf = ({ subject, session = '' }: Namespace): string => `${subject.length} ${subject}${session}`;
