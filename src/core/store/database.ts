import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { Database } from 'better-sqlite3';
import { Failure } from '../../contract/failure.ts';
import { diskFailureOf } from '../file/disk-failure.ts';
import { errorCodeOf, syncFile, syncFolder } from '../file/files.ts';
import { type Migration, migrations } from './migrations/index.ts';
import { requireSchema, type SchemaCheck } from './schema.ts';
import { Sqlite } from './sqlite.ts';

/** "HDMM" in the file's header: this database is ours. */
export const APPLICATION_ID = 0x48_44_4d_4d;
export const PAGE_BYTES = 4096;
export const MEMORY_FILE = 'memory.db';
/** Versions before it can corrupt a write-ahead log that is reset at the wrong moment. */
const OLDEST_SQLITE = [3, 51, 3] as const;

/**
 * Opens the file, making it on first use, and brings its schema up to date.
 * A file that is not ours, damaged or newer than we are is refused before a byte of it changes (R-DUR).
 */
export function openDatabase(
  file: string,
  steps: readonly Migration[] = migrations,
  backUp?: (db: Database, version: number) => void,
  check: SchemaCheck = 'exact',
): Database {
  if (existsSync(file)) inspect(file, steps.length);
  // SQLite would replay the log of the lost file into the new one.
  else if (hasLog(file)) throw damaged('it is missing while its log memory.db-wal is still there');
  else create(file, steps);
  let db: Database | undefined;
  try {
    db = connect(file, { steps, check });
    migrate(db, steps, backUp);
    return db;
  } catch (error) {
    db?.close();
    // What we ask is right; so the file is not what its header says.
    if (errorCodeOf(error) === 'SQLITE_ERROR') throw damaged('its header does not fit what is in it', error);
    throw diskFailureOf(error, dirname(file))?.told ?? error;
  }
}

interface ConnectOptions {
  readonly steps?: readonly Migration[];
  readonly check?: SchemaCheck;
}

/** A connection as every part of the program must have it. */
export function connect(file: string, { steps = migrations, check = 'exact' }: ConnectOptions = {}): Database {
  if (hasLog(file)) flushAgain(`${file}-wal`);
  const db = new Sqlite(file, { fileMustExist: true, timeout: 0 });
  try {
    requireVersion(db);
    db.pragma('trusted_schema = OFF');
    db.pragma('cell_size_check = ON');
    // Before the first statement that changes the file, and before any statement that a foreign trigger could act on.
    requireOurs(db, steps, check);
    return settled(db);
  } catch (error) {
    closeUnchanged(db, file);
    throw error;
  }
}

/** A database in RAM. Nothing of it reaches a disk, not even temporary tables. */
export function openInRam(): Database {
  const db = new Sqlite(':memory:');
  requireVersion(db);
  for (const setting of ['trusted_schema = OFF', 'secure_delete = ON', 'temp_store = MEMORY']) db.pragma(setting);
  migrate(db, migrations);
  return db;
}

/** The last writable connection to close moves the log into the file. A read-only connection that closes later prevents that. */
function closeUnchanged(db: Database, file: string): void {
  let last: Database | undefined;
  try {
    if (hasLog(file)) last = new Sqlite(file, { readonly: true, fileMustExist: true });
    last?.prepare('SELECT count(*) FROM sqlite_schema').get();
  } catch {
    // A file that SQLite cannot read is not changed by closing it either.
  } finally {
    db.close();
    last?.close();
  }
}

function requireOurs(db: Database, steps: readonly Migration[], check: SchemaCheck): void {
  const version = db.pragma('user_version', { simple: true });
  const objects = db.prepare('SELECT count(*) FROM main.sqlite_schema').pluck().get();
  if (version === 0 && objects !== 0) throw damaged('its header does not fit what is in it');
  requireSchema(db, steps, check);
}

function settled(db: Database): Database {
  db.pragma('journal_mode = WAL');
  // Switching to WAL lowers this to NORMAL in the build we use, and NORMAL loses acknowledged writes at a power cut.
  db.pragma('synchronous = FULL');
  db.pragma('fullfsync = ON');
  db.pragma('checkpoint_fullfsync = ON');
  // Deleted bytes are overwritten, not only unlinked. FAST would leave whole pages as they were.
  db.pragma('secure_delete = ON');
  // Statements that need scratch space must not leave it on disk.
  db.pragma('temp_store = MEMORY');
  // The log is moved into the file by whoever writes, who must see first which pages it holds.
  db.pragma('wal_autocheckpoint = 0');
  requireSettings(db);
  return db;
}

/** A pragma that a build does not know is silently ignored, and with it the promise that rests on it. */
function requireSettings(db: Database): void {
  for (const [name, wanted] of [
    ['journal_mode', 'wal'],
    ['synchronous', 2],
    ['secure_delete', 1],
    ['page_size', PAGE_BYTES],
  ] as const) {
    if (db.pragma(name, { simple: true }) === wanted) continue;
    throw new Failure('invalid_config', `SQLite does not take ${name} = ${wanted} here; keep the data folder on a local disk.`);
  }
}

/**
 * Applies the steps that are missing, each whole or not at all.
 * @internal
 */
export function migrate(db: Database, steps: readonly Migration[], backUp?: (db: Database, version: number) => void): void {
  const from = db.pragma('user_version', { simple: true }) as number;
  if (from > steps.length) throw newer(from, steps.length);
  if (from > 0 && from < steps.length) backUp?.(db, from);
  for (const [index, apply] of steps.entries()) {
    if (index < from) continue;
    db.transaction(() => {
      apply(db);
      db.pragma(`user_version = ${index + 1}`);
    })();
  }
}

/**
 * The name appears only when the file behind it is complete, so an empty or half written `memory.db` is always
 * damage and never a first start.
 */
function create(file: string, steps: readonly Migration[]): void {
  const draft = `${file}.new`;
  for (const leftover of [draft, `${draft}-journal`]) rmSync(leftover, { force: true });
  closeSync(openSync(draft, 'wx', 0o600));
  const db = new Sqlite(draft);
  try {
    db.pragma(`page_size = ${PAGE_BYTES}`);
    db.pragma(`application_id = ${APPLICATION_ID}`);
    migrate(db, steps);
  } finally {
    db.close();
  }
  syncFile(draft);
  renameSync(draft, file);
  syncFolder(dirname(file));
}

/** Reads the header as plain bytes: SQLite itself would already recover, and so change, what it opens. */
function inspect(file: string, version: number): void {
  const header = Buffer.alloc(100);
  const handle = openSync(file, 'r');
  try {
    if (readSync(handle, header, 0, header.length, 0) < header.length) throw damaged('it has been cut short');
  } finally {
    closeSync(handle);
  }
  if (header.subarray(0, 16).toString('latin1') !== 'SQLite format 3\0') throw damaged('its beginning is not that of a database');
  if (header.readUInt32BE(68) !== APPLICATION_ID) {
    throw new Failure(
      'store_unavailable',
      'The file memory.db belongs to another program; move it away, or choose another data folder.',
    );
  }
  if (header.readUInt32BE(60) > version) throw newer(header.readUInt32BE(60), version);
  // While a log stands beside it, the file alone need not be whole.
  if (hasLog(file)) return;
  const pageSize = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  if (statSync(file).size < header.readUInt32BE(28) * pageSize) throw damaged('it has been cut short');
}

/**
 * After a flush that failed, the system may hold parts of the log in memory as if they were on the disk. SQLite would read
 * them, go on behind them, and everything from there on would be lost with the power. Written again, they are flushed.
 */
function flushAgain(log: string): void {
  const handle = openSync(log, 'r+');
  try {
    const bytes = readFileSync(handle);
    for (let at = 0; at < bytes.length;) at += writeSync(handle, bytes, at, bytes.length - at, at);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

const hasLog = (file: string): boolean => existsSync(`${file}-wal`) && statSync(`${file}-wal`).size > 0;

function requireVersion(db: Database): void {
  const version = db.prepare('SELECT sqlite_version()').pluck().get() as string;
  const parts = version.split('.').map(Number);
  const at = OLDEST_SQLITE.findIndex((wanted, index) => parts[index] !== wanted);
  if (at >= 0 && (parts[at] ?? 0) < (OLDEST_SQLITE[at] ?? 0)) {
    throw new Failure('unavailable', `SQLite ${version} can damage a memory; use one from ${OLDEST_SQLITE.join('.')} on.`);
  }
}

export const damaged = (how: string, cause?: unknown): Failure =>
  new Failure(
    'store_unavailable',
    `The file memory.db is damaged: ${how}; restore the last backup with: helmdeck-memory restore.`,
    { cause },
  );

const newer = (found: number, known: number): Failure =>
  new Failure(
    'store_unavailable',
    `This memory was written by a newer Helmdeck Memory (schema ${found}, this program knows ${known}); update the program. Nothing was changed.`,
  );
