import { INBOX_CATEGORY } from '../store/entry.ts';
import type { Entry, EntryEvent, MemoryStore } from '../store/store.ts';

/** Number of items that are decrypted in one turn of the event loop. Items can be long, and other callers wait. */
const SLICE = 20;
/** Maximum subjects with an index in memory. The index of the least recently used subject is dropped. */
const MAX_SUBJECTS = 16;

/** How much of the Inbox one item uses. */
interface IndexedItem {
  readonly client: string;
  readonly token: string;
  readonly bytes: number;
  readonly expiresAt: number;
}

interface SubjectIndex {
  readonly items: Map<number, IndexedItem>;
  /** Row numbers that were deleted during the build, because a page that was read before can still contain them. */
  deleted: Set<number> | undefined;
  built: Promise<void>;
}

/**
 * Knows the client and the size of each item, so that a client that floods the Inbox costs no decryption of items. Contains no text
 * of an item. It is dropped when the memory is locked.
 */
export class ItemIndex implements Disposable {
  readonly #store: MemoryStore;
  readonly #between: (subject: string) => Promise<unknown>;
  #subscription: Disposable | undefined;
  /** The indexes by subject, least recently used first. */
  readonly #subjects = new Map<string, SubjectIndex>();

  constructor(store: MemoryStore, between: (subject: string) => Promise<unknown>) {
    this.#store = store;
    this.#between = between;
  }

  /** Returns the items that have not expired. */
  async of(subject: string): Promise<readonly IndexedItem[]> {
    if (this.#store.refresh) await this.#store.refresh();
    const index = this.#indexOf(subject);
    await index.built;
    const now = this.#store.now();
    return [...index.items.values()].filter(({ expiresAt }) => expiresAt > now);
  }

  [Symbol.dispose](): void {
    this.#subscription?.[Symbol.dispose]();
    this.#subscription = undefined;
    this.#subjects.clear();
  }

  #indexOf(subject: string): SubjectIndex {
    const known = this.#subjects.get(subject);
    this.#subjects.delete(subject);
    const index = known ?? { items: new Map<number, IndexedItem>(), deleted: new Set<number>(), built: Promise.resolve() };
    this.#subjects.set(subject, index);
    if (known) return known;
    this.#subscription ??= this.#store.onEntryEvent((event) => this.#follow(event));
    const [oldest] = this.#subjects.size > MAX_SUBJECTS ? this.#subjects.keys() : [];
    if (oldest !== undefined) this.#subjects.delete(oldest);
    index.built = this.#build(subject, index)
      .catch((error: unknown) => {
        if (this.#subjects.get(subject) === index) this.#subjects.delete(subject);
        throw error;
      })
      .finally(() => (index.deleted = undefined));
    return index;
  }

  async #build(subject: string, { items, deleted }: SubjectIndex): Promise<void> {
    const query = { sort: 'oldest', category: INBOX_CATEGORY, limit: SLICE, uncached: true } as const;
    for (let after = {}; ;) {
      const { entries, rows, next } = await this.#store.space({ subject }, 'pack').page({ ...query, ...after });
      for (const [position, entry] of entries.entries()) {
        const row = rows[position];
        if (row !== undefined && !items.has(row) && !deleted?.has(row)) items.set(row, indexed(entry));
      }
      if (!next) return;
      after = { after: next };
      await this.#between(subject);
    }
  }

  #follow(event: EntryEvent): void {
    if (event.what === 'reset') this[Symbol.dispose]();
    else if (event.what === 'deleted') {
      for (const { items, deleted } of this.#subjects.values()) {
        items.delete(event.row);
        deleted?.add(event.row);
      }
    } else if (event.kind === 'pack' && event.entry.category === INBOX_CATEGORY) {
      const index = this.#subjects.get(event.namespace.subject);
      index?.deleted?.delete(event.row);
      index?.items.set(event.row, indexed(event.entry));
    }
  }
}

const indexed = ({ author, value, expiresAt }: Entry): IndexedItem => ({
  client: author.client,
  token: author.token,
  bytes: Buffer.byteLength(value),
  expiresAt,
});
