import type { Database } from 'better-sqlite3';
import { entries } from './0001-entries.ts';

/** One step of the schema. Its position in the list is the version it leads to. */
export type Migration = (db: Database) => void;

/** Applied in order. A step that has shipped is history: correct it with the next one. */
export const migrations: readonly Migration[] = [entries];

/**
 * Earlier forms of two indexes, found in the first files of version 1. They index activity rows as well, and every statement
 * works with both forms.
 */
export const earlierForms: ReadonlySet<string> = new Set([
  'CREATE UNIQUE INDEX entry_key ON entry (namespace, kind, key_hash) WHERE kind <> 2',
  'CREATE INDEX entry_category ON entry (namespace, kind, category, updated_at) WHERE kind <> 2',
]);
