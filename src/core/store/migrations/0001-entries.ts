import type { Database } from 'better-sqlite3';

/**
 * Creates the first schema. Only columns that queries need are stored unencrypted. Key, value, tags and author are encrypted inside
 * `sealed`, which also authenticates every other column of its row.
 */
export function entries(db: Database): void {
  db.exec(`
    CREATE TABLE meta (
      name TEXT PRIMARY KEY,
      value ANY NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- Recognizes the master key and counts the segments opened under it. Has two rows only while a rotation runs.
    CREATE TABLE master_key (
      id BLOB PRIMARY KEY,
      role TEXT NOT NULL UNIQUE CHECK (role IN ('current', 'retiring')),
      proof BLOB NOT NULL,
      source TEXT NOT NULL,
      segment INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- A session has its own namespace. An empty session name means the subject's permanent memory.
    CREATE TABLE namespace (
      id INTEGER PRIMARY KEY,
      subject TEXT NOT NULL,
      session TEXT NOT NULL,
      UNIQUE (subject, session)
    ) STRICT;

    -- kind: 1 fact, 2 history (an earlier version of a fact), 3 audit, 4 cache, 5 pack, 6 activity
    CREATE TABLE entry (
      namespace INTEGER NOT NULL,
      kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 6),
      key_hash BLOB NOT NULL,
      category TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      sealed BLOB NOT NULL
    ) STRICT;
    -- Activity rows (kind 6) are queried only by time, so the key and category indexes leave them out.
    CREATE UNIQUE INDEX entry_key ON entry (namespace, kind, key_hash) WHERE kind <> 2 AND kind <> 6;
    CREATE INDEX entry_version ON entry (namespace, key_hash, updated_at) WHERE kind = 2;
    CREATE INDEX entry_newest ON entry (namespace, kind, updated_at) WHERE kind <> 2;
    CREATE INDEX entry_category ON entry (namespace, kind, category, updated_at) WHERE kind <> 2 AND kind <> 6;
    CREATE INDEX entry_expiry ON entry (namespace, kind, expires_at);

    -- When a backup is restored, tombstones delete forgotten entries again. A tombstone is a keyed hash of one key, or a whole
    -- scope. While the clock is in doubt, the column trusted is the latest time before the doubt; otherwise it equals the column
    -- at.
    CREATE TABLE tombstone (
      at INTEGER NOT NULL,
      trusted INTEGER NOT NULL,
      hash BLOB,
      subject TEXT,
      session TEXT,
      kind INTEGER,
      category TEXT,
      CHECK ((hash IS NULL) <> (subject IS NULL))
    ) STRICT;
    CREATE INDEX tombstone_age ON tombstone (at);

    -- Revoked tokens, stored until they would have expired. Not encrypted, so that they are rejected in every key state.
    CREATE TABLE revoked_token (
      id TEXT PRIMARY KEY,
      expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
  `);
}
