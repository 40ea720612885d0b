import type { Database, Statement } from 'better-sqlite3';
import type { QuotaKind } from './quota.ts';
import { KIND_NUMBERS } from './statements.ts';
import type { Kind, Quota } from './store.ts';

interface CategoryCount {
  readonly category: string;
  readonly rows: number;
  /** Another number after every change in this category, also when it was empty in between. */
  readonly version: number;
}

const { fact, history, pack, activity } = KIND_NUMBERS;
const inCategories = Object.values(KIND_NUMBERS)
  .filter((kind) => kind !== history && kind !== activity)
  .map((kind) => `(${kind})`)
  .join(', ');

/**
 * Counters beside the entries, in memory and gone with the connection. SQLite keeps them by triggers, so they follow every
 * way in which a row may come, go or change, and are taken back with whatever is taken back.
 *
 * They count rows, expired or not: a row that has just expired is still there until the sweep. Whoever asks subtracts those.
 */
const ROWS = `
  CREATE TEMP TABLE tally (
    namespace INTEGER NOT NULL, kind INTEGER NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind)
  ) WITHOUT ROWID;

  INSERT INTO tally SELECT namespace, kind, count(*), sum(length(sealed)) FROM main.entry GROUP BY namespace, kind;

  CREATE TEMP TRIGGER tally_insert AFTER INSERT ON main.entry BEGIN
    INSERT INTO tally VALUES (new.namespace, new.kind, 1, length(new.sealed))
      ON CONFLICT DO UPDATE SET rows = rows + 1, bytes = bytes + excluded.bytes;
  END;
  CREATE TEMP TRIGGER tally_delete AFTER DELETE ON main.entry BEGIN
    UPDATE tally SET rows = rows - 1, bytes = bytes - length(old.sealed)
      WHERE namespace = old.namespace AND kind = old.kind;
  END;
  CREATE TEMP TRIGGER tally_update AFTER UPDATE OF sealed ON main.entry WHEN length(new.sealed) <> length(old.sealed) BEGIN
    UPDATE tally SET bytes = bytes + length(new.sealed) - length(old.sealed)
      WHERE namespace = new.namespace AND kind = new.kind;
  END;
`;

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

/** How much there is: what the quota asks. */
export class UsageCounters {
  readonly #usage: Readonly<Record<QuotaKind, Statement>>;
  readonly #expired: Readonly<Record<QuotaKind, Statement>>;
  readonly #rows: Statement;

  constructor(db: Database) {
    make(db, ROWS);
    const subject = 'namespace IN (SELECT id FROM namespace WHERE subject = @subject)';
    const usage = (kind: number, kinds: string): Statement =>
      db.prepare(
        `SELECT coalesce(sum(iif(kind = ${kind}, rows, 0)), 0) AS facts, coalesce(sum(bytes), 0) AS bytes
           FROM temp.tally WHERE kind IN (${kinds}) AND ${subject}`,
      );
    this.#usage = { fact: usage(fact, `${fact}, ${history}`), pack: usage(pack, `${pack}`) };
    // An expired fact takes all of its versions along; a version may also end before its fact.
    const expiredFacts = db.prepare(
      `SELECT count(*) FILTER (WHERE kind = ${fact}) AS facts, coalesce(sum(length(sealed)), 0) AS bytes FROM (
         SELECT kind, sealed FROM entry WHERE ${subject} AND kind IN (${fact}, ${history}) AND expires_at <= @now
         UNION ALL
         SELECT version.kind, version.sealed FROM entry AS gone JOIN entry AS version
             ON version.namespace = gone.namespace AND version.kind = 2 AND version.key_hash = gone.key_hash
           WHERE gone.${subject} AND gone.kind = ${fact} AND gone.expires_at <= @now AND version.expires_at > @now)`,
    );
    const expiredMemory = db.prepare(
      `SELECT count(*) AS facts, coalesce(sum(length(sealed)), 0) AS bytes FROM entry
         WHERE ${subject} AND kind = ${pack} AND expires_at <= @now`,
    );
    this.#expired = { fact: expiredFacts, pack: expiredMemory };
    this.#rows = db.prepare('SELECT rows FROM temp.tally WHERE namespace = ? AND kind = ?').pluck();
  }

  /** What a subject holds of what it may hold, its sessions included. */
  usage(subject: string, kind: QuotaKind): Quota {
    return this.#usage[kind].get({ subject }) as Quota;
  }

  /** How much of that nobody sees any more: it waits for the sweep. */
  expired(subject: string, kind: QuotaKind, now: number): Quota {
    return this.#expired[kind].get({ subject, now }) as Quota;
  }

  rows(namespaceId: number, kind: Kind): number {
    return (this.#rows.get(namespaceId, KIND_NUMBERS[kind]) as number | undefined) ?? 0;
  }
}

/** How much there is in each category: what an overview asks. */
export class CategoryCounters {
  readonly #categories: Statement;

  constructor(db: Database) {
    make(db, CATEGORIES);
    this.#categories = db.prepare(
      'SELECT category, rows, version FROM temp.category_tally WHERE namespace = ? AND kind = ? ORDER BY category',
    );
  }

  /** A to Z. */
  of(namespaceId: number, kind: Kind): CategoryCount[] {
    return this.#categories.all(namespaceId, KIND_NUMBERS[kind]) as CategoryCount[];
  }
}

/** All or nothing: what an error left half made would be in the way of the next attempt. */
const make = (db: Database, counters: string): void => void db.transaction(() => db.exec(counters))();
