import type { Database } from 'better-sqlite3';

/**
 * Makes rows shorter. Each author is stored once, and rows contain the author's number. Existing rows stay as they are, because
 * the key can be unavailable during a migration. Such a row becomes short when it is next written, or when the key is rotated.
 */
export function shortRows(db: Database): void {
  db.exec(`
    -- The authors of a namespace's entries: client, interface and token, encrypted. Every entry of an author expires before the
    -- author does. Numbers are random, so that an older copy of a row never names another author.
    CREATE TABLE author (
      id INTEGER PRIMARY KEY,
      namespace INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      sealed BLOB NOT NULL
    ) STRICT;

    -- Activity rows (kind 6) all have the same lifetime, so entry_newest finds the expired ones.
    DROP INDEX entry_expiry;
    CREATE INDEX entry_expiry ON entry (namespace, kind, expires_at) WHERE kind <> 6;

    -- Eight bytes find a row, and no two rows can have the same key. The default category is stored as an empty text.
    DROP INDEX entry_key;
    DROP INDEX entry_category;
    UPDATE entry SET category = '' WHERE category = 'user_facts';
    CREATE UNIQUE INDEX entry_key ON entry (namespace, kind, substr(key_hash, 1, 8)) WHERE kind <> 2 AND kind <> 6;
    CREATE INDEX entry_category ON entry (namespace, kind, category, updated_at) WHERE kind <> 2 AND kind <> 6;
  `);
}
