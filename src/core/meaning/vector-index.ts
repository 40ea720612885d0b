import { BLOCK, type DotProducts } from './dot-products.ts';
import { type ByteVector, decodeVectors } from './vector-codec.ts';

const NONE = -1;
/** Approximate bytes of a fact in the map of rows. */
const ROW_BYTES = 48;
/** Approximate bytes of an empty index, so that the indexes of many ended sessions count too. */
const EMPTY_BYTES = 1024;
/**
 * Windows with a cosine of 0 that are added to the mean of all. The windows of a small memory can all be related to the question, and
 * a memory of one fact would have no other cosine to compare it with.
 */
const UNRELATED = 4;

/** The vectors of one window of each of `BLOCK` slots, and what belongs to the slots. */
interface Block {
  readonly values: Int8Array;
  readonly scales: Float32Array;
  readonly rows: Float64Array;
  readonly versions: Float64Array;
  /** The slot of the fact's next window, or `NONE`. */
  readonly next: Int32Array;
  /** 1 for the slot of a fact's first window. */
  readonly first: Uint8Array;
}

interface Scored {
  readonly row: number;
  readonly cosine: number;
}

/** The vectors of one namespace, in RAM. Finds the most similar facts by comparing the question with every vector. */
export class VectorIndex {
  readonly #products: DotProducts;
  readonly #dimensions: number;
  readonly #stride: number;
  readonly #blocks: Block[] = [];
  /** The slot of the first window of each fact. */
  readonly #slots = new Map<number, number>();
  #count = 0;

  /** `products` can be shared by all indexes of a model. */
  constructor(products: DotProducts) {
    this.#products = products;
    ({ dimensions: this.#dimensions, stride: this.#stride } = products);
  }

  get bytes(): number {
    const slot = this.#stride + 4 + 8 + 8 + 4 + 1;
    return EMPTY_BYTES + this.#blocks.length * BLOCK * slot + this.#slots.size * ROW_BYTES;
  }

  /** Number of facts. */
  get size(): number {
    return this.#slots.size;
  }

  /** Returns the version of the fact whose vectors are in the index. */
  version(row: number): number | undefined {
    const slot = this.#slots.get(row);
    return slot === undefined ? undefined : this.#block(slot).versions[slot % BLOCK];
  }

  /** Adds or replaces the vectors of a fact. Ignores bytes that are not vectors of this model. */
  set(row: number, version: number, encoded: Uint8Array): void {
    this.delete(row);
    const vectors = decodeVectors(encoded, this.#dimensions);
    let next = NONE;
    for (const [index, vector] of vectors.toReversed().entries()) {
      const isFirst = index + 1 === vectors.length;
      next = this.#append(vector, { row, version, next, isFirst });
      if (isFirst) this.#slots.set(row, next);
    }
  }

  delete(row: number): void {
    // The deletion of a fact is reported to the indexes of all namespaces.
    if (!this.#slots.has(row)) return;
    const slots = this.#slotsOf(row);
    this.#slots.delete(row);
    // From the highest slot down, so that the last slot, which fills the gap, always belongs to another fact.
    for (const slot of slots.toSorted((one, other) => other - one)) {
      const last = this.#count - 1;
      if (slot !== last) this.#move(last, slot);
      this.#eraseLast();
    }
  }

  /**
   * Returns the most similar facts, the most similar first, and the mean cosine of the question and all windows, which is lower if
   * there are few. The best window of each fact counts.
   */
  nearest(question: ByteVector, limit: number): { readonly rows: Scored[]; readonly background: number } {
    const cosines = this.#cosines(question);
    const best: Scored[] = [];
    let sum = 0;
    for (let slot = 0; slot < this.#count; slot += 1) {
      sum += cosines[slot] ?? 0;
      const block = this.#block(slot);
      if (block.first[slot % BLOCK] !== 1) continue;
      let cosine = cosines[slot] ?? 0;
      for (let next = block.next[slot % BLOCK] ?? NONE; next !== NONE; next = this.#next(next)) {
        cosine = Math.max(cosine, cosines[next] ?? 0);
      }
      if (best.length === limit && cosine <= (best.at(-1)?.cosine ?? 0)) continue;
      insert(best, { row: block.rows[slot % BLOCK] ?? 0, cosine }, limit);
    }
    cosines.fill(0);
    return { rows: best, background: sum / (this.#count + UNRELATED) };
  }

  /** Returns the cosine of a fact and a question. */
  cosine(row: number, question: ByteVector): number | undefined {
    const windows = this.#windows(row);
    return windows.length > 0 ? Math.max(...windows.map((window) => cosineOf(window, question))) : undefined;
  }

  /** Returns the cosine of the two most similar windows of two facts. */
  similarity(one: number, other: number): number | undefined {
    const cosines = this.#windows(one).map((window) => this.cosine(other, window) ?? NaN);
    const [first] = cosines;
    return first === undefined || Number.isNaN(first) ? undefined : Math.max(...cosines);
  }

  /** Overwrites all vectors. */
  clear(): void {
    for (const { values } of this.#blocks) values.fill(0);
    this.#blocks.length = 0;
    this.#slots.clear();
    this.#count = 0;
  }

  /** Returns the cosine of each slot. */
  #cosines({ scale, values }: ByteVector): Float32Array {
    this.#products.ask(values);
    const cosines = new Float32Array(this.#count);
    for (const [index, block] of this.#blocks.entries()) {
      const from = index * BLOCK;
      const count = Math.min(BLOCK, this.#count - from);
      const dots = this.#products.of(block.values, count);
      for (let at = 0; at < count; at += 1) cosines[from + at] = (dots[at] ?? 0) * (block.scales[at] ?? 0) * scale;
    }
    return cosines;
  }

  #windows(row: number): ByteVector[] {
    return this.#slotsOf(row).map((slot) => {
      const { values, scales } = this.#block(slot);
      const at = (slot % BLOCK) * this.#stride;
      return { scale: scales[slot % BLOCK] ?? 0, values: values.subarray(at, at + this.#dimensions) };
    });
  }

  /** Returns the slots of a fact's windows, in their order. */
  #slotsOf(row: number): number[] {
    const slots: number[] = [];
    for (let slot = this.#slots.get(row) ?? NONE; slot !== NONE; slot = this.#next(slot)) slots.push(slot);
    return slots;
  }

  #append(
    { scale, values }: ByteVector,
    { row, version, next, isFirst }: { row: number; version: number; next: number; isFirst: boolean },
  ): number {
    const slot = this.#count;
    if (slot === this.#blocks.length * BLOCK) this.#blocks.push(newBlock(this.#stride));
    const [block, at] = [this.#block(slot), slot % BLOCK];
    block.values.set(values, at * this.#stride);
    block.scales[at] = scale;
    block.rows[at] = row;
    block.versions[at] = version;
    block.next[at] = next;
    block.first[at] = isFirst ? 1 : 0;
    this.#count += 1;
    return slot;
  }

  #move(from: number, to: number): void {
    const [source, target] = [this.#block(from), this.#block(to)];
    const [at, place] = [from % BLOCK, to % BLOCK];
    target.values.set(source.values.subarray(at * this.#stride, (at + 1) * this.#stride), place * this.#stride);
    for (const column of ['scales', 'rows', 'versions', 'next', 'first'] as const) {
      target[column][place] = source[column][at] ?? 0;
    }
    const row = source.rows[at] ?? 0;
    if (source.first[at] === 1) return void this.#slots.set(row, to);
    // The window before it names the moved window as the next.
    for (const slot of this.#slotsOf(row)) {
      if (this.#next(slot) !== from) continue;
      this.#block(slot).next[slot % BLOCK] = to;
      return;
    }
  }

  #eraseLast(): void {
    this.#count -= 1;
    const at = (this.#count % BLOCK) * this.#stride;
    this.#block(this.#count).values.fill(0, at, at + this.#stride);
    if (this.#count <= (this.#blocks.length - 1) * BLOCK) this.#blocks.pop();
  }

  #next(slot: number): number {
    return this.#block(slot).next[slot % BLOCK] ?? NONE;
  }

  #block(slot: number): Block {
    const block = this.#blocks[Math.floor(slot / BLOCK)];
    if (!block) throw new RangeError('The slot is not in the index.');
    return block;
  }
}

const newBlock = (stride: number): Block => ({
  values: new Int8Array(BLOCK * stride),
  scales: new Float32Array(BLOCK),
  rows: new Float64Array(BLOCK),
  versions: new Float64Array(BLOCK),
  next: new Int32Array(BLOCK),
  first: new Uint8Array(BLOCK),
});

function cosineOf(one: ByteVector, other: ByteVector): number {
  let sum = 0;
  for (let at = 0; at < one.values.length; at += 1) sum += (one.values[at] ?? 0) * (other.values[at] ?? 0);
  return sum * one.scale * other.scale;
}

/** Inserts into a list that is sorted by cosine, and removes what exceeds the limit. */
function insert(best: Scored[], scored: Scored, limit: number): void {
  let [from, to] = [0, best.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((best[middle]?.cosine ?? 0) >= scored.cosine) from = middle + 1;
    else to = middle;
  }
  best.splice(from, 0, scored);
  if (best.length > limit) best.pop();
}
