import type { Database } from 'better-sqlite3';

/**
 * Adds the vectors of facts, which find facts by their meaning. Vectors are encrypted like entries, because the text of a fact can be
 * reconstructed from its vector.
 */
export function vectors(db: Database): void {
  db.exec(`
    -- row: the rowid of the fact. model: a number derived from the id of the model that made the vector.
    CREATE TABLE vector (
      row INTEGER PRIMARY KEY,
      namespace INTEGER NOT NULL,
      model INTEGER NOT NULL,
      sealed BLOB NOT NULL
    ) STRICT;
    CREATE INDEX vector_model ON vector (namespace, model);

    -- A vector is deleted together with its fact, and when the fact changes. A renewal does not change updated_at, so it keeps the
    -- vector.
    CREATE TRIGGER vector_of_deleted AFTER DELETE ON entry WHEN old.kind = 1 BEGIN
      DELETE FROM vector WHERE row = old.rowid;
    END;
    CREATE TRIGGER vector_of_changed AFTER UPDATE OF updated_at ON entry WHEN old.kind = 1 AND new.updated_at <> old.updated_at BEGIN
      DELETE FROM vector WHERE row = old.rowid;
    END;
  `);
}
