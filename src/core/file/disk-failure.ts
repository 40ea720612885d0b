import { statfsSync } from 'node:fs';
import { Failure } from '../../contract/failure.ts';
import { errorCodeOf } from './files.ts';

/** With fewer free bytes than this, an I/O error without a reason is treated as a full disk. */
const NEARLY_FULL_BYTES = 1024 * 1024;

export interface DiskFailure {
  readonly failure: Failure;
  /** Whether the connection can have cached pages that never reached the disk. The connection must then be replaced. */
  readonly doubtful: boolean;
}

/** The database file cannot be used as a memory. `reason` does not name the file, so that a restore can name the backup. */
export class UnusableFile extends Failure {
  readonly reason: string;

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super('store_unavailable', message, options);
    this.reason = reason;
  }
}

/** Converts an error of SQLite or of the disk to a failure for the caller. Returns undefined for any other error. */
export function diskFailureOf(error: unknown, folder: string): DiskFailure | undefined {
  const code = errorCodeOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') return { failure: diskFull(error), doubtful: false };
  if (code === 'EIO') return { failure: diskFails(error), doubtful: false };
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') return { failure: readOnly(error), doubtful: false };
  if (code === 'SQLITE_FULL') return { failure: diskFull(error), doubtful: false };
  if (code.startsWith('SQLITE_IOERR')) {
    return { failure: nearlyFull(folder) ? diskFull(error) : diskFails(error), doubtful: true };
  }
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return { failure: corrupt(error), doubtful: false };
  if (code.startsWith('SQLITE_READONLY')) return { failure: readOnly(error), doubtful: false };
  if (code.startsWith('SQLITE_CANTOPEN'))
    return { failure: nearlyFull(folder) ? diskFull(error) : readOnly(error), doubtful: true };
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) return { failure: busy(error), doubtful: false };
  return undefined;
}

function nearlyFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize < NEARLY_FULL_BYTES;
  } catch {
    return false;
  }
}

const diskFull = (cause: unknown): Failure =>
  new Failure(
    'disk_full',
    'The disk is full, so nothing was stored. Free some space and try again. Reading and forgetting still work.',
    { cause },
  );

const diskFails = (cause: unknown): Failure =>
  new Failure('store_unavailable', 'The disk reported an error, so the last write may be lost. Check the disk and try again.', {
    cause,
  });

const corrupt = (cause: unknown): Failure =>
  new UnusableFile(
    'it is damaged',
    'The file memory.db is damaged; restore the last backup with: helmdeck-memory restore, or save the readable facts with: helmdeck-memory salvage.',
    { cause },
  );

const readOnly = (cause: unknown): Failure =>
  new Failure(
    'store_unavailable',
    'Helmdeck Memory cannot open the file memory.db for writing; check the permissions of the data folder, and whether its disk is read-only.',
    { cause },
  );

const busy = (cause: unknown): Failure =>
  new Failure('store_unavailable', 'Another program has locked the file memory.db; close that program and try again.', { cause });
