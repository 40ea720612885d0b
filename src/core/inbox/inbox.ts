import { hash } from 'node:crypto';
import { FactInput } from '../../contract/fact.ts';
import { Failure } from '../../contract/failure.ts';
import type { HeldOperation, InboxSource } from '../../contract/inbox.ts';
import { INBOX } from '../../contract/limits.ts';
import { authorOf, type Caller } from '../access/caller.ts';
import { isSameClient, mayTakePlace } from '../access/fair-share.ts';
import type { FairScheduler } from '../operations/fair-scheduler.ts';
import { findSecret } from '../operations/secret-guard.ts';
import { canonicalJson } from '../packs/canonical-json.ts';
import { putFairly } from '../packs/fair-quota.ts';
import { collectPage } from '../store/collect-page.ts';
import { clientId, INBOX_CATEGORY, isWrittenFor } from '../store/entry.ts';
import type { Author, Entry, EntryCursor, MemoryStore, Space } from '../store/store.ts';
import { ItemIndex } from './item-index.ts';

/** Key prefix of items. Packs cannot write such keys, because the name of a pack contains a dot. */
const BEGIN = 'inbox/';

/** A write that waits: an operation with its input, as JSON. The input passes the validation of the operation. */
export interface HeldWrite {
  readonly operation: HeldOperation;
  readonly input: Readonly<Record<string, unknown>>;
  readonly source: InboxSource;
}

/** A fact that was found in a prompt. */
export interface ProposedFact {
  readonly key: string;
  readonly value: string;
  readonly category: string;
  readonly tags: readonly string[];
}

export interface StoredItem extends HeldWrite {
  readonly id: string;
  /** The client that requested the write. */
  readonly author: Author;
  readonly createdAt: number;
  readonly expiresAt: number;
}

interface Deps {
  readonly store: MemoryStore;
  readonly scheduler: FairScheduler;
}

/**
 * Stores the writes that wait until the owner accepts them. An item is sealed like every entry, and no operation of a client reads
 * it.
 */
export class Inbox implements Disposable {
  readonly #deps: Deps;
  readonly #index: ItemIndex;
  /** The latest addition to each subject's Inbox. Additions run one at a time, because each counts the items before it writes. */
  readonly #adding = new Map<string, Promise<unknown>>();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#index = new ItemIndex(deps.store, (subject) => deps.scheduler.yieldTurn(subject));
  }

  /** Adds a write. The same write of the same client again only renews the item. */
  add(caller: Caller, write: HeldWrite): Promise<StoredItem> {
    const { subject } = caller;
    const author = authorOf(caller);
    const id = idOf(author, write);
    const value = JSON.stringify(write);
    return this.#serialize(subject, async () => {
      const space = this.#space(subject);
      if (!(await space.get(BEGIN + id))) await this.#requirePlace(caller, Buffer.byteLength(value));
      const draft = { key: BEGIN + id, value, category: INBOX_CATEGORY, tags: [], author, lifetime: INBOX.ttl * 1000 };
      const { entry } = await putFairly(this.#deps.store, subject, author, () => space.put(draft));
      return itemOf(entry);
    });
  }

  /**
   * Proposes a fact that the owner stated in a prompt. Returns undefined if the fact is not valid, looks like a credential or has no
   * place, because no client waits for the answer.
   */
  async propose(caller: Caller, fact: ProposedFact): Promise<StoredItem | undefined> {
    const { success, data } = FactInput().safeParse(fact);
    if (!success || findSecret(JSON.stringify([data.key, data.value, data.tags, data.category]))) return undefined;
    return this.add(caller, { operation: 'remember', input: data, source: 'capture' }).catch((error: unknown) => {
      if (error instanceof Failure && error.code === 'quota_exceeded') return undefined;
      throw error;
    });
  }

  async get(subject: string, id: string): Promise<StoredItem> {
    const entry = await this.#space(subject).get(BEGIN + id);
    if (entry) return itemOf(entry);
    throw new Failure(
      'not_found',
      'This item is not in the Inbox any more: it was accepted or dropped, or it has expired. List the Inbox again.',
    );
  }

  async page(
    subject: string,
    {
      limit,
      after,
      characters,
    }: { readonly limit: number; readonly after?: EntryCursor | undefined; readonly characters: number },
  ): Promise<{ readonly items: readonly StoredItem[]; readonly next?: EntryCursor }> {
    const query = { sort: 'oldest', category: INBOX_CATEGORY, limit, ...(after && { after }) } as const;
    const { entries, next } = await collectPage(this.#space(subject), query, {
      between: this.#between(subject),
      enough: characters,
    });
    return { items: entries.map(itemOf), ...(next && { next }) };
  }

  /** Works without the master key. */
  count(subject: string): Promise<number> {
    return this.#space(subject).count(INBOX_CATEGORY);
  }

  /** Deletes one item. Returns false if it is not there. */
  async drop(subject: string, id: string): Promise<boolean> {
    if (!(await this.#space(subject).get(BEGIN + id))) return false;
    await this.#deps.store.forget(subject, { kinds: ['pack'], key: BEGIN + id, session: '' });
    return true;
  }

  /** Deletes the items of a client, or all items. Returns their number. All items can be deleted without the master key. */
  async dropMany(subject: string, client: string | undefined): Promise<number> {
    const selection = { kinds: ['pack'], category: INBOX_CATEGORY, session: '' } as const;
    const forget = (matches = {}): Promise<unknown> =>
      this.#deps.store.forget(subject, { ...selection, ...matches }, undefined, this.#between(subject));
    if (client === undefined) {
      const count = await this.count(subject);
      await forget();
      return count;
    }
    const dropped = new Set<string>();
    await forget({
      matches: ({ key, author }: Entry): boolean => isWrittenFor(author, client) && dropped.add(key) !== undefined,
    });
    return dropped.size;
  }

  [Symbol.dispose](): void {
    this.#index[Symbol.dispose]();
  }

  /** Throws if the client, or all clients together, have no place left. A client never displaces the items of another one. */
  async #requirePlace(caller: Caller, bytes: number): Promise<void> {
    const items = await this.#index.of(caller.subject);
    const own = items.filter((item) => isSameClient(item, caller));
    const ownBytes = own.reduce((sum, item) => sum + item.bytes, bytes);
    if (own.length < INBOX.perClient && ownBytes <= INBOX.bytes && mayTakePlace(caller, items, INBOX.items)) return;
    throw new Failure(
      'quota_exceeded',
      'Too many writes of this client wait for the approval of the owner of this memory. Nothing was stored. Tell the owner, and do not send more writes until then.',
    );
  }

  #between(subject: string): () => Promise<void> {
    return () => this.#deps.scheduler.yieldTurn(subject);
  }

  #space(subject: string): Space {
    return this.#deps.store.space({ subject }, 'pack');
  }

  #serialize<T>(subject: string, job: () => Promise<T>): Promise<T> {
    const turn = (this.#adding.get(subject) ?? Promise.resolve()).then(job);
    const settled = turn.catch(() => undefined);
    this.#adding.set(subject, settled);
    void settled.then(() => this.#adding.get(subject) === settled && this.#adding.delete(subject));
    return turn;
  }
}

/**
 * Derives the id from the client and the write, so that a repeated write finds its item. The id contains the client, so that it
 * does not tell a client what another client has written.
 */
const idOf = (author: Author, { operation, input, source }: HeldWrite): string =>
  hash('sha256', canonicalJson([clientId(author), author.definedBy ?? null, operation, input, source]) ?? '').slice(0, 32);

function itemOf({ key, value, author, createdAt, expiresAt }: Entry): StoredItem {
  // This cast is safe, because decryption proves that this program wrote the entry.
  return { ...(JSON.parse(value) as HeldWrite), id: key.slice(BEGIN.length), author, createdAt, expiresAt };
}
