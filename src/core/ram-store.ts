import { Failure } from '../contract/failure.ts';
import { HISTORY_VERSIONS } from '../contract/limits.ts';
import type { KeyState, StoreStatus } from '../contract/status.ts';
import type { Clock } from './clock.ts';
import { endOf, entryOf, sameContent } from './entry.ts';
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
import { Timekeeper } from './timekeeper.ts';

interface Kept {
  readonly namespace: Namespace;
  readonly kind: Kind;
  /** Stands for the order in which entries came, as a row number does. */
  readonly row: number;
  readonly entry: Entry;
  /** Newest first. */
  readonly versions: readonly Entry[];
}

const EPHEMERAL: KeyState = {
  at: 'ephemeral',
  remedy:
    'There is no key, so everything is gone when the program ends; make one with helmdeck-memory key init --file, or hand one in with HELMDECK_MEMORY_KEY, and start again.',
};

/** The memory of a program that has no key: it ends with the program, and says so. */
export class RamStore implements MemoryStore {
  readonly upkeep = undefined;
  readonly #time: Timekeeper;
  readonly #sweeper: Sweeper;
  readonly #kept = new Map<string, Kept>();
  #rows = 0;
  #closed = false;

  constructor(clock: Clock) {
    this.#time = new Timekeeper(clock, undefined);
    this.#sweeper = new Sweeper({ sweep: (limit) => this.sweep(limit), now: () => this.now(), clock });
  }

  space(namespace: Namespace, kind: SpaceKind): Space {
    return {
      kind,
      put: (draft, note) => this.#step(() => this.#put(namespace, kind, draft, note)),
      change: (key, change, note) => this.#step(() => this.#change(namespace, kind, key, change, note)),
      get: (key) => this.#step(() => this.#living(namespace, kind, key)?.entry),
      page: (query) => this.#step(() => this.#page(namespace, kind, query)),
      count: (category) => this.#step(() => this.#list(namespace, kind, category).length),
      history: (key) =>
        this.#step(() => this.#living(namespace, 'fact', key)?.versions.filter(({ expiresAt }) => expiresAt > this.now()) ?? []),
    };
  }

  namespaces(): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]> {
    return this.#step(() => {
      const counts = new Map<string, { namespace: Namespace; count: number }>();
      for (const { namespace, kind, entry } of this.#kept.values()) {
        if (kind !== 'fact' || entry.expiresAt <= this.now()) continue;
        const name = nameOf(namespace, 'fact', '');
        counts.set(name, { namespace, count: (counts.get(name)?.count ?? 0) + 1 });
      }
      return [...counts.values()];
    });
  }

  forget(subject: string, selection: Selection, note?: Note): Promise<Forgotten> {
    return this.#step(() => {
      const doomed = this.#select(subject, selection);
      for (const [name] of doomed) this.#kept.delete(name);
      if (note) this.#keepNote({ subject }, note);
      return { deleted: this.#seen(doomed), purged: true, olderBackups: 0 };
    });
  }

  countMatching(subject: string, selection: Selection): Promise<number> {
    return this.#step(() => this.#seen(this.#select(subject, selection)));
  }

  sweep(limit: number): Promise<Swept> {
    return this.#step(() => {
      const held = this.#time.held();
      if (held > 0) return { removed: 0, next: this.now() + held };
      const expired = [...this.#kept].filter(([, { entry }]) => entry.expiresAt <= this.now()).slice(0, limit);
      for (const [name] of expired) this.#kept.delete(name);
      for (const [name, kept] of this.#kept) {
        const living = kept.versions.filter(({ expiresAt }) => expiresAt > this.now());
        if (living.length < kept.versions.length) this.#kept.set(name, { ...kept, versions: living });
      }
      const ends = [...this.#kept.values()].flatMap(({ entry, versions }) =>
        [entry, ...versions].map(({ expiresAt }) => expiresAt),
      );
      return ends.length === 0 ? { removed: expired.length } : { removed: expired.length, next: earliest(ends) };
    });
  }

  status(): StoreStatus {
    return {
      kept: 'memory',
      key: EPHEMERAL,
      file: { at: 'open' },
      quarantined: 0,
      purge_held_seconds: Math.ceil(this.#time.held() / 1000),
      rotation: { at: 'none' },
    };
  }

  lock(): void {
    throw new Failure('invalid_input', 'This memory has no key that could be taken away; end the program to lose what it holds.');
  }

  unlock(): Promise<KeyState> {
    return this.#step(() => EPHEMERAL);
  }

  now(): number {
    return this.#time.now();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#sweeper.stop();
    this.#kept.clear();
    return Promise.resolve();
  }

  #put(namespace: Namespace, kind: Kind, draft: Draft, note: Note | undefined): Put {
    const now = this.now();
    const before = this.#living(namespace, kind, draft.key);
    const fresh = entryOf(draft, now);
    if (note) this.#keepNote(namespace, note);
    if (!before) {
      this.#kept.delete(nameOf(namespace, kind, draft.key));
      this.#keep(namespace, kind, fresh, []);
      return { status: 'created', entry: fresh };
    }
    const { entry, versions } = before;
    if (sameContent(entry, fresh)) {
      const renewed = { ...entry, expiresAt: fresh.expiresAt };
      this.#keep(namespace, kind, renewed, versions);
      return { status: 'unchanged', entry: renewed };
    }
    const updated = { ...fresh, createdAt: entry.createdAt, updatedAt: Math.max(now, entry.updatedAt + 1) };
    this.#supersede(namespace, kind, before, updated);
    return { status: 'updated', entry: updated };
  }

  #change(namespace: Namespace, kind: Kind, key: string, change: Change, note: Note | undefined): Entry | undefined {
    const before = this.#living(namespace, kind, key);
    if (!before) return undefined;
    const { entry, versions } = before;
    const now = this.now();
    const expiresAt = change.lifetime === undefined ? entry.expiresAt : endOf(change.lifetime, now);
    if (note) this.#keepNote(namespace, note);
    const changed = { ...entry, category: change.category ?? entry.category, tags: change.tags ?? entry.tags, expiresAt };
    if (sameContent(entry, changed)) {
      this.#keep(namespace, kind, changed, versions);
      return changed;
    }
    const updated = { ...changed, author: change.author, updatedAt: Math.max(now, entry.updatedAt + 1) };
    this.#supersede(namespace, kind, before, updated);
    return updated;
  }

  #supersede(namespace: Namespace, kind: Kind, { entry, versions }: Kept, after: Entry): void {
    this.#keep(namespace, kind, after, kind === 'fact' ? [entry, ...versions].slice(0, HISTORY_VERSIONS) : []);
  }

  #keepNote(namespace: Namespace, note: Note): void {
    this.#put(namespace, 'activity', note, undefined);
  }

  #keep(namespace: Namespace, kind: Kind, entry: Entry, versions: readonly Entry[]): void {
    const name = nameOf(namespace, kind, entry.key);
    const row = this.#kept.get(name)?.row ?? (this.#rows += 1);
    this.#kept.set(name, { namespace, kind, row, entry, versions });
    this.#sweeper.at(earliest([entry, ...versions].map(({ expiresAt }) => expiresAt)));
  }

  #living(namespace: Namespace, kind: Kind, key: string): Kept | undefined {
    const kept = this.#kept.get(nameOf(namespace, kind, key));
    return kept && kept.entry.expiresAt > this.now() ? kept : undefined;
  }

  #list(namespace: Namespace, kind: Kind, category: string | undefined): Kept[] {
    const name = nameOf(namespace, kind, '');
    return [...this.#kept.values()].filter(
      (kept) =>
        nameOf(kept.namespace, kept.kind, '') === name &&
        kept.entry.expiresAt > this.now() &&
        (category === undefined || kept.entry.category === category),
    );
  }

  #page(namespace: Namespace, kind: Kind, { sort, limit, category, expiresBefore, after }: PageQuery): Page {
    const placeOf = ({ entry, row }: Kept): Cursor => ({ at: sort === 'updated' ? entry.updatedAt : entry.expiresAt, row });
    // Newest first runs down, soonest first runs up.
    const direction = sort === 'updated' ? -1 : 1;
    const compare = (one: Cursor, other: Cursor): number => direction * (one.at - other.at || one.row - other.row);
    const rest = this.#list(namespace, kind, category)
      .filter(({ entry }) => expiresBefore === undefined || entry.expiresAt < expiresBefore)
      .filter((kept) => after === undefined || compare(placeOf(kept), after) > 0)
      .toSorted((one, other) => compare(placeOf(one), placeOf(other)));
    const shown = rest.slice(0, limit);
    const last = shown.at(-1);
    const entries = shown.map(({ entry }) => entry);
    return last && rest.length > limit ? { entries, next: placeOf(last) } : { entries };
  }

  #select(subject: string, { kinds, category, key, matches, session }: Selection): [string, Kept][] {
    return [...this.#kept].filter(
      ([, { namespace, kind, entry }]) =>
        namespace.subject === subject &&
        (session === undefined || namespace.session === session) &&
        kinds.includes(kind) &&
        (category === undefined || entry.category === category) &&
        (key === undefined || entry.key === key) &&
        (matches === undefined || matches(entry, kind)),
    );
  }

  #seen(selected: readonly [string, Kept][]): number {
    return selected.filter(([, { kind, entry }]) => kind !== 'activity' && entry.expiresAt > this.now()).length;
  }

  async #step<T>(run: () => T): Promise<T> {
    this.#requireOpen();
    return run();
  }

  #requireOpen(): void {
    if (this.#closed) throw new Failure('store_unavailable', 'The memory has been closed; start Helmdeck Memory again.');
  }
}

const nameOf = ({ subject, session = '' }: Namespace, kind: Kind, key: string): string =>
  JSON.stringify([kind, subject, session, key]);

const earliest = (moments: readonly number[]): number => moments.reduce((one, other) => Math.min(one, other), Infinity);
