/** Returns the capacity to allocate: an eighth more than needed, so that growing by one element at a time is cheap in total. */
const capacityFor = (length: number): number => Math.max(64, length + (length >> 3) + 1);

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

const PAGE_BITS = 14;
const PAGE = 1 << PAGE_BITS;
const SMALLEST_BLOCK = 2;
const LARGEST_BLOCK = 10;
/** Number of blocks of each size in a chain, before the next size. With 1, a third of the memory of all blocks would be unused. */
const BLOCKS_OF_SIZE = 4;
/** Counts from this one on are kept in a map, because only few lists are so long. */
const LARGE_COUNT = 255;
/** Estimated bytes of an entry of a map. */
const MAP_ENTRY_BYTES = 40;

/** A count for each list. Nearly all counts take one byte. */
class Counts {
  #small = new Uint8Array(0);
  readonly #large = new Map<number, number>();

  get bytes(): number {
    return this.#small.length + MAP_ENTRY_BYTES * this.#large.size;
  }

  get(list: number): number {
    const count = this.#small[list] ?? 0;
    return count < LARGE_COUNT ? count : (this.#large.get(list) ?? 0);
  }

  set(list: number, count: number): void {
    if (count >= LARGE_COUNT) this.#large.set(list, count);
    else if (this.#small[list] === LARGE_COUNT) this.#large.delete(list);
    this.#small[list] = Math.min(count, LARGE_COUNT);
  }

  grow(list: number): void {
    this.#small = growTo(this.#small, list);
  }
}

/** Tells the lists which entries are live. A dead entry was deleted, but some lists may still contain it. */
export interface PostingOwner {
  isLive(entry: number): boolean;
  /** Called when a dead entry is removed from a list. */
  onRemoved(entry: number): void;
}

/**
 * Many lists of numbers in a few arrays. A list with one entry stores only that number. A longer list is a chain of blocks that
 * double in size after every fourth, newest first. Dead entries are removed when they are more than half of a list, so that removing
 * entries costs no more in total than adding them.
 */
export class PostingLists {
  readonly #owner: PostingOwner;
  readonly #pages: Uint32Array<ArrayBuffer>[] = [];
  /** Addresses of free blocks, by the base-2 logarithm of their size. */
  readonly #free: number[][] = Array.from({ length: LARGEST_BLOCK + 1 }, () => []);
  #pageUsed = PAGE;
  /** For each list, its only entry, or the address of its newest block if the list has more entries. */
  #heads = new Uint32Array(0);
  readonly #counts = new Counts();
  /** The number of dead entries by list. Lists without dead entries are absent. */
  readonly #dead = new Map<number, number>();
  /** Lists to which an entry was added that is lower than the entry before it. */
  readonly #unsorted = new Set<number>();
  #scratch = new Uint32Array(0);

  constructor(owner: PostingOwner) {
    this.#owner = owner;
  }

  get bytes(): number {
    return 4 * (this.#pages.length * PAGE + this.#heads.length + this.#scratch.length) + this.#counts.bytes;
  }

  /** Returns the number of live entries in the list. */
  size(list: number): number {
    return this.#counts.get(list) - (this.#dead.get(list) ?? 0);
  }

  add(list: number, entry: number): void {
    if (list >= this.#heads.length) this.#grow(list);
    const count = this.#counts.get(list);
    this.#counts.set(list, count + 1);
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
      const block = this.#allocate(newestBlock(count + 1).size);
      this.#write(block, address);
      this.#heads[list] = block;
      this.#write(block + 1, entry);
      return;
    }
    this.#write(address + 1 + used, entry);
  }

  #grow(list: number): void {
    this.#heads = growTo(this.#heads, list);
    this.#counts.grow(list);
  }

  /** Records that one entry of the list died. Call it once for each such entry. */
  markDead(list: number): void {
    const dead = (this.#dead.get(list) ?? 0) + 1;
    if (2 * dead > this.#counts.get(list)) this.#compact(list);
    else this.#dead.set(list, dead);
  }

  /**
   * Copies the newest entries, including dead ones, to `entries`, and returns their number. `entries` is valid until the next
   * call. The list starts with the entries below `reversed`, which were added newest first. Later entries are newer than these.
   */
  read(list: number, most: number, reversed = 0): number {
    const count = this.#counts.get(list);
    const wanted = Math.min(count, most);
    this.#scratch = growTo(this.#scratch, wanted);
    if (count === 1 && wanted === 1) this.#scratch[0] = this.#heads[list] ?? 0;
    if (count <= 1) return wanted;
    const least = wanted < count ? reversed : 0;
    let address = this.#heads[list] ?? 0;
    let copied = 0;
    for (let left = count; copied < wanted;) {
      const { used } = newestBlock(left);
      const page = this.#pageOf(address);
      const start = (address & (PAGE - 1)) + 1;
      const later = (page[start] ?? 0) >= least ? used : start + used - firstNotBelow(page, start, start + used, least);
      const part = Math.min(later, wanted - copied);
      this.#scratch.set(page.subarray(start + used - part, start + used), wanted - copied - part);
      copied += part;
      if (later < used) return this.#readFirst(address, left, wanted - copied, wanted);
      left -= used;
      address = page[start - 1] ?? 0;
    }
    return wanted;
  }

  /** Copies the first entries of a list to the start of `entries`. The list has `left` entries up to the block at this address. */
  #readFirst(newest: number, left: number, first: number, wanted: number): number {
    let address = newest;
    for (let from = left; from > 0;) {
      const { used } = newestBlock(from);
      const page = this.#pageOf(address);
      const start = (address & (PAGE - 1)) + 1;
      from -= used;
      if (from < first) this.#scratch.set(page.subarray(start, start + Math.min(used, first - from)), from);
      address = page[start - 1] ?? 0;
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
    let left = this.#counts.get(list);
    let address = this.#heads[list] ?? 0;
    if (left === 1) {
      for (; at >= 0 && (limits[at] ?? 0) >= address; at -= 1) limits[at] = address;
      left = 0;
    }
    while (at >= 0 && left > 0) {
      const { used } = newestBlock(left);
      const page = this.#pageOf(address);
      const start = (address & (PAGE - 1)) + 1;
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
    this.#counts.set(list, 0);
    this.#dead.delete(list);
    this.#heads[list] = 0;
    for (const entry of entries) {
      if (this.#owner.isLive(entry)) this.add(list, entry);
      else this.#owner.onRemoved(entry);
    }
  }

  #freeBlocks(list: number): void {
    let left = this.#counts.get(list);
    if (left < 2) return;
    for (let address = this.#heads[list] ?? 0; left > 0;) {
      const { size, used } = newestBlock(left);
      const page = this.#pageOf(address);
      const at = address & (PAGE - 1);
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
    const page = this.#pages[address >>> PAGE_BITS];
    if (page === undefined) throw new RangeError('A block address is outside the pages.');
    return page;
  }

  #at(address: number): number {
    return this.#pageOf(address)[address & (PAGE - 1)] ?? 0;
  }

  #write(address: number, value: number): void {
    this.#pageOf(address)[address & (PAGE - 1)] = value;
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

/** Returns the index of the first number that is at least `limit`. All numbers below the limit precede the others. */
function firstNotBelow(numbers: Uint32Array, start: number, end: number, limit: number): number {
  let [low, high] = [start, end];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** For each size, the number of entries that fit into a chain with all blocks that are smaller. */
const CAPACITY_BELOW = Array.from({ length: LARGEST_BLOCK + 1 }, (_, size) => {
  let capacity = 0;
  for (let smaller = SMALLEST_BLOCK; smaller < size; smaller += 1) capacity += BLOCKS_OF_SIZE * ((1 << smaller) - 1);
  return capacity;
});

/**
 * Returns the base-2 logarithm of the size of the newest block of a list with `count` entries, and the number of entries in that
 * block.
 */
function newestBlock(count: number): { size: number; used: number } {
  let size = LARGEST_BLOCK;
  while (size > SMALLEST_BLOCK && count <= (CAPACITY_BELOW[size] ?? 0)) size -= 1;
  const used = ((count - (CAPACITY_BELOW[size] ?? 0) - 1) % ((1 << size) - 1)) + 1;
  return { size, used };
}

/** Whether the filter of a search accepts the fact with this number. */
export type FactPredicate = (number: number) => boolean;

/**
 * Returns the index to visit next: the first, the last, the second, and so on. Facts are often sorted by age. Visited in order,
 * each fact could be better than all facts before it, which is the slowest case for the heap.
 */
export const fromEitherEnd = (seen: number, count: number): number => (seen % 2 === 0 ? seen >> 1 : count - 1 - (seen >> 1));

const LEVELS = 256;
/** Minimum number of postings whose levels are counted first. */
const MIN_COUNTED = 512;
const levelCounts = new Uint32Array(LEVELS);

/** Returns the lowest level of the `most` postings with the highest levels. The level of a posting is its lowest byte. */
function leastLevel(postings: Uint32Array, count: number, most: number): number {
  levelCounts.fill(0);
  for (let at = 0; at < count; at += 1) {
    const level = (postings[at] ?? 0) & 0xff;
    levelCounts[level] = (levelCounts[level] ?? 0) + 1;
  }
  let level = LEVELS - 1;
  for (let left = most - (levelCounts[level] ?? 0); left > 0 && level > 0; left -= levelCounts[level] ?? 0) level -= 1;
  return level;
}

interface RankedFacts {
  isLive(number: number): boolean;
  updatedAt(number: number): number;
}

/** A bounded heap of the best facts. The worst of them is on top, so that rejecting another fact takes one comparison. */
export class BestFacts {
  readonly #facts: RankedFacts;
  readonly #most: number;
  readonly #numbers: number[] = [];
  readonly #sums: number[] = [];
  readonly #moments: number[] = [];
  /** Lowest accepted sum. A fact with a lower sum is rejected, as is a fact with this sum and a date before `#oldest`. */
  #least = -Infinity;
  #oldest = -Infinity;

  constructor(facts: RankedFacts, most: number) {
    this.#facts = facts;
    this.#most = most;
  }

  offer(number: number, sum: number, accepts: FactPredicate): void {
    if (sum < this.#least) return;
    const moment = this.#facts.updatedAt(number);
    if (sum === this.#least && moment < this.#oldest) return;
    this.#take(number, sum, moment, accepts);
  }

  #take(number: number, sum: number, moment: number, accepts: FactPredicate): void {
    const full = this.#numbers.length === this.#most;
    if (full && !this.#beats(0, number, sum, moment)) return;
    if (!this.#facts.isLive(number) || !accepts(number)) return;
    if (full) this.#sink(number, sum, moment, this.#most);
    else this.#rise(number, sum, moment);
    if (this.#numbers.length < this.#most) return;
    this.#least = this.#sums[0] ?? 0;
    this.#oldest = this.#moments[0] ?? 0;
  }

  /** Offers the facts of the first `count` postings. Returns once enough facts of the highest levels were accepted. */
  offerPostings(postings: Uint32Array, count: number, accepts: FactPredicate): void {
    const least = count > MIN_COUNTED ? leastLevel(postings, count, this.#most) : 0;
    for (let seen = 0; seen < count; seen += 1) {
      const posting = postings[fromEitherEnd(seen, count)] ?? 0;
      const level = posting & 0xff;
      if (level >= least) this.offer(posting >>> 8, level, accepts);
    }
    if (least === 0 || this.#numbers.length === this.#most) return;
    for (let seen = 0; seen < count; seen += 1) {
      const posting = postings[fromEitherEnd(seen, count)] ?? 0;
      const level = posting & 0xff;
      if (level < least) this.offer(posting >>> 8, level, accepts);
    }
  }

  /** Removes all facts and returns them, best first. */
  takeAll(): { number: number; sum: number }[] {
    const sorted: { number: number; sum: number }[] = [];
    for (let last = this.#numbers.length - 1; last >= 0; last -= 1) {
      sorted.push({ number: this.#numbers[0] ?? 0, sum: this.#sums[0] ?? 0 });
      this.#sink(this.#numbers[last] ?? 0, this.#sums[last] ?? 0, this.#moments[last] ?? 0, last);
    }
    this.#numbers.length = 0;
    return sorted.toReversed();
  }

  /** Whether a fact is better than the fact at this index. Of two facts with equal sums, the newer one is better. */
  #beats(at: number, number: number, sum: number, moment: number): boolean {
    const known = this.#sums[at] ?? 0;
    if (sum !== known) return sum > known;
    const before = this.#moments[at] ?? 0;
    return moment === before ? number > (this.#numbers[at] ?? 0) : moment > before;
  }

  #put(at: number, number: number, sum: number, moment: number): void {
    this.#numbers[at] = number;
    this.#sums[at] = sum;
    this.#moments[at] = moment;
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#numbers[from] ?? 0, this.#sums[from] ?? 0, this.#moments[from] ?? 0);
  }

  #rise(number: number, sum: number, moment: number): void {
    let at = this.#numbers.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#beats(above, number, sum, moment)) break;
      this.#move(above, at);
      at = above;
    }
    this.#put(at, number, sum, moment);
  }

  /** Replaces the worst of the first `count` facts. */
  #sink(number: number, sum: number, moment: number, count: number): void {
    let at = 0;
    for (let below = 1; below < count; below = 2 * at + 1) {
      if (below + 1 < count && this.#worse(below + 1, below)) below += 1;
      if (!this.#beats(below, number, sum, moment)) break;
      this.#move(below, at);
      at = below;
    }
    this.#put(at, number, sum, moment);
  }

  #worse(one: number, other: number): boolean {
    return !this.#beats(other, this.#numbers[one] ?? 0, this.#sums[one] ?? 0, this.#moments[one] ?? 0);
  }
}
