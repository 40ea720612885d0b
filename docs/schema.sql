-- Version 3, written by npm run docs.

CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE master_key (
  id BLOB PRIMARY KEY,
  role TEXT NOT NULL UNIQUE CHECK (role IN ('current', 'retiring')),
  proof BLOB NOT NULL,
  source TEXT NOT NULL,
  segment INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE namespace (
  id INTEGER PRIMARY KEY,
  subject TEXT NOT NULL,
  session TEXT NOT NULL,
  UNIQUE (subject, session)
) STRICT;

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

CREATE INDEX entry_version ON entry (namespace, key_hash, updated_at) WHERE kind = 2;

CREATE INDEX entry_newest ON entry (namespace, kind, updated_at) WHERE kind <> 2;

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

CREATE TABLE revoked_token (
  id TEXT PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE author (
  id INTEGER PRIMARY KEY,
  namespace INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  sealed BLOB NOT NULL
) STRICT;

CREATE INDEX entry_expiry ON entry (namespace, kind, expires_at) WHERE kind <> 6;

CREATE UNIQUE INDEX entry_key ON entry (namespace, kind, substr(key_hash, 1, 8)) WHERE kind <> 2 AND kind <> 6;

CREATE INDEX entry_category ON entry (namespace, kind, category, updated_at) WHERE kind <> 2 AND kind <> 6;

CREATE TABLE vector (
  row INTEGER PRIMARY KEY,
  namespace INTEGER NOT NULL,
  model INTEGER NOT NULL,
  sealed BLOB NOT NULL
) STRICT;

CREATE INDEX vector_model ON vector (namespace, model);

CREATE TRIGGER vector_of_deleted AFTER DELETE ON entry WHEN old.kind = 1 BEGIN
  DELETE FROM vector WHERE row = old.rowid;
END;

CREATE TRIGGER vector_of_changed AFTER UPDATE OF updated_at ON entry WHEN old.kind = 1 AND new.updated_at <> old.updated_at BEGIN
  DELETE FROM vector WHERE row = old.rowid;
END;
