import type { Database } from 'better-sqlite3';
import { entries } from './0001-entries.ts';

/** One step of the schema. Its position in the list is the version it leads to. */
export type Migration = (db: Database) => void;

/** Applied in order. A step that has shipped is history: correct it with the next one. */
export const migrations: readonly Migration[] = [entries];
