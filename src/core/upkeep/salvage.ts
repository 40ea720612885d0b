import { chmodSync, closeSync, copyFileSync, existsSync, openSync, readSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { KeyKeeper } from '../crypto/key-keeper.ts';
import type { KeySources } from '../crypto/keys/key-source.ts';
import { errorCodeOf } from '../file/files.ts';
import { lockFolder } from '../file/folder.ts';
import { Connection, type EntryRow } from '../store/connection.ts';
import { addMissingTables, connect, damaged, MEMORY_FILE, PAGE_BYTES } from '../store/database.ts';
import { namespaceOf } from '../store/forgetting.ts';
import { SealedRows } from '../store/sealed-rows.ts';
import { KIND_BY_NUMBER } from '../store/statements.ts';
import type { Entry, Namespace } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { removeDatabase, removeDrafts } from './copies.ts';

const ROWS_AT_ONCE = 200;
/** Largest plausible database size in bytes. A larger size in the file header is ignored. */
const MAX_PLAUSIBLE_BYTES = 64 * 1024 ** 3;
/** Number of row numbers to try after the last readable row if no readable index contains the last row number. */
const MAX_GAP = 200_000;

interface SalvageOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly sources: KeySources;
  readonly subject: string;
}

export interface SalvageResult {
  /** Unexpired facts of the subject that have a valid seal. */
  readonly facts: Iterable<Entry>;
  /** Returns the number of rows of any kind with a broken seal. Final when all facts have been read. */
  readonly broken: () => number;
  /** Returns whether a part of the file could not be read at all. */
  readonly unreadable: () => boolean;
}

type Found = EntryRow & { readonly kind: number; readonly namespace: number };

/**
 * Reads the intact rows of a damaged file, one by one, and trusts only rows with a valid seal (R-DUR-06). Works on a copy of the
 * file.
 */
export async function salvage<T>(
  { folder, clock, sources, subject }: SalvageOptions,
  use: (salvaged: SalvageResult) => Promise<T>,
): Promise<T> {
  const file = join(folder, MEMORY_FILE);
  if (!existsSync(file)) throw new Failure('not_found', 'There is no memory in this data folder, so there is nothing to save.');
  using _lock = lockFolder(folder);
  const draft = join(folder, 'memory.salvaging.db');
  removeDrafts(folder);
  try {
    const connection = opened(file, draft);
    try {
      const keys = new KeyKeeper(connection, clock, sources(String(connection.meta('memory'))));
      await keys.unlock();
      keys.requireKeys();
      const rows = new SealedRows(connection, keys);
      const holes = { any: false };
      const facts = factsOf(connection, rows, { subject }, { now: clock.now(), holes });
      return await use({ facts, broken: () => rows.brokenCount, unreadable: () => holes.any });
    } finally {
      connection.close();
    }
  } finally {
    removeDatabase(draft);
  }
}

/** Copies the damaged file and opens the copy. SQLite requires an intact header and a file as long as the header says. */
function opened(file: string, draft: string): Connection {
  try {
    copyFileSync(file, draft);
    chmodSync(draft, 0o600);
    if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${draft}-wal`);
    // Extend a truncated file with zeros, which contain no rows.
    const bytes = databaseBytes(draft);
    if (statSync(draft).size < bytes) truncateSync(draft, bytes);
    // Do not check other tables, because only the memory's own tables are read, and only rows with a valid seal are trusted.
    const db = connect(draft, { check: 'our tables' });
    addMissingTables(db);
    return new Connection(draft, db);
  } catch (cause) {
    throw damaged('its header cannot be read, so no facts can be saved', cause);
  }
}

/** Returns the database length in the file header, or 0 if that length is implausible. */
function databaseBytes(file: string): number {
  const header = Buffer.alloc(100);
  const handle = openSync(file, 'r');
  try {
    readSync(handle, header, 0, header.length, 0);
  } finally {
    closeSync(handle);
  }
  const bytes = header.readUInt32BE(28) * PAGE_BYTES;
  return bytes <= MAX_PLAUSIBLE_BYTES ? bytes : 0;
}

function* factsOf(
  connection: Connection,
  rows: SealedRows,
  whose: Namespace,
  { now, holes }: { now: number; holes: { any: boolean } },
): Generator<Entry> {
  const namespaces = namespacesOf(connection);
  for (const row of rowsOf(connection, holes)) {
    if (row.expires_at <= now) continue;
    const namespace = namespaces.get(row.namespace);
    // If the namespace list is damaged, try the requested subject: the seal opens only if the row belongs to it.
    const entry = rows.open(namespace ?? whose, KIND_BY_NUMBER.get(row.kind) ?? 'fact', row);
    const theirs = !namespace || (namespace.subject === whose.subject && namespace.session === undefined);
    if (entry && theirs && KIND_BY_NUMBER.get(row.kind) === 'fact') yield entry;
  }
}

function namespacesOf(connection: Connection): ReadonlyMap<number, Namespace> {
  try {
    return new Map(connection.namespaces().map((row) => [row.id, namespaceOf(row)]));
  } catch (error) {
    if (isDamage(error)) return new Map();
    throw error;
  }
}

/** Reads rows in slices, and single rows where a slice cannot be read. */
function* rowsOf(connection: Connection, holes: { any: boolean }): Generator<Found> {
  const { rowsAfter, rowById, lastByExpiry, lastByChange, lastVersion } = connection.sql;
  const read = (statement: typeof rowsAfter, ...given: number[]): Found[] | undefined => {
    try {
      return statement.all(...given) as Found[];
    } catch (error) {
      if (!isDamage(error)) throw error;
      holes.any = true;
      return undefined;
    }
  };
  let last = 0;
  let lastIndexed: number | undefined;
  for (let place = 0; ;) {
    const slice = read(rowsAfter, place, ROWS_AT_ONCE);
    if (slice) {
      const end = slice.at(-1)?.row;
      if (end === undefined) return;
      yield* slice;
      place = last = end;
      continue;
    }
    lastIndexed ??= lastIn(lastByExpiry, lastByChange, lastVersion);
    // The indexes can be damaged too, so use them only to end the search earlier and never to skip rows.
    const farthest = last + MAX_GAP;
    if (place >= (lastIndexed > last ? Math.min(lastIndexed, farthest) : farthest)) return;
    for (const until = place + ROWS_AT_ONCE; place < until; place += 1) {
      // Look up each row by number, because a scan to the next row can cross a damaged page.
      const [row] = read(rowById, place + 1) ?? [];
      if (!row) continue;
      yield row;
      last = row.row;
    }
  }
}

function lastIn(...indexes: readonly Connection['sql']['rowsAfter'][]): number {
  const rows = indexes.map((index) => {
    try {
      return Number(index.get());
    } catch (error) {
      if (isDamage(error)) return 0;
      throw error;
    }
  });
  return Math.max(...rows);
}

const isDamage = (error: unknown): boolean => /^SQLITE_(?:CORRUPT|NOTADB|IOERR)/.test(errorCodeOf(error));
