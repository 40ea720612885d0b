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

/** "HDMM" in the header identifies our files. */
export const APPLICATION_ID = 0x48_44_4d_4d;
export const PAGE_BYTES = 4096;
export const MEMORY_FILE = 'memory.db';
/** Earlier versions can corrupt the database when the write-ahead log is reset at the wrong moment. */
const OLDEST_SQLITE = [3, 51, 3] as const;

/**
 * Opens the file, or creates it, and migrates its schema. A file that is damaged, newer than this program, or another program's is
 * refused before a byte of it changes (R-DUR-05).
 */
export function openDatabase(
  file: string,
  steps: readonly Migration[] = migrations,
  backUp?: (db: Database, version: number) => void,
  check: SchemaCheck = 'exact',
): Database {
  if (existsSync(file)) inspect(file, steps.length);
  // SQLite would apply the log of the lost file to the new one.
  else if (hasLog(file)) throw damaged('it is missing, but its log memory.db-wal exists');
  else create(file, steps);
  let db: Database | undefined;
  try {
    db = connect(file, { steps, check });
    migrate(db, steps, backUp);
    return db;
  } catch (error) {
    db?.close();
    // The statements are correct, so the file does not match its header.
    if (errorCodeOf(error) === 'SQLITE_ERROR') throw damaged('its header does not match its contents', error);
    throw diskFailureOf(error, dirname(file))?.failure ?? error;
  }
}

interface ConnectOptions {
  readonly steps?: readonly Migration[];
  readonly check?: SchemaCheck;
}

/** Opens a connection with the settings that every connection must have. */
export function connect(file: string, { steps = migrations, check = 'exact' }: ConnectOptions = {}): Database {
  if (hasLog(file)) flushAgain(`${file}-wal`);
  const db = new Sqlite(file, { fileMustExist: true, timeout: 0 });
  try {
    requireVersion(db);
    db.pragma('trusted_schema = OFF');
    db.pragma('cell_size_check = ON');
    // Before any statement that changes the file or could run a foreign trigger.
    requireOurs(db, steps, check);
    return configure(db);
  } catch (error) {
    closeUnchanged(db, file);
    throw error;
  }
}

/** Opens a database in RAM. No part of it is written to a disk, not even temporary tables. */
export function openInRam(): Database {
  const db = new Sqlite(':memory:');
  requireVersion(db);
  for (const setting of ['trusted_schema = OFF', 'secure_delete = ON', 'temp_store = MEMORY']) db.pragma(setting);
  migrate(db, migrations);
  return db;
}

/** The last writable connection moves the log into the file when it closes. A read-only connection that closes later prevents that. */
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
  if (version === 0 && objects !== 0) throw damaged('its header does not match its contents');
  requireSchema(db, steps, check);
}

function configure(db: Database): Database {
  db.pragma('journal_mode = WAL');
  // In our build, switching to WAL sets this to NORMAL, which loses acknowledged writes at a power cut.
  db.pragma('synchronous = FULL');
  db.pragma('fullfsync = ON');
  db.pragma('checkpoint_fullfsync = ON');
  // Overwrites deleted bytes. FAST would leave whole pages unchanged.
  db.pragma('secure_delete = ON');
  // Temporary tables of statements must not reach the disk.
  db.pragma('temp_store = MEMORY');
  // Connection runs the checkpoints, because it must first read which pages the log holds.
  db.pragma('wal_autocheckpoint = 0');
  requireSettings(db);
  return db;
}

/** SQLite silently ignores a pragma that the build does not know. */
function requireSettings(db: Database): void {
  for (const [name, wanted] of [
    ['journal_mode', 'wal'],
    ['synchronous', 2],
    ['secure_delete', 1],
    ['page_size', PAGE_BYTES],
  ] as const) {
    if (db.pragma(name, { simple: true }) === wanted) continue;
    throw new Failure('invalid_config', `SQLite cannot set ${name} = ${wanted} here. Keep the data folder on a local disk.`);
  }
}

/**
 * Applies the missing migrations, each in a transaction.
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

/** The file gets its name only when it is complete. So an empty or partly written `memory.db` is always damaged. */
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

/** Reads the header without SQLite, which would recover, and so change, the file when it opens it. */
function inspect(file: string, version: number): void {
  const header = Buffer.alloc(100);
  const handle = openSync(file, 'r');
  try {
    if (readSync(handle, header, 0, header.length, 0) < header.length) throw damaged('it has been cut short');
  } finally {
    closeSync(handle);
  }
  if (header.subarray(0, 16).toString('latin1') !== 'SQLite format 3\0') throw damaged('it has no SQLite header');
  if (header.readUInt32BE(68) !== APPLICATION_ID) {
    throw new Failure(
      'store_unavailable',
      'The file memory.db belongs to another program; move it away, or choose another data folder.',
    );
  }
  if (header.readUInt32BE(60) > version) throw newer(header.readUInt32BE(60), version);
  // With a log, the file alone may be incomplete.
  if (hasLog(file)) return;
  const pageSize = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  if (statSync(file).size < header.readUInt32BE(28) * pageSize) throw damaged('it has been cut short');
}

/**
 * Rewrites and flushes the log. After a failed flush the system may cache parts of the log that never reached the disk. SQLite
 * would read them and append commits, and all of these would be lost at a power cut.
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
    throw new Failure('unavailable', `SQLite ${version} can damage a memory. Use version ${OLDEST_SQLITE.join('.')} or later.`);
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
