import type { Database } from 'better-sqlite3';
import { entries } from './0001-entries.ts';
import { shortRows } from './0002-short-rows.ts';
import { vectors } from './0003-vectors.ts';

/** One schema migration. Its position in `migrations`, counted from 1, is the schema version after the migration. */
export type Migration = (db: Database) => void;

/** All migrations, applied in order. Never edit a migration that was released; add another migration instead. */
export const migrations: readonly Migration[] = [entries, shortRows, vectors];

/**
 * Earlier definitions of two indexes in the first files of version 1. These definitions also index activity rows, and
 * every statement works with both definitions.
 */
export const earlierForms: ReadonlySet<string> = new Set([
  'CREATE UNIQUE INDEX entry_key ON entry (namespace, kind, key_hash) WHERE kind <> 2',
  'CREATE INDEX entry_category ON entry (namespace, kind, category, updated_at) WHERE kind <> 2',
]);
