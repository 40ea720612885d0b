import { asFailure, Failure } from '../contract/failure.ts';
import { HISTORY_VERSIONS, TOMBSTONE_TTL } from '../contract/limits.ts';
import type { KeyState, StoreStatus } from '../contract/status.ts';
import type { Clock } from './clock.ts';
import { CommitQueue } from './commit-queue.ts';
import type { Connection, Row } from './connection.ts';
import { Disk } from './disk.ts';
import { endOf, entryOf, sameContent } from './entry.ts';
import type { Reserve } from './folder.ts';
import { Forgetting, named, needsKey } from './forgetting.ts';
import { KeptClock } from './kept-clock.ts';
import type { KeyKeeper } from './key-keeper.ts';
import { SealedRows } from './sealed-rows.ts';
import { ALL_KINDS } from './statements.ts';
import type {
  Change,
  Cursor,
  Draft,
  Entry,
  Forgotten,
  Kind,
  MemoryStore,
  Namespace,
  Note,
  Page,
  PageQuery,
  Put,
  Selection,
  Space,
  SpaceKind,
  Swept,
} from './store.ts';
import { Sweeper } from './sweeper.ts';
import { FileUpkeep } from './upkeep.ts';

const NEWEST: Cursor = { at: Number.MAX_SAFE_INTEGER, row: Number.MAX_SAFE_INTEGER };
const SOONEST: Cursor = { at: Number.MIN_SAFE_INTEGER, row: Number.MIN_SAFE_INTEGER };

export interface SqliteParts {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly clock: Clock;
  readonly folder: string;
  readonly reserve: Reserve;
  /** Held for as long as the store is open. */
  readonly lock: Disposable;
}

/** The memory in one SQLite file, sealed. */
export class SqliteStore implements MemoryStore {
  readonly upkeep: FileUpkeep;
  readonly #parts: SqliteParts;
  readonly #connection: Connection;
  readonly #keys: KeyKeeper;
  readonly #rows: SealedRows;
  readonly #queue: CommitQueue;
  readonly #disk: Disk;
  readonly #time: KeptClock;
  readonly #sweeper: Sweeper;
  readonly #forgetting: Forgetting;
  #closed = false;

  constructor(parts: SqliteParts) {
    const { connection, keys, clock } = parts;
    this.#parts = parts;
    this.#connection = connection;
    this.#keys = keys;
    this.#rows = new SealedRows(connection, keys);
    this.#disk = new Disk({ ...parts, takenBack: () => keys.abandonSegment() });
    this.#queue = new CommitQueue(this.#disk.transactions(), (error) => this.#disk.explain(error));
    this.#time = new KeptClock({ connection, keys, queue: this.#queue, clock });
    this.#sweeper = new Sweeper({ sweep: (limit) => this.sweep(limit), now: () => this.now(), clock });
    this.#forgetting = new Forgetting({
      connection,
      keys,
      rows: this.#rows,
      now: () => this.now(),
      trusted: () => this.#time.trusted(),
    });
    this.upkeep = new FileUpkeep({ ...parts, rows: this.#rows, queue: this.#queue, now: () => this.now() });
    this.#sweeper.at(this.now());
    this.#keyed();
  }

  space(namespace: Namespace, kind: SpaceKind): Space {
    return {
      kind,
      put: (draft, note) => this.#write(() => this.#put(namespace, kind, draft, note)),
      change: (key, change, note) => this.#write(() => this.#change(namespace, kind, key, change, note)),
      get: (key) => this.#read(() => this.#living(namespace, kind, key)?.entry),
      page: (query) => this.#read(() => this.#page(namespace, kind, query)),
      count: (category) => this.#readUnopened(() => this.#count(namespace, kind, category)),
      history: (key) => this.#read(() => this.#history(namespace, key)),
    };
  }

  namespaces(): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]> {
    return this.#readUnopened(() =>
      this.#connection
        .namespaces()
        .map((row) => ({ namespace: named(row), count: this.#count(named(row), 'fact') }))
        .filter(({ count }) => count > 0),
    );
  }

  async forget(subject: string, selection: Selection, note?: Note): Promise<Forgotten> {
    this.#requireOpen();
    if (needsKey(selection)) await this.#awake();
    const forget = (): number => {
      const deleted = this.#forgetting.run(subject, selection);
      // Without a key there is nothing to seal the record with, and the forgetting matters more.
      if (note && this.#keys.custody) this.#keepNote({ subject }, note);
      return deleted;
    };
    const deleted = await this.#queue.run(forget).catch((error: unknown) => {
      if (asFailure(error).code !== 'disk_full') throw error;
      const inHandfuls = (): number => this.#forgetting.runInLittleSpace(subject, selection, this.#parts.reserve);
      return this.#disk.attempt(() => this.#connection.inLittleSpace(inHandfuls));
    });
    // Copies made before are outside the live files, and their owner must know of them.
    return { deleted, purged: await this.#disk.purge(), olderBackups: this.upkeep.backups().length };
  }

  async countMatching(subject: string, selection: Selection): Promise<number> {
    const count = (): number => this.#forgetting.count(subject, selection);
    return needsKey(selection) ? this.#read(count) : this.#readUnopened(count);
  }

  async sweep(limit: number): Promise<Swept> {
    this.#requireOpen();
    this.#time.tick();
    const swept = await this.#queue.run(() => this.#sweep(limit));
    if (swept.removed > 0) this.#disk.purgeSoon();
    this.#disk.refillReserve();
    return swept;
  }

  status(): StoreStatus {
    return {
      kept: 'file',
      key: this.#keys.state,
      file: this.#disk.state,
      quarantined: this.#rows.broken + this.#keys.broken,
      purge_held_seconds: Math.ceil(this.#time.held() / 1000),
      rotation: this.upkeep.rotating,
    };
  }

  lock(): void {
    this.#keys.lock();
  }

  async unlock(): Promise<KeyState> {
    this.#requireOpen();
    const state = await this.#keys.unlock().catch((error: unknown) => {
      throw this.#disk.explain(error).told;
    });
    this.#requireOpen();
    this.#keyed();
    return state;
  }

  now(): number {
    const now = this.#time.now();
    this.#sweeper.noticed(now);
    return now;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#sweeper.stop();
    await this.upkeep.stop();
    await this.#queue.idle();
    // Without a key nothing has been written, and the file stays as it was found.
    if (this.#keys.custody) await this.#queue.run(() => this.#time.keep()).catch(() => undefined);
    await this.#disk.close();
    this.#parts.lock[Symbol.dispose]();
  }

  #put(namespace: Namespace, kind: Kind, draft: Draft, note: Note | undefined): Put {
    const now = this.now();
    const found = this.#rows.find(namespace, kind, draft.key);
    const before = found && found.expires_at > now ? this.#rows.open(namespace, kind, found) : undefined;
    const fresh = entryOf(draft, now);
    if (note) this.#keepNote(namespace, note);
    if (!found || !before) {
      // What has expired or cannot be opened is not an earlier version: it makes room, with its own versions.
      if (found) this.#makeWay(namespace, kind, found);
      this.#rows.insert(namespace, kind, fresh);
      if (found) this.#disk.purgeSoon();
      return { status: 'created', entry: this.#ends(fresh) };
    }
    if (sameContent(before, fresh)) {
      const renewed = { ...before, expiresAt: fresh.expiresAt };
      this.#rows.replace(namespace, kind, found, renewed);
      return { status: 'unchanged', entry: this.#ends(renewed) };
    }
    const updated = { ...fresh, createdAt: before.createdAt, updatedAt: Math.max(now, before.updatedAt + 1) };
    this.#supersede(namespace, kind, found, before, updated);
    return { status: 'updated', entry: this.#ends(updated) };
  }

  /** While the clock is in doubt it may not have expired at all, and becomes a version that shows when the clock is put right. */
  #makeWay(namespace: Namespace, kind: Kind, found: Row): void {
    const doubtful = kind === 'fact' && this.#time.held() > 0 ? this.#rows.open(namespace, kind, found) : undefined;
    if (!doubtful) return this.#rows.delete(this.#connection.keepNamespace(namespace), kind, found);
    this.#connection.sql.deleteRow.run(found.row);
    this.#rows.insert(namespace, 'history', doubtful);
  }

  #change(namespace: Namespace, kind: Kind, key: string, change: Change, note: Note | undefined): Entry | undefined {
    const now = this.now();
    const found = this.#living(namespace, kind, key);
    if (!found) return undefined;
    const { row, entry: before } = found;
    if (note) this.#keepNote(namespace, note);
    const expiresAt = change.lifetime === undefined ? before.expiresAt : endOf(change.lifetime, now);
    const changed = { ...before, category: change.category ?? before.category, tags: change.tags ?? before.tags, expiresAt };
    if (sameContent(before, changed)) {
      this.#rows.replace(namespace, kind, row, changed);
      return this.#ends(changed);
    }
    const updated = { ...changed, author: change.author, updatedAt: Math.max(now, before.updatedAt + 1) };
    this.#supersede(namespace, kind, row, before, updated);
    return this.#ends(updated);
  }

  /** For a fact, what was said before goes to its history, and the oldest version makes room. */
  #supersede(namespace: Namespace, kind: Kind, row: Row, before: Entry, after: Entry): void {
    this.#rows.replace(namespace, kind, row, after);
    let left = 1;
    if (kind === 'fact') {
      this.#rows.insert(namespace, 'history', before);
      const [hash] = this.#keys.ring.hashes(namespace, after.key);
      left = this.#connection.sql.trimVersions.run(this.#connection.keepNamespace(namespace), hash, HISTORY_VERSIONS).changes;
    }
    if (left > 0) this.#disk.purgeSoon();
  }

  #keepNote(namespace: Namespace, note: Note): void {
    this.#put(namespace, 'activity', note, undefined);
  }

  /** Tells the sweeper when the entry goes. */
  #ends(entry: Entry): Entry {
    this.#sweeper.at(entry.expiresAt);
    return entry;
  }

  #living(namespace: Namespace, kind: Kind, key: string): { row: Row; entry: Entry } | undefined {
    const row = this.#rows.find(namespace, kind, key);
    if (!row || row.expires_at <= this.now()) return undefined;
    const entry = this.#rows.open(namespace, kind, row);
    return entry && { row, entry };
  }

  #history(namespace: Namespace, key: string): Entry[] {
    const fact = this.#living(namespace, 'fact', key);
    if (!fact) return [];
    const id = this.#connection.namespaceId(namespace);
    const rows = this.#connection.sql.versions.all(id, fact.row.key_hash, this.now()) as Row[];
    return rows.map((row) => this.#rows.open(namespace, 'history', row)).filter((entry) => entry !== undefined);
  }

  #page(namespace: Namespace, kind: Kind, query: PageQuery): Page {
    const id = this.#connection.namespaceId(namespace);
    if (id === undefined) return { entries: [] };
    const entries: Entry[] = [];
    // Rows whose seal is broken leave gaps, which the next rows fill.
    for (let { after } = query; ;) {
      const wanted = query.limit - entries.length;
      const rows = this.#rowsAfter(id, kind, query, after, wanted + 1);
      const shown = rows.slice(0, wanted);
      for (const row of shown) {
        const entry = this.#rows.open(namespace, kind, row);
        if (entry) entries.push(entry);
      }
      const last = shown.at(-1);
      if (!last || rows.length <= wanted) return { entries };
      after = { at: query.sort === 'updated' ? last.updated_at : last.expires_at, row: last.row };
      if (entries.length === query.limit) return { entries, next: after };
    }
  }

  #rowsAfter(id: number, kind: Kind, query: PageQuery, after: Cursor | undefined, limit: number): Row[] {
    const { sort, category, expiresBefore } = query;
    const { at, row } = after ?? (sort === 'updated' ? NEWEST : SOONEST);
    const scope = [id, this.now(), expiresBefore ?? Number.MAX_SAFE_INTEGER];
    const place = [at, at, row, limit];
    const { newest, newestInCategory, soonest, soonestInCategory } = this.#connection.of(kind);
    if (category === undefined) return (sort === 'updated' ? newest : soonest).all(...scope, ...place) as Row[];
    return (sort === 'updated' ? newestInCategory : soonestInCategory).all(...scope, category, ...place) as Row[];
  }

  #count(namespace: Namespace, kind: Kind, category?: string): number {
    const id = this.#connection.namespaceId(namespace);
    if (id === undefined) return 0;
    const { count, countInCategory } = this.#connection.of(kind);
    const scope = [id, this.now()];
    return (category === undefined ? count.get(...scope) : countInCategory.get(...scope, category)) as number;
  }

  #sweep(limit: number): Swept {
    const { connection, now, rows } = { connection: this.#connection, now: this.now(), rows: this.#rows };
    const held = this.#time.held();
    if (held > 0) return { removed: 0, next: now + held };
    let removed = 0;
    let next: number | undefined;
    for (const { id } of connection.namespaces()) {
      for (const kind of ALL_KINDS) {
        const expired = connection.of(kind).expired.all(id, now, limit - removed) as Pick<Row, 'row' | 'key_hash'>[];
        for (const row of expired) rows.delete(id, kind, row);
        removed += expired.length;
        const first = connection.of(kind).nextExpiry.get(id) as number | null;
        if (first !== null) next = Math.min(next ?? first, first);
      }
    }
    connection.dropEmptySessions();
    connection.sql.dropOldTombstones.run(now - TOMBSTONE_TTL * 1000);
    return next === undefined ? { removed } : { removed, next };
  }

  async #write<T>(job: () => T): Promise<T> {
    this.#requireOpen();
    if (!this.#keys.custody) await this.#awake();
    this.#time.tick();
    this.#disk.refillReserve();
    return this.#queue.run(() => {
      const result = job();
      this.#time.keepAlong();
      return result;
    });
  }

  async #read<T>(query: () => T): Promise<T> {
    this.#requireOpen();
    if (!this.#keys.custody) await this.#awake();
    this.#time.tick();
    void this.#keys.ring;
    return this.#disk.attempt(query);
  }

  /** For what stands beside the seals: it is told in every key state. */
  async #readUnopened<T>(query: () => T): Promise<T> {
    this.#requireOpen();
    return this.#disk.attempt(query);
  }

  /** The key's place may have been opened since. */
  async #awake(): Promise<void> {
    if (this.#keys.custody) return;
    await this.#keys.ready().catch((error: unknown) => {
      throw this.#disk.explain(error).told;
    });
    this.#keyed();
  }

  /** What waited for the key goes on. */
  #keyed(): void {
    if (!this.#keys.custody) return;
    this.#disk.attempt(() => this.#time.learn());
    this.upkeep.resume();
  }

  #requireOpen(): void {
    if (this.#closed) throw new Failure('store_unavailable', 'The memory has been closed; start Helmdeck Memory again.');
    this.#disk.require();
  }
}
