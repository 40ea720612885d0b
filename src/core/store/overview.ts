import type { Connection, EntryRow } from './connection.ts';
import type { CategoryCounters } from './counters.ts';
import type { SealedRows } from './sealed-rows.ts';
import type { Kind, Namespace, Overview } from './store.ts';

interface OpenedKey {
  readonly row: number;
  /** Tells this state of the row from every other. */
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

/** What was answered, and from when until when it would be answered again if nothing changed. */
interface Answered {
  readonly changes: number;
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

interface Deps {
  readonly connection: Connection;
  readonly rows: SealedRows;
  now(): number;
}

const NEVER = Number.MAX_SAFE_INTEGER;
/** Categories whose newest keys are kept open; more are opened each time. */
const KEPT = 4096;

/**
 * The table of contents of one kind of entry in a namespace. Counters say how many, and the newest keys of a category stay
 * opened. They are looked up again when something in it changed or one of them expired, and then only what is new is opened,
 * so asking again costs next to nothing. Where nothing changed at all, the whole answer stands.
 */
export class OverviewReader {
  readonly #deps: Deps;
  readonly #recent = new Map<string, Recent>();
  readonly #answered = new Map<string, Answered>();
  #countedBy: CategoryCounters | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  overview(namespace: Namespace, kind: Kind, most: Most): Overview {
    const { connection, rows } = this.#deps;
    const id = connection.namespaceId(namespace);
    if (id === undefined) return { categories: [], more: 0 };
    const now = this.#deps.now();
    const { categoryCounters: categories } = connection;
    // Others count the changes from the beginning again.
    if (categories !== this.#countedBy) this.clear();
    this.#countedBy = categories;
    const where = `${id} ${kind} ${most.categories} ${most.keys}`;
    const known = this.#answered.get(where);
    if (known?.changes === rows.revision && known.from <= now && known.until > now) return known.overview;
    const overview = this.#look({ namespace, kind, id }, most, now);
    const [soonest] = connection.statementsOf(kind).soonest.all(id, now, NEVER, now, now, 0, 1) as EntryRow[];
    if (this.#answered.size >= KEPT) this.#answered.clear();
    this.#answered.set(where, { changes: rows.revision, from: now, until: soonest?.expires_at ?? NEVER, overview });
    return overview;
  }

  #look({ namespace, kind, id }: Place, most: Most, now: number): Overview {
    const gone = new Map(
      (this.#deps.connection.statementsOf(kind).expiredByCategory.all(id, now) as { category: string; count: number }[]).map(
        ({ category, count }) => [category, count],
      ),
    );
    const living = this.#deps.connection.categoryCounters
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

  /** Keys are what the seal hides: none stays open when the memory is locked. */
  clear(): void {
    this.#answered.clear();
    this.#recent.clear();
  }

  #recentOf(place: Place, { name, version, most, now }: { name: string; version: number; most: number; now: number }): string[] {
    const where = `${place.id} ${place.kind} ${name}`;
    const known = this.#recent.get(where);
    // A clock that was put right may show again what had expired.
    const fits = known?.version === version && known.most === most && known.at <= now;
    if (fits && known.keys.every(({ expiresAt }) => expiresAt > now)) return known.keys.map(({ key }) => key);
    const keys = this.#newest(place, { name, most, now }, known?.keys ?? []);
    if (!known && this.#recent.size >= KEPT) this.#recent.clear();
    this.#recent.set(where, { version, most, at: now, keys });
    return keys.map(({ key }) => key);
  }

  /** Rows whose seal is broken leave gaps, which the next rows fill. */
  #newest(
    { namespace, kind, id }: Place,
    { name, most, now }: { name: string; most: number; now: number },
    known: readonly OpenedKey[],
  ): OpenedKey[] {
    const { connection, rows } = this.#deps;
    const keys: OpenedKey[] = [];
    let [at, row] = [NEVER, NEVER];
    for (;;) {
      const found = connection.statementsOf(kind).newestInCategory.all(id, now, NEVER, name, at, at, row, most) as EntryRow[];
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

/** The seal's last bytes vouch for all before them; the times beside it are cheap to compare, so they need not be trusted. */
const sealOf = ({ created_at, updated_at, expires_at, sealed }: EntryRow): string =>
  `${created_at} ${updated_at} ${expires_at} ${sealed.toString('latin1', Math.max(0, sealed.length - 16))}`;
