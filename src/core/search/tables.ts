import { randomInt } from 'node:crypto';

/** Returns the capacity to allocate: a quarter more than needed, so that growing by one element at a time is cheap in total. */
const capacityFor = (length: number): number => Math.max(64, length + (length >> 2) + 1);

type Numbers =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

/**
 * Returns the numbers in an array that is long enough for `index`. Detaches the buffer of the given array, so that its memory is
 * freed at once rather than at the next garbage collection, and the heap does not fragment.
 */
export function growTo<Kind extends Numbers>(numbers: Kind, index: number): Kind {
  if (index < numbers.length) return numbers;
  // Cast, because the compiler sees only the union of the constructors.
  const Same = numbers.constructor as new (buffer: ArrayBuffer) => Kind;
  return new Same(numbers.buffer.transfer(capacityFor(index) * numbers.BYTES_PER_ELEMENT));
}

/** Random seed for hash tables, so that a client cannot choose facts whose hashes collide. */
export const HASH_SEED = randomInt(2 ** 32);

/** Hashes the UTF-16 code units of a text with FNV-1a, which is not a cryptographic hash. */
export function hash(text: string, start = 0x811c9dc5, from = 0, to = text.length): number {
  let hashed = start;
  for (let at = from; at < to; at += 1) hashed = Math.imul(hashed ^ text.charCodeAt(at), 0x01000193);
  return (hashed ^ (hashed >>> 15)) >>> 0;
}

export const NOT_FOUND = -1;

const FIRST_CHAINS = 256;

/**
 * A hash table of numbers in three arrays. Each number identifies an item that the caller stores, so the caller also compares
 * items. The table grows by one chain at a time (linear hashing), so that no single insertion has to rehash the whole table.
 */
export class HashChains {
  #heads = new Int32Array(FIRST_CHAINS).fill(NOT_FOUND);
  /** The number of chains: a power of two, plus a chain for each split after the last doubling. */
  #count = FIRST_CHAINS;
  #mask = FIRST_CHAINS - 1;
  #nexts = new Int32Array(0);
  /** The hash of the item of each number. It is stored, because only the caller has the item and could compute it again. */
  #hashes = new Uint32Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return 4 * (this.#heads.length + this.#nexts.length + this.#hashes.length);
  }

  first(hashed: number): number {
    return this.#from(this.#heads[this.#chainOf(hashed)] ?? NOT_FOUND, hashed);
  }

  after(number: number): number {
    return this.#from(this.#nexts[number] ?? NOT_FOUND, this.#hashes[number] ?? 0);
  }

  add(number: number, hashed: number): void {
    if (this.#size >= this.#count) this.#split();
    this.#nexts = growTo(this.#nexts, number);
    this.#hashes = growTo(this.#hashes, number);
    this.#hashes[number] = hashed;
    this.#link(number);
    this.#size += 1;
  }

  remove(number: number): void {
    const chain = this.#chainOf(this.#hashes[number] ?? 0);
    const next = this.#nexts[number] ?? NOT_FOUND;
    let before = this.#heads[chain] ?? NOT_FOUND;
    if (before === number) this.#heads[chain] = next;
    else {
      while (this.#nexts[before] !== number) before = this.#nexts[before] ?? NOT_FOUND;
      this.#nexts[before] = next;
    }
    this.#hashes[number] = 0;
    this.#size -= 1;
  }

  /** Overwrites the hashes, because they reveal something about the texts. Afterwards the table cannot be used any more. */
  clear(): void {
    this.#hashes.fill(0);
  }

  #from(number: number, hashed: number): number {
    let found = number;
    while (found !== NOT_FOUND && this.#hashes[found] !== hashed) found = this.#nexts[found] ?? NOT_FOUND;
    return found;
  }

  #chainOf(hashed: number): number {
    const chain = hashed & (2 * this.#mask + 1);
    return chain < this.#count ? chain : hashed & this.#mask;
  }

  #link(number: number): void {
    const chain = this.#chainOf(this.#hashes[number] ?? 0);
    this.#nexts[number] = this.#heads[chain] ?? NOT_FOUND;
    this.#heads[chain] = number;
  }

  #split(): void {
    const old = this.#count & this.#mask;
    this.#heads = growTo(this.#heads, this.#count);
    this.#heads[this.#count] = NOT_FOUND;
    this.#count += 1;
    let number = this.#heads[old] ?? NOT_FOUND;
    this.#heads[old] = NOT_FOUND;
    while (number !== NOT_FOUND) {
      const next = this.#nexts[number] ?? NOT_FOUND;
      this.#link(number);
      number = next;
    }
    if (this.#count > 2 * this.#mask + 1) this.#mask = 2 * this.#mask + 1;
  }
}

const PAGE = 1 << 14;
const SMALLEST_BLOCK = 2;
const LARGEST_BLOCK = 10;

/** Tells the lists which entries are live. A dead entry was deleted, but some lists may still contain it. */
export interface PostingOwner {
  isLive(entry: number): boolean;
  /** Called when a dead entry is removed from a list. */
  onRemoved(entry: number): void;
}

/**
 * Many lists of numbers in a few arrays. A list with one entry stores only that number. A longer list is a chain of blocks that
 * double in size, newest first. Dead entries are removed when they are more than half of a list, so that removing entries costs
 * no more in total than adding them.
 */
export class PostingLists {
  readonly #owner: PostingOwner;
  readonly #pages: Uint32Array<ArrayBuffer>[] = [];
  /** Addresses of free blocks, by the base-2 logarithm of their size. */
  readonly #free: number[][] = Array.from({ length: LARGEST_BLOCK + 1 }, () => []);
  #pageUsed = PAGE;
  /** For each list, its only entry, or the address of its newest block if the list has more entries. */
  #heads = new Uint32Array(0);
  #counts = new Uint32Array(0);
  /** The number of dead entries by list. Lists without dead entries are absent. */
  readonly #dead = new Map<number, number>();
  /** Lists to which an entry was added that is lower than the entry before it. */
  readonly #unsorted = new Set<number>();
  #scratch = new Uint32Array(1024);

  constructor(owner: PostingOwner) {
    this.#owner = owner;
  }

  get bytes(): number {
    return 4 * (this.#pages.length * PAGE + 2 * this.#heads.length + this.#scratch.length);
  }

  /** Returns the number of live entries in the list. */
  size(list: number): number {
    return (this.#counts[list] ?? 0) - (this.#dead.get(list) ?? 0);
  }

  add(list: number, entry: number): void {
    if (list >= this.#heads.length) this.#grow(list);
    const count = this.#counts[list] ?? 0;
    this.#counts[list] = count + 1;
    if (count === 0) {
      this.#heads[list] = entry;
      return;
    }
    const { size, used } = newestBlock(count);
    let address = this.#heads[list] ?? 0;
    if (entry < (count === 1 ? address : this.#at(address + used))) this.#unsorted.add(list);
    if (count === 1) {
      const block = this.#allocate(SMALLEST_BLOCK);
      this.#write(block, 0);
      this.#write(block + 1, address);
      this.#heads[list] = address = block;
    } else if (used === (1 << size) - 1) {
      const block = this.#allocate(Math.min(size + 1, LARGEST_BLOCK));
      this.#write(block, address);
      this.#heads[list] = block;
      this.#write(block + 1, entry);
      return;
    }
    this.#write(address + 1 + used, entry);
  }

  #grow(list: number): void {
    this.#heads = growTo(this.#heads, list);
    this.#counts = growTo(this.#counts, list);
  }

  /** Records that one entry of the list died. Call it once for each such entry. */
  markDead(list: number): void {
    const dead = (this.#dead.get(list) ?? 0) + 1;
    if (2 * dead > (this.#counts[list] ?? 0)) this.#compact(list);
    else this.#dead.set(list, dead);
  }

  /**
   * Copies the newest entries, including dead ones, to `entries`, oldest first, and returns their number. `entries` is valid
   * until the next call.
   */
  read(list: number, most: number): number {
    const count = this.#counts[list] ?? 0;
    const wanted = Math.min(count, most);
    this.#scratch = growTo(this.#scratch, wanted);
    if (count === 1 && wanted === 1) this.#scratch[0] = this.#heads[list] ?? 0;
    if (count <= 1) return wanted;
    let address = this.#heads[list] ?? 0;
    for (let copied = 0; copied < wanted;) {
      const { used } = newestBlock(count - copied);
      const page = this.#pageOf(address);
      const at = address % PAGE;
      const part = Math.min(used, wanted - copied);
      this.#scratch.set(page.subarray(at + 1 + used - part, at + 1 + used), wanted - copied - part);
      copied += part;
      address = page[at] ?? 0;
    }
    return wanted;
  }

  get entries(): Uint32Array {
    return this.#scratch;
  }

  /** Whether the entries of the list ascend. Only such a list can be searched with `findBelow`. */
  isSorted(list: number): boolean {
    return !this.#unsorted.has(list);
  }

  /**
   * Replaces each of the first `count` limits, which must ascend, with the highest entry of the list that is not above it, or with
   * 0. Reads a few entries of each block instead of the whole list. The list must be sorted.
   */
  findBelow(list: number, limits: Uint32Array, count: number): void {
    let at = count - 1;
    let left = this.#counts[list] ?? 0;
    let address = this.#heads[list] ?? 0;
    if (left === 1) {
      for (; at >= 0 && (limits[at] ?? 0) >= address; at -= 1) limits[at] = address;
      left = 0;
    }
    while (at >= 0 && left > 0) {
      const { used } = newestBlock(left);
      const page = this.#pageOf(address);
      const start = (address % PAGE) + 1;
      let end = start + used;
      for (const first = page[start] ?? 0; at >= 0 && (limits[at] ?? 0) >= first; at -= 1) {
        end = lastNotAbove(page, start, end, limits[at] ?? 0) + 1;
        limits[at] = page[end - 1] ?? 0;
      }
      left -= used;
      address = page[start - 1] ?? 0;
    }
    limits.fill(0, 0, at + 1);
  }

  /** Removes the dead entries of a list, and sorts the others. */
  #compact(list: number): void {
    const count = this.read(list, Infinity);
    const entries = this.#scratch.slice(0, count);
    if (this.#unsorted.delete(list)) entries.sort();
    this.#freeBlocks(list);
    this.#counts[list] = 0;
    this.#dead.delete(list);
    this.#heads[list] = 0;
    for (const entry of entries) {
      if (this.#owner.isLive(entry)) this.add(list, entry);
      else this.#owner.onRemoved(entry);
    }
  }

  #freeBlocks(list: number): void {
    let left = this.#counts[list] ?? 0;
    if (left < 2) return;
    for (let address = this.#heads[list] ?? 0; left > 0;) {
      const { size, used } = newestBlock(left);
      const page = this.#pageOf(address);
      const at = address % PAGE;
      this.#free[size]?.push(address);
      address = page[at] ?? 0;
      page.fill(0, at, at + (1 << size));
      left -= used;
    }
  }

  #allocate(size: number): number {
    const free = this.#free[size]?.pop();
    if (free !== undefined) return free;
    if (this.#pageUsed + (1 << size) > PAGE) {
      this.#freeRestOfPage();
      this.#pages.push(new Uint32Array(PAGE));
      this.#pageUsed = 0;
    }
    const address = (this.#pages.length - 1) * PAGE + this.#pageUsed;
    this.#pageUsed += 1 << size;
    return address;
  }

  #freeRestOfPage(): void {
    for (let size = LARGEST_BLOCK; size >= SMALLEST_BLOCK; size -= 1) {
      if (this.#pageUsed + (1 << size) > PAGE) continue;
      this.#free[size]?.push((this.#pages.length - 1) * PAGE + this.#pageUsed);
      this.#pageUsed += 1 << size;
    }
  }

  #pageOf(address: number): Uint32Array {
    const page = this.#pages[Math.floor(address / PAGE)];
    if (page === undefined) throw new RangeError('A block address is outside the pages.');
    return page;
  }

  #at(address: number): number {
    return this.#pageOf(address)[address % PAGE] ?? 0;
  }

  #write(address: number, value: number): void {
    this.#pageOf(address)[address % PAGE] = value;
  }
}

/**
 * Returns the index of the last number that is not above `limit`, of ascending numbers of which the first is not above it. Searches
 * from the end, because consecutive limits are often close to each other.
 */
function lastNotAbove(numbers: Uint32Array, start: number, end: number, limit: number): number {
  let high = end;
  let low = end - 1;
  for (let step = 1; low > start && (numbers[low] ?? 0) > limit; step *= 2) {
    high = low;
    low = Math.max(start, low - step);
  }
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? 0) > limit) high = middle;
    else low = middle;
  }
  return low;
}

/** Returns the number of entries that fit into a chain with one block of each size up to `size`. */
const capacityUpTo = (size: number): number => (1 << (size + 1)) - (1 << SMALLEST_BLOCK) - (size - SMALLEST_BLOCK + 1);

/**
 * Returns the base-2 logarithm of the size of the newest block of a list with `count` entries, and the number of entries in that
 * block.
 */
function newestBlock(count: number): { size: number; used: number } {
  const more = count - capacityUpTo(LARGEST_BLOCK);
  if (more > 0) return { size: LARGEST_BLOCK, used: ((more - 1) % ((1 << LARGEST_BLOCK) - 1)) + 1 };
  let size = SMALLEST_BLOCK;
  while (capacityUpTo(size) < count) size += 1;
  return { size, used: count - capacityUpTo(size - 1) };
}
