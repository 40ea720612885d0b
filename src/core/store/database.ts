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
import { diskFailureOf, UnusableFile } from '../file/disk-failure.ts';
import { errorCodeOf, syncFile, syncFolder } from '../file/files.ts';
import { type Migration, migrations } from './migrations/index.ts';
import { requireSchema, type SchemaCheck } from './schema.ts';
import { Sqlite } from './sqlite.ts';

/** Application id in the SQLite header ("HDMM"), which identifies memory databases. */
export const APPLICATION_ID = 0x48_44_4d_4d;
export const PAGE_BYTES = 4096;
export const MEMORY_FILE = 'memory.db';
/** Minimum SQLite version. Earlier versions can corrupt the database if the write-ahead log is reset at the wrong moment. */
const OLDEST_SQLITE = [3, 51, 3] as const;

/**
 * Opens or creates the database file and migrates its schema. A file that is damaged, newer than this program, or of another
 * program is rejected before any byte of the file changes (R-DUR-05).
 */
export function openDatabase(
  file: string,
  steps: readonly Migration[] = migrations,
  backUp?: (db: Database, version: number) => void,
  check: SchemaCheck = 'exact',
): Database {
  if (existsSync(file)) inspect(file, steps.length);
  // Reject, because SQLite would apply the log of the lost file to a new file.
  else if (hasLog(file)) throw damaged('it is missing, but its log memory.db-wal exists');
  else create(file, steps);
  let db: Database | undefined;
  try {
    db = connect(file, { steps, check });
    migrate(db, steps, backUp);
    return db;
  } catch (error) {
    db?.close();
    // The statements are known to be correct, so the cause must be a file that does not match its header.
    if (errorCodeOf(error) === 'SQLITE_ERROR') throw damaged('its header does not match its contents', error);
    throw diskFailureOf(error, dirname(file))?.failure ?? error;
  }
}

interface ConnectOptions {
  readonly steps?: readonly Migration[];
  readonly check?: SchemaCheck;
}

/** Opens a connection and applies the settings that every connection needs. */
export function connect(file: string, { steps = migrations, check = 'exact' }: ConnectOptions = {}): Database {
  if (hasLog(file)) flushAgain(`${file}-wal`);
  const db = new Sqlite(file, { fileMustExist: true, timeout: 0 });
  try {
    requireVersion(db);
    db.pragma('trusted_schema = OFF');
    db.pragma('cell_size_check = ON');
    // Check before any statement that changes the file or that could run a trigger of another program.
    requireOurs(db, steps, check);
    return configure(db);
  } catch (error) {
    closeUnchanged(db, file);
    throw error;
  }
}

/** Opens a file of any known schema version for reading, without migrating it. Ignores all objects except our tables. */
export function openUnmigrated(file: string): Database {
  inspect(file, migrations.length);
  const db = connect(file, { check: 'our tables' });
  addMissingTables(db);
  return db;
}

/**
 * Replaces tables that are missing in an older file, or damaged, by empty tables of this connection. The usual statements can then
 * read everything else.
 */
export function addMissingTables(db: Database): void {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version > migrations.length) throw newer(version, migrations.length);
  try {
    db.prepare('SELECT sum(length(sealed)) FROM author').get();
  } catch {
    db.exec('CREATE TEMP TABLE author (id INTEGER PRIMARY KEY, namespace INTEGER, expires_at INTEGER, sealed BLOB)');
  }
  try {
    db.prepare('SELECT count(*) FROM vector').get();
  } catch {
    db.exec('CREATE TEMP TABLE vector (row INTEGER PRIMARY KEY, namespace INTEGER, model INTEGER, sealed BLOB)');
  }
}

/** Opens a database in RAM. Nothing is written to a disk, not even temporary tables. */
export function openInRam(): Database {
  const db = new Sqlite(':memory:');
  requireVersion(db);
  for (const setting of ['trusted_schema = OFF', 'secure_delete = ON', 'temp_store = MEMORY']) db.pragma(setting);
  migrate(db, migrations);
  return db;
}

/**
 * Closes a connection without changing the file. The last writable connection would move the log into the file when it closes; a
 * read-only connection that closes later prevents this.
 */
function closeUnchanged(db: Database, file: string): void {
  let last: Database | undefined;
  try {
    if (hasLog(file)) last = new Sqlite(file, { readonly: true, fileMustExist: true });
    last?.prepare('SELECT count(*) FROM sqlite_schema').get();
  } catch {
    // Closing a file that SQLite cannot read does not change the file either.
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
  // In this SQLite build, switching to WAL sets `synchronous` to NORMAL, which loses acknowledged writes in a power failure.
  db.pragma('synchronous = FULL');
  db.pragma('fullfsync = ON');
  db.pragma('checkpoint_fullfsync = ON');
  // Overwrite deleted bytes with zeros. The setting FAST would leave whole deleted pages unchanged.
  db.pragma('secure_delete = ON');
  // Temporary tables must not reach the disk.
  db.pragma('temp_store = MEMORY');
  // `Connection` runs the checkpoints, because it must first read which pages are in the log.
  db.pragma('wal_autocheckpoint = 0');
  requireSettings(db);
  return db;
}

/** Checks that the settings took effect, because SQLite silently ignores a pragma that the build does not support. */
function requireSettings(db: Database): void {
  for (const [name, wanted] of [
    ['journal_mode', 'wal'],
    ['synchronous', 2],
    ['secure_delete', 1],
    ['page_size', PAGE_BYTES],
  ] as const) {
    if (db.pragma(name, { simple: true }) === wanted) continue;
    throw new Failure(
      'invalid_config',
      `SQLite cannot set ${name} = ${wanted} in this data folder. Move the data folder to a local disk.`,
    );
  }
}

/**
 * Applies the missing migrations, each in its own transaction.
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
 * Creates the database under a temporary name and renames the complete file. So an empty or incomplete `memory.db` can only be a
 * damaged file.
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
    // Later migrations replace parts of the first schema. Their remnants would be purged at the next start, which changes the file.
    db.exec('VACUUM');
  } finally {
    db.close();
  }
  syncFile(draft);
  renameSync(draft, file);
  syncFolder(dirname(file));
}

/** Checks the file header without SQLite, because SQLite would recover, and so change, the file when it opens the file. */
function inspect(file: string, version: number): void {
  const header = Buffer.alloc(100);
  const handle = openSync(file, 'r');
  try {
    if (readSync(handle, header, 0, header.length, 0) < header.length) throw damaged('it is truncated');
  } finally {
    closeSync(handle);
  }
  if (header.subarray(0, 16).toString('latin1') !== 'SQLite format 3\0') throw damaged('it has no SQLite header');
  if (header.readUInt32BE(68) !== APPLICATION_ID) {
    throw new UnusableFile(
      'it belongs to another program',
      'The file memory.db belongs to another program; move the file to another folder, or choose another data folder.',
    );
  }
  if (header.readUInt32BE(60) > version) throw newer(header.readUInt32BE(60), version);
  // Do not check the size if there is a log, because some pages may be only in the log.
  if (hasLog(file)) return;
  const pageSize = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  if (statSync(file).size < header.readUInt32BE(28) * pageSize) throw damaged('it is truncated');
}

/**
 * Rewrites and flushes the log. After an earlier failed flush, the system cache can contain parts of the log that never reached
 * the disk. SQLite would read these parts and append commits to them, and a power failure would lose both.
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
    throw new Failure('unavailable', `SQLite ${version} can corrupt a memory. Use SQLite ${OLDEST_SQLITE.join('.')} or later.`);
  }
}

export const damaged = (how: string, cause?: unknown): Failure =>
  new UnusableFile(how, `The file memory.db is damaged: ${how}; restore the last backup with: helmdeck-memory restore.`, {
    cause,
  });

const newer = (found: number, known: number): Failure =>
  new UnusableFile(
    `it was written by a newer version of Helmdeck Memory (schema ${found}; this version supports up to ${known})`,
    `This memory was written by a newer version of Helmdeck Memory (schema ${found}; this version supports up to ${known}); update Helmdeck Memory. Nothing was changed.`,
  );
