import { chmodSync, closeSync, copyFileSync, existsSync, openSync, readSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { KeyKeeper } from '../crypto/key-keeper.ts';
import { errorCodeOf } from '../file/files.ts';
import { lockFolder } from '../file/folder.ts';
import { Connection, type EntryRow } from '../store/connection.ts';
import { connect, damaged, MEMORY_FILE, PAGE_BYTES } from '../store/database.ts';
import { namespaceOf } from '../store/forgetting.ts';
import { migrations } from '../store/migrations/index.ts';
import type { KeySources } from '../store/open-store.ts';
import { SealedRows } from '../store/sealed-rows.ts';
import { KIND_BY_NUMBER } from '../store/statements.ts';
import type { Entry, Namespace } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { removeDatabase, removeDrafts } from './copies.ts';

const ROWS_AT_ONCE = 200;
/** The largest size in a file header that is believed. */
const MOST_BYTES = 64 * 1024 ** 3;
/** How many row numbers to try after the last readable row, where no index tells the last one. */
const FAR = 200_000;

interface SalvageOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly sources: KeySources;
  readonly subject: string;
}

export interface SalvageResult {
  /** Unexpired facts of the subject whose seal opens. */
  readonly facts: Iterable<Entry>;
  /** Rows of any kind with a broken seal. Final once all facts have been read. */
  readonly broken: () => number;
  /** Whether a part of the file could not be read at all. */
  readonly unreadable: () => boolean;
}

type Found = EntryRow & { readonly kind: number; readonly namespace: number };

/** Reads what is left of a damaged file, row by row, and trusts only rows whose seal opens (R-DUR-06). Works on a copy. */
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
      // Throws if the key is missing.
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

/** SQLite needs an intact header and a file as long as the header says. */
function opened(file: string, draft: string): Connection {
  try {
    copyFileSync(file, draft);
    chmodSync(draft, 0o600);
    if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${draft}-wal`);
    // Fill a truncated file with zeros, which hold no rows.
    const bytes = bytesToldIn(draft);
    if (statSync(draft).size < bytes) truncateSync(draft, bytes);
    // Other tables are not checked: only ours are read, and only rows whose seal opens are trusted.
    const db = connect(draft, { check: 'our tables' });
    if (db.pragma('user_version', { simple: true }) !== migrations.length) throw new Error('It is of another version.');
    return new Connection(draft, db);
  } catch (cause) {
    throw damaged('its beginning cannot be read, so nothing of it can be saved', cause);
  }
}

/** The length in the file header, or 0 if it is too large to be true. */
function bytesToldIn(file: string): number {
  const header = Buffer.alloc(100);
  const handle = openSync(file, 'r');
  try {
    readSync(handle, header, 0, header.length, 0);
  } finally {
    closeSync(handle);
  }
  const bytes = header.readUInt32BE(28) * PAGE_BYTES;
  return bytes <= MOST_BYTES ? bytes : 0;
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
    // If the namespace list is damaged, the seal shows whether the row belongs to this subject.
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

/** Reads slices, and single rows where a slice cannot be read. */
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
  let told: number | undefined;
  for (let place = 0; ;) {
    const slice = read(rowsAfter, place, ROWS_AT_ONCE);
    if (slice) {
      const end = slice.at(-1)?.row;
      if (end === undefined) return;
      yield* slice;
      place = last = end;
      continue;
    }
    told ??= lastIn(lastByExpiry, lastByChange, lastVersion);
    // The index may be damaged too, so it may only end the search, never skip rows.
    const far = last + FAR;
    if (place >= (told > last ? Math.min(told, far) : far)) return;
    for (const until = place + ROWS_AT_ONCE; place < until; place += 1) {
      // Look the row up by number, because walking to the next row may cross a damaged page.
      const [row] = read(rowById, place + 1) ?? [];
      if (!row) continue;
      yield row;
      last = row.row;
    }
  }
}

/** The last row number in any readable index, or 0. */
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
