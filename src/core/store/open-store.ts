import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { asFailure } from '../../contract/failure.ts';
import { findKeys } from '../crypto/find-keys.ts';
import { KeyKeeper } from '../crypto/key-keeper.ts';
import type { KeySources } from '../crypto/keys/key-source.ts';
import { diskFailureOf } from '../file/disk-failure.ts';
import { DiskReserve, FreeSpace, type StatDisk } from '../file/disk-space.ts';
import { lockFolder } from '../file/folder.ts';
import { prepareFolder } from '../file/prepare-folder.ts';
import type { Clock } from '../time/clock.ts';
import { copyBeforeMigration } from '../upkeep/backup.ts';
import { removeDrafts } from '../upkeep/copies.ts';
import { requireFileHere, requireNoMove } from '../upkeep/moved.ts';
import { Connection } from './connection.ts';
import { MEMORY_FILE, openDatabase } from './database.ts';
import { migrations } from './migrations/index.ts';
import type { DatabaseOptions } from './postgres/database.ts';
import { RamStore } from './ram-store.ts';
import { SqliteStore } from './sqlite-store.ts';
import type { MemoryStore, Quota } from './store.ts';

export interface StoreOptions {
  readonly folder: string;
  /** A database server that stores the entries. If absent, a file in the data folder stores them. */
  readonly database?: DatabaseOptions | undefined;
  readonly clock: Clock;
  readonly sources: KeySources;
  /** Quota of each subject. If absent, storage is unlimited. */
  readonly quota?: Quota;
  readonly statDisk?: StatDisk;
}

/**
 * Opens the memory of a data folder or of a database server. Without a server, the memory is only in RAM if there is neither a key
 * nor a database file (R-KEY-03). An existing memory needs the key that encrypted it (R-KEY-04).
 */
export async function openStore(options: StoreOptions): Promise<MemoryStore> {
  const { folder, database, clock, sources, quota } = options;
  prepareFolder(folder);
  const lock = lockFolder(folder);
  try {
    removeDrafts(folder);
    if (database) return await openOnServer({ ...options, database }, lock);
    requireNoMove(folder);
    const made = randomBytes(8).toString('hex');
    if (!existsSync(join(folder, MEMORY_FILE)) && (await nothingToSealWith(sources(made)))) {
      lock[Symbol.dispose]();
      return new RamStore(clock, quota);
    }
    return await openKept(options, lock, made);
  } catch (error) {
    lock[Symbol.dispose]();
    throw diskFailureOf(error, folder)?.failure ?? error;
  }
}

/** Imports the driver only here, because most memories are files. */
async function openOnServer(
  { folder, database, clock, sources, quota }: StoreOptions & { readonly database: DatabaseOptions },
  lock: Disposable,
): Promise<MemoryStore> {
  const [{ PostgresStore }, { DatabaseClock }] = await Promise.all([
    import('./postgres/postgres-store.ts'),
    import('./postgres/database-clock.ts'),
  ]);
  return PostgresStore.open({ folder, database, clock: new DatabaseClock(clock), sources, lock, ...(quota && { quota }) });
}

async function openKept(
  { folder, clock, sources, quota, statDisk: look }: StoreOptions,
  lock: Disposable,
  made: string,
): Promise<SqliteStore> {
  const file = join(folder, MEMORY_FILE);
  const backUp = (db: Database, version: number): void => copyBeforeMigration(db, folder, version, clock.now());
  const reserve = new DiskReserve(folder);
  const connection = new Connection(
    file,
    openInAnySpace(() => openDatabase(file, migrations, backUp), reserve),
  );
  try {
    requireFileHere((name) => connection.meta(name));
    if (connection.meta('memory') === undefined) connection.setMeta('memory', made);
    const keys = new KeyKeeper(connection, clock, sources(String(connection.meta('memory'))));
    await keys.unlock();
    const freeSpace = new FreeSpace(folder, clock, look);
    return new SqliteStore({ connection, keys, clock, folder, reserve, lock, freeSpace, ...(quota && { quota }) });
  } catch (error) {
    connection.close();
    throw error;
  }
}

/**
 * Opens the database. If the disk is full, releases the reserve, so that SQLite has space for its other files, and tries again.
 * Reading and forgetting then still work.
 */
function openInAnySpace<T>(open: () => T, reserve: DiskReserve): T {
  try {
    return open();
  } catch (error) {
    if (asFailure(error).code !== 'disk_full') throw error;
    reserve.release();
    const opened = open();
    reserve.refill();
    return opened;
  }
}

async function nothingToSealWith(sources: ReturnType<KeySources>): Promise<boolean> {
  const found = await findKeys([], sources);
  return found.at === 'none' && (found.unreadable || !sources.some((source) => source.createsOnFirstStart));
}
