import Sqlite from 'better-sqlite3';
import { migrate } from '../../src/core/store/database.ts';
import { migrations } from '../../src/core/store/migrations/index.ts';

/** The schema of an empty memory after all migrations, as SQLite reports it. */
export function renderSchema(): string {
  const db = new Sqlite(':memory:');
  migrate(db, migrations);
  // SQLite stores each statement verbatim, with the indentation from our source. It creates its own tables, named sqlite_, itself.
  const ours = "sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!'";
  const statements = db.prepare<[], string>(`SELECT sql FROM sqlite_schema WHERE ${ours} ORDER BY rowid`).pluck().all();
  db.close();
  const heading = `-- Version ${migrations.length}, written by npm run docs.\n`;
  return [heading, ...statements.map((sql) => `${sql.replaceAll(/^ {4}/gm, '')};\n`)].join('\n');
}
