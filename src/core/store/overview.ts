import type { Database, Statement } from 'better-sqlite3';
import type { EntryRow } from './connection.ts';
import { KIND_NUMBERS } from './statements.ts';
import type { StoreContext } from './store-context.ts';
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

const NEVER = Number.MAX_SAFE_INTEGER;
/** Categories whose newest keys are kept open; more are opened each time. */
const KEPT = 4096;

/**
 * The table of contents of one kind of entry in a namespace. Counters say how many, and the newest keys of a category stay
 * opened. They are looked up again when something in it changed or one of them expired, and then only what is new is opened,
 * so asking again costs next to nothing. Where nothing changed at all, the whole answer stands.
 */
export class OverviewReader {
  readonly #context: Pick<StoreContext, 'connection' | 'rows' | 'time'>;
  readonly #recent = new Map<string, Recent>();
  readonly #answered = new Map<string, Answered>();
  #countedBy: CategoryCounters | undefined;

  constructor(context: Pick<StoreContext, 'connection' | 'rows' | 'time'>) {
    this.#context = context;
  }

  overview(namespace: Namespace, kind: Kind, most: Most): Overview {
    const { connection, rows } = this.#context;
    const id = connection.namespaceId(namespace);
    if (id === undefined) return { categories: [], more: 0 };
    const now = this.#context.time.now();
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
      (this.#context.connection.statementsOf(kind).expiredByCategory.all(id, now) as { category: string; count: number }[]).map(
        ({ category, count }) => [category, count],
      ),
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
    const { connection, rows } = this.#context;
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

interface CategoryCount {
  readonly category: string;
  readonly rows: number;
  /** Another number after every change in this category, also when it was empty in between. */
  readonly version: number;
}

const { history, activity } = KIND_NUMBERS;
const inCategories = Object.values(KIND_NUMBERS)
  .filter((kind) => kind !== history && kind !== activity)
  .map((kind) => `(${kind})`)
  .join(', ');

/** Apart from the others: an index has all of it, while the bytes are read row by row, and the first look needs only this. */
const CATEGORIES = `
  CREATE TEMP TABLE category_tally (
    namespace INTEGER NOT NULL, kind INTEGER NOT NULL, category TEXT NOT NULL, rows INTEGER NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, category)
  ) WITHOUT ROWID;
  -- One for all: a category that is empty leaves no row behind, and must not get an old number when it comes back.
  CREATE TEMP TABLE change (last INTEGER NOT NULL);

  INSERT INTO change VALUES (0);
  -- From one category to the next by the index, and each counted in it as a stretch: that steps along the same rows as a GROUP BY does,
  -- with half of the work at each. The condition on the kind is that of the index, word for word, without which it is not used.
  INSERT INTO category_tally
    WITH RECURSIVE place (namespace, kind, category) AS (
      SELECT id, column1, (SELECT min(category) FROM main.entry
          WHERE namespace = id AND kind = column1 AND kind <> ${history} AND kind <> ${activity})
        FROM main.namespace CROSS JOIN (VALUES ${inCategories})
      UNION ALL
      SELECT namespace, kind, (SELECT min(category) FROM main.entry AS next
          WHERE next.namespace = place.namespace AND next.kind = place.kind AND next.category > place.category
            AND next.kind <> ${history} AND next.kind <> ${activity})
        FROM place WHERE category IS NOT NULL
    )
    SELECT namespace, kind, category, (SELECT count(*) FROM main.entry AS one
        WHERE one.namespace = place.namespace AND one.kind = place.kind AND one.category = place.category
          AND one.kind <> ${history} AND one.kind <> ${activity}), 0
      FROM place WHERE category IS NOT NULL
    UNION ALL
    -- Activity is in no index by category. Counted apart, namespace by namespace, which CROSS JOIN keeps SQLite to.
    SELECT namespace, kind, category, count(*), 0 FROM main.namespace CROSS JOIN main.entry ON namespace = id
      WHERE kind = ${activity} GROUP BY namespace, kind, category;

  CREATE TEMP TRIGGER category_insert AFTER INSERT ON main.entry WHEN new.kind <> ${history} BEGIN
    UPDATE change SET last = last + 1;
    INSERT INTO category_tally VALUES (new.namespace, new.kind, new.category, 1, (SELECT last FROM change))
      ON CONFLICT DO UPDATE SET rows = rows + 1, version = excluded.version;
  END;
  CREATE TEMP TRIGGER category_delete AFTER DELETE ON main.entry WHEN old.kind <> ${history} BEGIN
    UPDATE change SET last = last + 1;
    UPDATE category_tally SET rows = rows - 1, version = (SELECT last FROM change)
      WHERE namespace = old.namespace AND kind = old.kind AND category = old.category;
    DELETE FROM category_tally
      WHERE namespace = old.namespace AND kind = old.kind AND category = old.category AND rows = 0;
  END;
  CREATE TEMP TRIGGER category_change AFTER UPDATE ON main.entry
    WHEN new.kind <> ${history} AND new.category = old.category
  BEGIN
    UPDATE change SET last = last + 1;
    UPDATE category_tally SET version = (SELECT last FROM change)
      WHERE namespace = new.namespace AND kind = new.kind AND category = new.category;
  END;
  CREATE TEMP TRIGGER category_move AFTER UPDATE OF category ON main.entry
    WHEN new.kind <> ${history} AND new.category <> old.category
  BEGIN
    UPDATE change SET last = last + 1;
    UPDATE category_tally SET rows = rows - 1, version = (SELECT last FROM change)
      WHERE namespace = old.namespace AND kind = old.kind AND category = old.category;
    DELETE FROM category_tally
      WHERE namespace = old.namespace AND kind = old.kind AND category = old.category AND rows = 0;
    INSERT INTO category_tally VALUES (new.namespace, new.kind, new.category, 1, (SELECT last FROM change))
      ON CONFLICT DO UPDATE SET rows = rows + 1, version = excluded.version;
  END;
`;

/** How much there is in each category: what an overview asks. */
export class CategoryCounters {
  readonly #categories: Statement;

  constructor(db: Database) {
    db.transaction(() => db.exec(CATEGORIES))();
    this.#categories = db.prepare(
      'SELECT category, rows, version FROM temp.category_tally WHERE namespace = ? AND kind = ? ORDER BY category',
    );
  }

  /** A to Z. */
  of(namespaceId: number, kind: Kind): CategoryCount[] {
    return this.#categories.all(namespaceId, KIND_NUMBERS[kind]) as CategoryCount[];
  }
}
