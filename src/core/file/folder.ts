import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { Failure } from '../../contract/failure.ts';
import { Sqlite } from '../store/sqlite.ts';
import { diskFailureOf } from './disk-failure.ts';
import { errorCodeOf } from './files.ts';

/**
 * One process per data folder, for life: an exclusive transaction on a database of its own. The operating system
 * ends it with the process, however that ends, so there is never a stale lock (R-DUR).
 */
export function lockFolder(folder: string): Disposable {
  const file = join(folder, 'lock.db');
  let db: Database | undefined;
  try {
    createPrivately(file);
    // Two that start at once may hold each other off for a moment; one of them gets it.
    db = new Sqlite(file, { timeout: 200 });
    // Nothing is ever written to it, and a full disk must not keep anybody out.
    db.pragma('journal_mode = MEMORY');
    db.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    db?.close();
    throw refused(cause, folder);
  }
  const held = db;
  return { [Symbol.dispose]: () => held.close() };
}

function refused(cause: unknown, folder: string): Failure {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (code === 'SQLITE_BUSY') {
    return new Failure(
      'unavailable',
      'Another Helmdeck Memory is using this data folder; use that one, close it, or choose another folder.',
      { cause },
    );
  }
  if (code === 'SQLITE_NOTADB') {
    return new Failure(
      'store_unavailable',
      'The file lock.db in the data folder is damaged; it holds nothing, so delete it and start again.',
      { cause },
    );
  }
  return (
    diskFailureOf(cause, folder)?.told ??
    new Failure('invalid_config', 'The data folder cannot be written; check its permissions and its disk.', { cause })
  );
}

/** SQLite would make it with whatever the umask allows. */
function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error;
  }
}
