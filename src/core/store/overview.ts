import type { CategoryCounters } from './category-counters.ts';
import type { EntryRow } from './connection.ts';
import { storedCategory } from './entry.ts';
import type { StoreContext } from './store-context.ts';
import type { Kind, Namespace, Overview } from './store.ts';

interface OpenedKey {
  readonly row: number;
  /** Identifies this version of the row, because every write makes a new seal. */
  readonly seal: string;
  readonly key: string;
  readonly expiresAt: number;
}

interface Recent {
  readonly version: number;
  readonly most: number;
  readonly at: number;
  readonly keys: readonly OpenedKey[];
}

/** A cached overview. It is valid between `from` and `until`, unless an entry changes. */
interface CachedOverview {
  readonly revision: number;
  readonly from: number;
  readonly until: number;
  readonly overview: Overview;
}

interface Most {
  readonly categories: number;
  readonly keys: number;
}

interface Place {
  readonly namespace: Namespace;
  readonly kind: Kind;
  readonly id: number;
}

const NEVER = Number.MAX_SAFE_INTEGER;
const MAX_CACHED = 4096;

/**
 * Reads overviews of the entries of one kind in a namespace. Counters provide the counts, and the newest keys of each category
 * are cached. After an entry of a category changes or expires, only the new rows of that category are decrypted. If nothing
 * changed, the whole overview comes from the cache.
 */
export class OverviewReader {
  readonly #context: Pick<StoreContext, 'connection' | 'rows' | 'time'>;
  readonly #recent = new Map<string, Recent>();
  readonly #overviews = new Map<string, CachedOverview>();
  #counters: CategoryCounters | undefined;

  constructor(context: Pick<StoreContext, 'connection' | 'rows' | 'time'>) {
    this.#context = context;
  }

  overview(namespace: Namespace, kind: Kind, most: Most): Overview {
    const { connection, rows } = this.#context;
    const id = connection.namespaceId(namespace);
    if (id === undefined) return { categories: [], more: 0 };
    const now = this.#context.time.now();
    const { categoryCounters: categories } = connection;
    // New counters repeat the version numbers of the old counters, so the cache must be cleared.
    if (categories !== this.#counters) this.clear();
    this.#counters = categories;
    const where = `${id} ${kind} ${most.categories} ${most.keys}`;
    const known = this.#overviews.get(where);
    if (known?.revision === rows.revision && known.from <= now && known.until > now) return known.overview;
    const overview = this.#read({ namespace, kind, id }, most, now);
    const [soonest] = connection.statementsOf(kind).soonest.all(id, now, NEVER, now, now, 0, 1) as EntryRow[];
    if (this.#overviews.size >= MAX_CACHED) this.#overviews.clear();
    this.#overviews.set(where, { revision: rows.revision, from: now, until: soonest?.expires_at ?? NEVER, overview });
    return overview;
  }

  #read({ namespace, kind, id }: Place, most: Most, now: number): Overview {
    const gone = new Map(
      (
        this.#context.connection.statementsOf(kind).expiredByCategory.all({ id, now }) as { category: string; count: number }[]
      ).map(({ category, count }) => [category, count]),
    );
    const living = this.#context.connection.categoryCounters
      .of(id, kind)
      .map(({ category, rows, version }) => ({ name: category, count: rows - (gone.get(category) ?? 0), version }))
      .filter(({ count }) => count > 0);
    const categories = living.slice(0, most.categories).map(({ name, count, version }) => ({
      name,
      count,
      recent: this.#recentOf({ namespace, kind, id }, { name, version, most: most.keys, now }),
    }));
    return { categories, more: living.length - categories.length };
  }

  /** Clears the cache. Called at a lock, because decrypted entry keys must not stay in RAM. */
  clear(): void {
    this.#overviews.clear();
    this.#recent.clear();
  }

  #recentOf(place: Place, { name, version, most, now }: { name: string; version: number; most: number; now: number }): string[] {
    const where = `${place.id} ${place.kind} ${name}`;
    const known = this.#recent.get(where);
    // If the clock was set back, entries that had expired are visible again, so a cache entry from the future is not used.
    const fits = known?.version === version && known.most === most && known.at <= now;
    if (fits && known.keys.every(({ expiresAt }) => expiresAt > now)) return known.keys.map(({ key }) => key);
    const keys = this.#newest(place, { name, most, now }, known?.keys ?? []);
    if (!known && this.#recent.size >= MAX_CACHED) this.#recent.clear();
    this.#recent.set(where, { version, most, at: now, keys });
    return keys.map(({ key }) => key);
  }

  /** Reads the newest keys of a category. Skips rows with a broken seal. */
  #newest(
    { namespace, kind, id }: Place,
    { name, most, now }: { name: string; most: number; now: number },
    known: readonly OpenedKey[],
  ): OpenedKey[] {
    const { connection, rows } = this.#context;
    const keys: OpenedKey[] = [];
    let [at, row] = [NEVER, NEVER];
    for (;;) {
      const found = connection
        .statementsOf(kind)
        .newestInCategory.all(id, now, NEVER, storedCategory(name), at, at, row, most) as EntryRow[];
      for (const one of found) {
        [at, row] = [one.updated_at, one.row];
        if (keys.length === most) break;
        const seal = sealOf(one);
        const before = known.find((opened) => opened.row === one.row && opened.seal === seal);
        const key = before?.key ?? rows.open(namespace, kind, one)?.key;
        if (key !== undefined) keys.push({ row: one.row, seal, key, expiresAt: one.expires_at });
      }
      if (keys.length === most || found.length < most) return keys;
    }
  }
}

/** Returns an id of a row's version: the authentication tag of the seal, which covers the whole row, and the times. */
const sealOf = ({ created_at, updated_at, expires_at, sealed }: EntryRow): string =>
  `${created_at} ${updated_at} ${expires_at} ${sealed.toString('latin1', Math.max(0, sealed.length - 16))}`;
