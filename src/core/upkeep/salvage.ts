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
/** A file is filled up to what it says of its length, within reason. */
const MOST_BYTES = 64 * 1024 ** 3;
/** So far behind the last row that could be read another is looked for, where nothing tells which the last one is. */
const FAR = 200_000;

interface SalvageOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly sources: KeySources;
  readonly subject: string;
}

export interface SalvageResult {
  /** Facts of the subject that live and whose seal is whole. */
  readonly facts: Iterable<Entry>;
  /** Rows whose seal is broken, of any kind; complete when all facts have been taken. */
  readonly broken: () => number;
  /** Whether a part of the file could not be read at all. */
  readonly unreadable: () => boolean;
}

type Found = EntryRow & { readonly kind: number; readonly namespace: number };

/**
 * Lends whoever asks what can still be read of a damaged file: each row by itself, believed only where its seal is whole
 * (R-DUR-06). It works on a copy, and the file stays as it is.
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
      // Without the key its failure says what is missing.
      void keys.ring;
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

/** What SQLite needs of the file: its beginning, and as many bytes as that tells of. */
function opened(file: string, draft: string): Connection {
  try {
    copyFileSync(file, draft);
    chmodSync(draft, 0o600);
    if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${draft}-wal`);
    // What was cut off is zeros from here on, which are no rows.
    const bytes = bytesToldIn(draft);
    if (statSync(draft).size < bytes) truncateSync(draft, bytes);
    // Only our tables are read, row by row, and only rows with a whole seal are believed.
    const db = connect(draft, { check: 'our tables' });
    if (db.pragma('user_version', { simple: true }) !== migrations.length) throw new Error('It is of another version.');
    return new Connection(draft, db);
  } catch (cause) {
    throw damaged('its beginning cannot be read, so nothing of it can be saved', cause);
  }
}

/** How long a file says that it is; longer than a memory ever gets is no truth. */
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
    // Where the list of namespaces is damaged the seal tells whether it is one of theirs.
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

/** In slices while all is well, and one by one where a slice cannot be read. */
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
    // An index may be damaged too: it ends a search that finds nothing, and no more than that.
    const far = last + FAR;
    if (place >= (told > last ? Math.min(told, far) : far)) return;
    for (const until = place + ROWS_AT_ONCE; place < until; place += 1) {
      // By its number alone: the way to the next one may lead through what is damaged.
      const [row] = read(rowById, place + 1) ?? [];
      if (!row) continue;
      yield row;
      last = row.row;
    }
  }
}

/** By the indexes that can be read; 0 where none can. */
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
