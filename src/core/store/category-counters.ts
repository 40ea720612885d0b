import type { Database, Statement } from 'better-sqlite3';
import { categoryName, KIND_NUMBERS } from './statements.ts';
import type { Kind } from './store.ts';

interface CategoryCount {
  readonly category: string;
  readonly rows: number;
  /** A number that is different after every change in this category, and never repeats. */
  readonly version: number;
}

const { history, activity } = KIND_NUMBERS;
const inCategories = Object.values(KIND_NUMBERS)
  .filter((kind) => kind !== history && kind !== activity)
  .map((kind) => `(${kind})`)
  .join(', ');

/**
 * SQL that creates the tables and triggers of the category counters. These are separate from the usage counters, because
 * creating usage counters reads every row, and creating category counters reads only an index.
 */
const CATEGORIES = `
  CREATE TEMP TABLE category_tally (
    namespace INTEGER NOT NULL, kind INTEGER NOT NULL, category TEXT NOT NULL, rows INTEGER NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, category)
  ) WITHOUT ROWID;
  -- All categories share one number. An empty category has no row here, and must not get an old number when it has entries again.
  CREATE TEMP TABLE change (last INTEGER NOT NULL);

  INSERT INTO change VALUES (0);
  -- Seeks each category in the index and counts its rows, which is twice as fast as GROUP BY. SQLite uses a partial index only if
  -- the query contains its condition on the kind word for word.
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
    -- No index contains activity rows by category. CROSS JOIN makes SQLite read these rows one namespace at a time.
    SELECT namespace, kind, category, count(*), 0 FROM main.namespace CROSS JOIN main.entry ON namespace = id
      WHERE kind = ${activity} AND kind <> ${history} GROUP BY namespace, kind, category;

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

export class CategoryCounters {
  readonly #categories: Statement;

  constructor(db: Database) {
    db.transaction(() => db.exec(CATEGORIES))();
    this.#categories = db.prepare(
      `SELECT ${categoryName('category')} AS category, rows, version FROM temp.category_tally WHERE namespace = ? AND kind = ? ORDER BY 1`,
    );
  }

  /** Returns the categories of a namespace and kind in alphabetical order. */
  of(namespaceId: number, kind: Kind): CategoryCount[] {
    return this.#categories.all(namespaceId, KIND_NUMBERS[kind]) as CategoryCount[];
  }
}
