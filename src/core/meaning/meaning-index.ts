import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { isReadable } from '../../contract/status.ts';
import { MINUTE_MS } from '../../contract/units.ts';
import type { EntryEvent, MemoryStore, Namespace } from '../store/store.ts';
import { BackgroundEmbedding, nameOf } from './background-embedding.ts';
import { DotProducts } from './dot-products.ts';
import type { Embedder, EmbeddingModel } from './embedder.ts';
import type { FactMeaning, Nearest } from './nearest.ts';
import { QuestionTurns } from './question-turns.ts';
import { quantize } from './vector-codec.ts';
import { VectorIndex } from './vector-index.ts';

/** Milliseconds that a question waits for vectors that are being loaded. Afterwards, its result is partial. */
const LOAD_GRACE_MS = 100;
/** Maximum characters of a question. A model reads little more, and each word takes time. */
const QUESTION_CHARACTERS = 600;
/** Maximum bytes of all indexes together. The least recently used index is dropped first. */
const MAX_BYTES = 512 * 1024 * 1024;
/** If all indexes together are larger than this, those that no question has used for `IDLE_MS` are dropped. */
const IDLE_BYTES = 64 * 1024 * 1024;
const IDLE_MS = 10 * 60 * 1000;

/** A model that answered less than this ago is still loaded. Models are unloaded after five idle minutes. */
const WARM_MS = 4.5 * MINUTE_MS;
/** Between the prompts of a session, the model is asked so often that it stays loaded, for at most `KEPT_WARM_MS`. */
const KEEP_WARM_MS = 4 * MINUTE_MS;
const KEPT_WARM_MS = 30 * MINUTE_MS;

/** The vectors of a namespace in RAM. */
interface Loaded {
  readonly index: VectorIndex;
  /**
   * Rows that were changed or deleted while vectors are loaded, because a page that was read before can still contain them. Undefined
   * afterwards.
   */
  changed: Set<number> | undefined;
  complete: boolean;
  loading: Promise<void>;
  usedAt: number;
}

/**
 * Finds facts by their meaning. Keeps the vectors of the namespaces in use in RAM, and drops them when the memory is locked. A background
 * job makes the vectors of new facts.
 */
export class MeaningIndex implements FactMeaning, Disposable {
  /** A field, not a method, so that a search that compares no meanings calls nothing here. */
  isAvailable: boolean;
  readonly #store: MemoryStore;
  readonly #embedder: Embedder;
  readonly #maxBytes: number;
  readonly #idleBytes: number;
  readonly #subscriptions: readonly Disposable[];
  readonly #background: BackgroundEmbedding;
  readonly #questions = new QuestionTurns();
  /** The indexes by namespace, least recently used first. */
  readonly #loaded = new Map<string, Loaded>();
  #products: DotProducts | undefined;
  /** When the model answered last, on the clock of `performance`. */
  #answeredAt = -Infinity;
  /** Until when the model is kept loaded, on the same clock. */
  #keptUntil = -Infinity;
  #keeping: NodeJS.Timeout | undefined;
  #modelId: string | undefined;
  /** The subscription to changes of entries. Undefined while there is no model, so that writes then cost nothing more. */
  #entries: Disposable | undefined;
  /** Ends the questions that wait. */
  #cancel = new AbortController();

  constructor(store: MemoryStore, embedder: Embedder, maxBytes = MAX_BYTES, idleBytes = IDLE_BYTES) {
    this.#store = store;
    this.#embedder = notingAnswers(embedder, () => (this.#answeredAt = performance.now()));
    this.#maxBytes = maxBytes;
    this.#idleBytes = idleBytes;
    this.#modelId = embedder.model?.id;
    this.isAvailable = embedder.model !== undefined;
    this.#background = new BackgroundEmbedding(store, this.#embedder, (...vectors) => this.#add(...vectors));
    this.#subscriptions = [store.onKeyChange(() => this.#onKeyChange()), embedder.onChange(() => this.#onModelChange())];
    this.#listen();
  }

  /** Begins to embed facts in the background. Without this call, only the vectors that exist are used. */
  start(): void {
    this.#background.start();
  }

  get isWarm(): boolean {
    return this.isAvailable && performance.now() - this.#answeredAt < WARM_MS;
  }

  /** Loads the model and the vectors of a namespace, and keeps the model loaded for half an hour, because people think between prompts. */
  warm(namespace: Namespace): void {
    const { model } = this.#embedder;
    if (!model || !isReadable(this.#store.status())) return;
    this.#load(namespace, model);
    this.#keptUntil = performance.now() + KEPT_WARM_MS;
    if (!this.isWarm) this.#touch();
    this.#keeping ??= setInterval(() => {
      if (performance.now() < this.#keptUntil) this.#touch();
      else this.#stopKeeping();
    }, KEEP_WARM_MS).unref();
  }

  /** Asks the model for any vector, so that it is loaded. */
  #touch(): void {
    // A model that cannot be loaded is as good as none.
    this.#embedder.embed(['warm'], { urgent: false, signal: this.#cancel.signal }).catch(() => undefined);
  }

  #stopKeeping(): void {
    clearInterval(this.#keeping);
    this.#keeping = undefined;
    this.#answeredAt = -Infinity;
  }

  /** Returns the facts whose meaning is nearest to a text. Undefined while search by meaning is off or unavailable. */
  async nearest(
    namespace: Namespace,
    text: string,
    { limit, signal }: Parameters<FactMeaning['nearest']>[2],
  ): Promise<Nearest | undefined> {
    const question = text.trim().slice(0, QUESTION_CHARACTERS);
    const { model } = this.#embedder;
    if (!model || !isReadable(this.#store.status()) || question === '') return undefined;
    const loaded = this.#load(namespace, model);
    const signals = signal ? AbortSignal.any([signal, this.#cancel.signal]) : this.#cancel.signal;
    try {
      const ask = () => this.#embedder.embed([question], { urgent: true, signal: signals });
      const [[vector] = []] = await Promise.all([
        this.#questions.run(namespace.subject, signals, ask),
        this.#store.refresh?.(),
        Promise.race([loaded.loading, wait(LOAD_GRACE_MS)]),
      ]);
      if (vector?.length !== model.dimensions || !this.#isCurrent(namespace, loaded)) return undefined;
      const asked = quantize(vector);
      const { index, complete } = loaded;
      return {
        ...index.nearest(asked, limit),
        partial: !complete || this.#background.isPending(namespace),
        cosine: (row) => index.cosine(row, asked),
        similarity: (one, other) => index.similarity(one, other),
      };
    } catch (error) {
      signal?.throwIfAborted();
      // A model that fails must not fail the search. The words answer it.
      if (error instanceof Failure || signals.aborted) return undefined;
      throw error;
    }
  }

  /** Counts the facts of all namespaces, and those that have a vector of the present model. */
  async progress(): Promise<{ readonly done: number; readonly total: number }> {
    const { model } = this.#embedder;
    let [done, total] = [0, 0];
    for (const { namespace, count } of await this.#store.namespaces()) {
      total += count;
      if (model) done += Math.min(count, await this.#store.vectors.count(namespace, model.id));
    }
    return { done, total };
  }

  /** Deletes all vectors and makes them again in the background. */
  async rebuild(): Promise<void> {
    await this.#drop();
    await this.#store.vectors.clear();
    this.#background.scan();
  }

  /**
   * Deletes all vectors, because the owner turned off search by meaning. The vectors of a database stay, because other processes can
   * use them.
   */
  async turnOff(): Promise<void> {
    await this.#drop();
    if (!this.#store.refresh) await this.#store.vectors.clear();
    // The owner may have turned it on again meanwhile. Then new vectors may have been deleted too.
    this.#background.scan();
  }

  [Symbol.dispose](): void {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]();
    this.#entries?.[Symbol.dispose]();
    this.#background.stop();
    void this.#drop();
  }

  #onEntryEvent(event: EntryEvent): void {
    if (event.what === 'reset') {
      void this.#drop();
      return this.#background.scan();
    }
    const { row } = event;
    if (event.what === 'deleted') {
      this.#background.deleted(row);
      for (const loaded of this.#loaded.values()) remove(loaded, row);
      return;
    }
    if (event.kind !== 'fact') return;
    const { namespace, entry } = event;
    const loaded = this.#loaded.get(nameOf(namespace));
    // A renewal changes neither the text nor the version.
    if (loaded?.index.version(row) === entry.updatedAt) return;
    if (this.#background.stored(namespace, row, entry.updatedAt) && loaded) remove(loaded, row);
  }

  #listen(): void {
    if (this.#modelId === undefined) {
      this.#entries?.[Symbol.dispose]();
      this.#entries = undefined;
    } else this.#entries ??= this.#store.onEntryEvent((event) => this.#onEntryEvent(event));
  }

  #onKeyChange(): void {
    if (isReadable(this.#store.status())) return this.#background.scan();
    void this.#drop();
    this.#embedder.release();
  }

  #onModelChange(): void {
    const id = this.#embedder.model?.id;
    this.isAvailable = id !== undefined;
    this.#background.modelChanged();
    if (id !== this.#modelId) void this.#drop();
    this.#modelId = id;
    this.#listen();
    this.#background.scan();
  }

  #load(namespace: Namespace, model: EmbeddingModel): Loaded {
    const name = nameOf(namespace);
    const usedAt = performance.now();
    const known = this.#loaded.get(name);
    this.#dropIdle(usedAt, known);
    if (known) {
      known.usedAt = usedAt;
      this.#loaded.delete(name);
      this.#loaded.set(name, known);
      return known;
    }
    const products = (this.#products ??= new DotProducts(model.dimensions));
    const loaded: Loaded = {
      index: new VectorIndex(products),
      changed: new Set(),
      complete: false,
      loading: Promise.resolve(),
      usedAt,
    };
    this.#loaded.set(name, loaded);
    loaded.loading = this.#read(namespace, model, loaded)
      .catch(() => {
        if (this.#isCurrent(namespace, loaded)) this.#dropIndex(name, loaded);
      })
      .finally(() => (loaded.changed = undefined));
    return loaded;
  }

  /** Reads the stored vectors page by page, those of new facts first. */
  async #read(namespace: Namespace, model: EmbeddingModel, loaded: Loaded): Promise<void> {
    const { index } = loaded;
    for (let before: number | undefined; ;) {
      const { vectors, next } = await this.#store.vectors.page(namespace, model.id, before);
      if (!this.#isCurrent(namespace, loaded)) return;
      for (const { row, version, vector } of vectors) {
        if (index.version(row) === undefined && !loaded.changed?.has(row)) index.set(row, version, vector);
        vector.fill(0);
      }
      if (next === undefined) break;
      // An index that is too large alone contains only the newest facts.
      if (!this.#makeRoom(loaded)) return;
      before = next;
      await nextTurn();
    }
    loaded.complete = true;
  }

  /** Adds the vectors of a fact to the index of its namespace, if that is in RAM. */
  #add(namespace: Namespace, row: number, version: number, vector: Uint8Array): void {
    const loaded = this.#loaded.get(nameOf(namespace));
    if (!loaded || loaded.index.version(row) === version) return;
    loaded.index.set(row, version, vector);
    this.#makeRoom(loaded);
  }

  #isCurrent(namespace: Namespace, loaded: Loaded): boolean {
    return this.#loaded.get(nameOf(namespace)) === loaded;
  }

  /** Approximate bytes of the vectors in RAM. */
  get bytes(): number {
    return this.#loaded.values().reduce((bytes, { index }) => bytes + index.bytes, 0);
  }

  /** Drops the least recently used indexes until this one fits. Returns false if it is too large alone. */
  #makeRoom(except: Loaded): boolean {
    for (const [name, loaded] of this.#loaded) {
      if (this.bytes <= this.#maxBytes) return true;
      if (loaded !== except) this.#dropIndex(name, loaded);
    }
    return this.bytes <= this.#maxBytes;
  }

  #dropIdle(now: number, except: Loaded | undefined): void {
    for (const [name, loaded] of this.#loaded) {
      if (now - loaded.usedAt < IDLE_MS || this.bytes <= this.#idleBytes) return;
      if (loaded !== except) this.#dropIndex(name, loaded);
    }
  }

  #dropIndex(name: string, { index }: Loaded): void {
    this.#loaded.delete(name);
    index.clear();
  }

  /** Ends all work, and overwrites and drops all vectors in RAM. Resolves when nothing more is stored. */
  #drop(): Promise<void> {
    this.#stopKeeping();
    this.#cancel.abort();
    this.#cancel = new AbortController();
    for (const [name, loaded] of this.#loaded) this.#dropIndex(name, loaded);
    this.#products?.clear();
    this.#products = undefined;
    return this.#background.cancel();
  }
}

/** Calls `note` after each answer of the model. */
const notingAnswers = (embedder: Embedder, note: () => void): Embedder => ({
  get model() {
    return embedder.model;
  },
  async embed(texts, options) {
    const vectors = await embedder.embed(texts, options);
    note();
    return vectors;
  },
  onChange: (listener) => embedder.onChange(listener),
  release: () => embedder.release(),
});

/** Removes a fact from an index. A page that is being loaded can still contain it. */
function remove({ index, changed }: Loaded, row: number): void {
  index.delete(row);
  changed?.add(row);
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
