import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { Failure } from '../../contract/failure.ts';
import { Sqlite } from '../store/sqlite.ts';
import { diskFailureOf } from './disk-failure.ts';
import { errorCodeOf } from './files.ts';

/**
 * Locks a data folder for one process, with an exclusive transaction on a separate database. The operating system releases the
 * lock when the process exits, so a lock is never stale.
 */
export function lockFolder(folder: string): Disposable {
  const file = join(folder, 'lock.db');
  let db: Database | undefined;
  try {
    createPrivately(file);
    // Wait up to 200 ms, because two processes that start at the same time can block each other briefly before one gets the lock.
    db = new Sqlite(file, { timeout: 200 });
    // Keep the journal in RAM, so that locking works on a full disk.
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
      'Another Helmdeck Memory process is using this data folder; use that process, stop it, or choose another data folder.',
      { cause },
    );
  }
  if (code === 'SQLITE_NOTADB') {
    return new Failure(
      'store_unavailable',
      'The file lock.db in the data folder is damaged; it contains no data, so delete it and restart Helmdeck Memory.',
      { cause },
    );
  }
  return (
    diskFailureOf(cause, folder)?.failure ??
    new Failure(
      'invalid_config',
      'Helmdeck Memory cannot write to the data folder; check the permissions of the folder and its disk.',
      { cause },
    )
  );
}

/** Creates a file that only the owner can read. SQLite would create it with the permissions of the umask. */
function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error;
  }
}
