import { growTo } from './typed-arrays.ts';

const PAGE = 1 << 14;
const SMALLEST = 2;
const LARGEST = 10;

/** What the lists are of: their owner says who still lives, and hears who has left a list. */
export interface PostingOwner {
  isLive(entry: number): boolean;
  left(entry: number): void;
}

/**
 * Many lists of numbers, in few arrays: a list of one is the number itself, a longer one a chain of blocks that double
 * in size, the newest first. What has died stays listed until half of a list is dead, so that taking something off
 * costs no more, in sum, than putting it on.
 */
export class PostingLists {
  readonly #listed: PostingOwner;
  readonly #pages: Uint32Array<ArrayBuffer>[] = [];
  /** Addresses of blocks given back, by size. */
  readonly #free: number[][] = Array.from({ length: LARGEST + 1 }, () => []);
  #pageUsed = PAGE;
  /** The one entry, or the address of the newest block. */
  #heads = new Uint32Array(0);
  #counts = new Uint32Array(0);
  /** How many entries of a list have died; few lists have any. */
  readonly #dead = new Map<number, number>();
  #scratch = new Uint32Array(1024);

  constructor(listed: PostingOwner) {
    this.#listed = listed;
  }

  get bytes(): number {
    return 4 * (this.#pages.length * PAGE + 2 * this.#heads.length + this.#scratch.length);
  }

  /** Entries that live. */
  size(list: number): number {
    return (this.#counts[list] ?? 0) - (this.#dead.get(list) ?? 0);
  }

  add(list: number, entry: number): void {
    if (list >= this.#heads.length) this.#makeRoom(list);
    const count = this.#counts[list] ?? 0;
    this.#counts[list] = count + 1;
    if (count === 0) {
      this.#heads[list] = entry;
      return;
    }
    const { size, used } = newestBlock(count);
    let address = this.#heads[list] ?? 0;
    if (count === 1) {
      const block = this.#take(SMALLEST);
      this.#write(block, 0);
      this.#write(block + 1, address);
      this.#heads[list] = address = block;
    } else if (used === (1 << size) - 1) {
      const block = this.#take(Math.min(size + 1, LARGEST));
      this.#write(block, address);
      this.#heads[list] = block;
      this.#write(block + 1, entry);
      return;
    }
    this.#write(address + 1 + used, entry);
  }

  #makeRoom(list: number): void {
    this.#heads = growTo(this.#heads, list);
    this.#counts = growTo(this.#counts, list);
  }

  /** One entry of the list has died. */
  markDead(list: number): void {
    const dead = (this.#dead.get(list) ?? 0) + 1;
    if (2 * dead > (this.#counts[list] ?? 0)) this.#sift(list);
    else this.#dead.set(list, dead);
  }

  /** Copies the newest entries, the dead included, as they were added, to where `entries` shows them until the next call. */
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

  /** Builds the list anew from what lives. */
  #sift(list: number): void {
    const count = this.read(list, Infinity);
    const entries = this.#scratch.slice(0, count);
    this.#giveBack(list);
    this.#counts[list] = 0;
    this.#dead.delete(list);
    this.#heads[list] = 0;
    for (const entry of entries) {
      if (this.#listed.isLive(entry)) this.add(list, entry);
      else this.#listed.left(entry);
    }
  }

  #giveBack(list: number): void {
    let onRemoved = this.#counts[list] ?? 0;
    if (onRemoved < 2) return;
    for (let address = this.#heads[list] ?? 0; onRemoved > 0;) {
      const { size, used } = newestBlock(onRemoved);
      const page = this.#pageOf(address);
      const at = address % PAGE;
      this.#free[size]?.push(address);
      address = page[at] ?? 0;
      page.fill(0, at, at + (1 << size));
      onRemoved -= used;
    }
  }

  #take(size: number): number {
    const free = this.#free[size]?.pop();
    if (free !== undefined) return free;
    if (this.#pageUsed + (1 << size) > PAGE) {
      this.#freeRest();
      this.#pages.push(new Uint32Array(PAGE));
      this.#pageUsed = 0;
    }
    const address = (this.#pages.length - 1) * PAGE + this.#pageUsed;
    this.#pageUsed += 1 << size;
    return address;
  }

  /** What a page has left is given to smaller blocks. */
  #freeRest(): void {
    for (let size = LARGEST; size >= SMALLEST; size -= 1) {
      if (this.#pageUsed + (1 << size) > PAGE) continue;
      this.#free[size]?.push((this.#pages.length - 1) * PAGE + this.#pageUsed);
      this.#pageUsed += 1 << size;
    }
  }

  #pageOf(address: number): Uint32Array {
    const page = this.#pages[Math.floor(address / PAGE)];
    if (page === undefined) throw new RangeError('A list leads outside its pages.');
    return page;
  }

  #write(address: number, value: number): void {
    this.#pageOf(address)[address % PAGE] = value;
  }
}

/** How many entries fit into one block of each size up to this, together. */
const upTo = (size: number): number => (1 << (size + 1)) - (1 << SMALLEST) - (size - SMALLEST + 1);

/** Of the newest block of a list this long: its size, as a power of two, and how many entries it holds behind its link. */
function newestBlock(count: number): { size: number; used: number } {
  const more = count - upTo(LARGEST);
  if (more > 0) return { size: LARGEST, used: ((more - 1) % ((1 << LARGEST) - 1)) + 1 };
  let size = SMALLEST;
  while (upTo(size) < count) size += 1;
  return { size, used: count - upTo(size - 1) };
}
