import { dirname } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { openDatabase } from '../../../../src/core/store/database.ts';
import { type Migration, migrations } from '../../../../src/core/store/migrations/index.ts';
import { copyBeforeMigration } from '../../../../src/core/upkeep/backup.ts';
import type { Tell } from '../worker.ts';

/** A typical migration: it adds, moves and removes. The program can be killed after each statement. */
export const STATEMENTS = [
  'ALTER TABLE tombstone ADD COLUMN reason TEXT',
  'CREATE TABLE moved (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT',
  "INSERT INTO moved SELECT name, value FROM meta WHERE name LIKE 'row %'",
  "DELETE FROM meta WHERE name LIKE 'row %'",
  'CREATE INDEX moved_value ON moved (value)',
  "UPDATE moved SET value = value || ', moved'",
  'DROP INDEX tombstone_age',
] as const;
export const ROWS = 2000;

/** Kills the program after the given number of statements, if there are that many. */
const step =
  (dieAfter: number): Migration =>
  (db) => {
    const die = (done: number): void => {
      if (done === dieAfter) process.kill(process.pid, 'SIGKILL');
    };
    die(0);
    for (const [index, statement] of STATEMENTS.entries()) {
      db.exec(statement);
      die(index + 1);
    }
  };

export async function migrateAndDie({ file, dieAfter }: { file: string; dieAfter: number }, tell: Tell): Promise<void> {
  tell({ says: 'ready', pid: process.pid });
  openDatabase(file, [...migrations, step(dieAfter)], (db, version) =>
    copyBeforeMigration(db, dirname(file), version, Date.now()),
  ).close();
}

/** Creates a file of the previous schema version with rows. */
export function makeOld(file: string): void {
  const db = openDatabase(file, migrations);
  const put = db.prepare('INSERT INTO meta (name, value) VALUES (?, ?)');
  db.transaction(() => {
    for (let row = 1; row <= ROWS; row += 1) put.run(`row ${row}`, `value of row ${row}`);
  })();
  db.close();
}

/** The whole content of a database as text. */
export function contents(file: string): string {
  const db = new Sqlite(file);
  try {
    const schema = db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name').all() as {
      type: string;
      name: string;
    }[];
    const tables = schema
      .filter(({ type, name }) => type === 'table' && !name.startsWith('sqlite_'))
      .map(({ name }) => [name, rowsOf(db, name)]);
    return JSON.stringify([db.pragma('user_version', { simple: true }), db.pragma('integrity_check'), schema, tables]);
  } finally {
    db.close();
  }
}

const rowsOf = (db: Database, table: string): unknown[] => db.prepare(`SELECT * FROM ${table} ORDER BY 1`).all();
