import { randomBytes } from 'node:crypto';
import { chmodSync, constants, copyFileSync, existsSync, linkSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { KeyKeeper, type KeyTables } from '../crypto/key-keeper.ts';
import type { KeySource, KeySources } from '../crypto/keys/key-source.ts';
import { diskFailureOf, UnusableFile } from '../file/disk-failure.ts';
import { syncFile, syncFolder } from '../file/files.ts';
import { lockFolder } from '../file/folder.ts';
import { prepareFolder } from '../file/prepare-folder.ts';
import { CommitQueue } from '../store/commit-queue.ts';
import { Connection } from '../store/connection.ts';
import { MEMORY_FILE, openDatabase } from '../store/database.ts';
import { tombstoneHash } from '../store/forgetting.ts';
import { SealedRows } from '../store/sealed-rows.ts';
import { KIND_NUMBERS } from '../store/statements.ts';
import type { Author, Kind, Namespace } from '../store/store.ts';
import { Superseding } from '../store/superseding.ts';
import type { Clock } from '../time/clock.ts';
import { backupName } from './backup.ts';
import { removeDatabase, removeDrafts } from './copies.ts';
import { type FileRotationDeps, rotationOf } from './file-rotation.ts';
import { MOVED, MOVING } from './moved.ts';
import {
  applyNewerState,
  type NewerState,
  EMPTY_NEWER_STATE,
  readNewerState,
  openedSegments,
  type Tombstone,
} from './newer-state.ts';
import { recoveredFrom, recoveredKeySource, recoverInto, storeKeys } from './recovered-keys.ts';
import { integrityErrors, walkEntries, type WalkedEntry } from './verification.ts';

/** The backup while a restore prepares it. */
export const RESTORING_FILE = 'memory.restoring.db';

export interface RestoreOptions {
  readonly folder: string;
  readonly backup: string;
  readonly clock: Clock;
  readonly sources: KeySources;
  /** Recovery key, needed if the master key of the backup is not available. */
  readonly recoveryKey?: string;
}

export interface RestoreResult {
  readonly entries: number;
  /**
   * Number of entries in the backup that were forgotten later, or while the backup was written. The restore deletes these
   * entries.
   */
  readonly stillForgotten: number;
  readonly broken: number;
  /** Path of the replaced memory, which is now a backup. */
  readonly replacedMemory: string | undefined;
  /**
   * Number of tokens that were revoked because they are newer than the backup and their records cannot be decrypted without the
   * key of the replaced memory.
   */
  readonly revokedTokens: number;
  /**
   * Whether the replaced memory could be read. If not, facts forgotten and tokens revoked or paused after the backup can be
   * active again, and newer tokens are valid but not listed.
   */
  readonly readReplacedMemory: boolean;
}

/**
 * Replaces the memory with a backup. The backup is prepared in a draft file and installed by one rename. The replaced memory
 * becomes a backup. Expiry times do not change.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreResult> {
  const { folder, backup, clock } = options;
  prepareFolder(folder);
  using _lock = lockFolder(folder);
  const file = join(folder, MEMORY_FILE);
  const draft = join(folder, RESTORING_FILE);
  removeDrafts(folder);
  try {
    copyBackup(backup, draft);
    const since = await readNewerState(file, (connection) => keySourcesFor(connection, options));
    const result = await prepareDraft(draft, options, since ?? EMPTY_NEWER_STATE).catch((error) => {
      throw backupFailure(error, backup, folder);
    });
    const before = moveToBackups(file, folder, clock.now());
    renameSync(draft, file);
    syncFolder(folder);
    return { ...result, replacedMemory: before, readReplacedMemory: since !== undefined };
  } finally {
    removeDatabase(draft);
  }
}

/** Restores a lost master key: decrypts it with the recovery key and stores it in a key source. */
export async function recoverKey({
  folder,
  sources,
  clock,
  recoveryKey,
}: Omit<RestoreOptions, 'backup'> & { recoveryKey: string }): Promise<void> {
  prepareFolder(folder);
  using _lock = lockFolder(folder);
  const file = join(folder, MEMORY_FILE);
  if (!existsSync(file))
    throw new Failure('not_found', 'There is no memory in this data folder; restore a backup into it first.');
  const connection = new Connection(file, openDatabase(file));
  try {
    await recoverInto(sources(String(connection.meta('memory'))), { records: connection, clock, recoveryKey });
  } finally {
    connection.close();
  }
}

/** If the backup itself is unusable, returns a failure that names the backup, because other failures name the memory's file. */
export function backupFailure(error: unknown, backup: string, folder: string): unknown {
  const failure = diskFailureOf(error, folder)?.failure ?? error;
  return failure instanceof UnusableFile ? unusableBackup(backup, failure.reason, error) : failure;
}

const unusableBackup = (backup: string, reason: string, cause: unknown): Failure =>
  new Failure(
    'invalid_input',
    `The backup ${backup} cannot be restored: ${reason}. Choose another backup; list the backups with: helmdeck-memory backup --list.`,
    { cause },
  );

export async function prepareDraft(
  draft: string,
  { sources, clock, recoveryKey, backup }: RestoreOptions,
  since: NewerState,
): Promise<Omit<RestoreResult, 'replacedMemory' | 'readReplacedMemory'>> {
  const connection = new Connection(draft, openDatabase(draft));
  try {
    const keySources = sources(String(connection.meta('memory')));
    const keys = new KeyKeeper(
      connection,
      clock,
      recoveryKey === undefined ? keySources : [recoveredKeySource(recoveredFrom(connection, recoveryKey))],
    );
    await keys.unlock();
    keys.requireKeys();
    requireIntact(connection, backup);
    const rows = new SealedRows(connection, keys);
    // A restored copy of a moved memory is a memory of its own.
    for (const mark of [MOVED, MOVING]) connection.deleteMeta(mark);
    const result = await forgetAgain(connection, keys, rows, since.tombstones, clock.now());
    const revokedTokens = applyNewerState(connection, keys, since);
    if (recoveryKey !== undefined)
      await resealWithPresentKey({ connection, keys, rows, segmentsOf: (key) => openedSegments(since, key) }, keySources);
    connection.truncateLog();
    connection.db.pragma('journal_mode = DELETE');
    return { ...result, revokedTokens };
  } finally {
    connection.close();
    syncFile(draft);
  }
}

/**
 * Rebuilds every index and checks the structure of the backup. An index with a missing row would hide that row from a later
 * forget.
 */
function requireIntact(connection: Connection, backup: string): void {
  let damage: string | undefined;
  let cause: unknown;
  try {
    connection.db.exec('REINDEX main.entry; REINDEX main.namespace; REINDEX main.tombstone; REINDEX main.vector');
    [damage] = integrityErrors(connection);
  } catch (error) {
    if (diskFailureOf(error, '')?.failure.code === 'disk_full') throw error;
    cause = error;
    damage = error instanceof Error ? error.message : String(error);
  }
  if (damage !== undefined) throw unusableBackup(backup, `it is damaged (${damage})`, cause);
}

/** Deletes the entries that were forgotten after the backup, using the tombstones of the backup and of the replaced memory. */
async function forgetAgain(
  connection: Connection,
  keys: KeyKeeper,
  rows: SealedRows,
  since: readonly Tombstone[],
  now: number,
): Promise<Pick<RestoreResult, 'entries' | 'stillForgotten' | 'broken'>> {
  const tombstones = [...(connection.sql.tombstones.all() as Tombstone[]), ...since];
  const scopes = tombstones.filter(({ hash }) => hash === null);
  const names = Map.groupBy(
    tombstones.filter(({ hash }) => hash !== null),
    ({ hash }) => hash?.toString('hex'),
  );
  connection.begin();
  const secret = keys.tombstoneKey() ?? randomBytes(32);
  const isNameForgotten = (namespace: Namespace, kind: Kind, key: string, writtenAt: number): boolean => {
    const named = names.get(tombstoneHash(secret, namespace, kind, key).toString('hex')) ?? [];
    return named.some((tombstone) => existedAt(writtenAt, tombstone, now));
  };
  const forgotten = ({ row, namespace, kind, entry }: WalkedEntry): boolean => {
    const real = kind === 'history' ? 'fact' : kind;
    const wide = scopes.filter((scope) => covers(scope, namespace, KIND_NUMBERS[real], row.category));
    if (wide.some((tombstone) => existedAt(row.updated_at, tombstone, now))) return true;
    return entry !== undefined && !entry.formerKeys && isNameForgotten(namespace, real, entry.key, row.updated_at);
  };
  /** A version of a superseded fact, if the fact that superseded it was forgotten or undone later. */
  const isReleased = ({ namespace, entry }: WalkedEntry): boolean => {
    const [last] = entry?.formerKeys ?? [];
    return entry !== undefined && last !== undefined && isNameForgotten(namespace, 'fact', entry.key, last.until);
  };
  const superseding = new Superseding({ connection, rows });
  const releasing = new Map<string, WalkedEntry>();
  let entries = 0;
  let stillForgotten = 0;
  let broken = 0;
  const authors = new Set<Author>();
  try {
    for await (const slice of walkEntries(connection, rows)) {
      for (const walked of slice) {
        if (forgotten(walked)) {
          rows.deleteRow(walked.row);
          stillForgotten += 1;
        } else if (walked.entry) {
          const { namespace, row } = walked;
          if (isReleased(walked)) releasing.set(JSON.stringify([namespace, row.key_hash.toString('hex')]), walked);
          entries += 1;
          authors.add(walked.entry.author);
        } else broken += 1;
      }
    }
    // A forget also wrote tombstones for the superseded facts. Without them, the write was undone, and these facts are returned.
    for (const { namespace, row, entry } of releasing.values()) {
      for (const fact of superseding.supersededBy(namespace, row)) {
        const { key, until, current, versions } = fact;
        if (!isNameForgotten(namespace, 'fact', entry?.key ?? '', until)) continue;
        if (current && !isNameForgotten(namespace, 'fact', key, current.entry.updatedAt)) superseding.return(namespace, fact);
        else {
          superseding.delete(fact);
          const deleted = versions.length + (current ? 1 : 0);
          [entries, stillForgotten] = [entries - deleted, stillForgotten + deleted];
        }
      }
    }
    // An author whose entries were all forgotten is forgotten too.
    if (stillForgotten > 0) rows.authors.deleteExcept(authors);
    for (const { at, trusted, hash, subject, session, kind, category } of since) {
      if (hash) connection.sql.insertHashTombstone.run(at, trusted, hash);
      else connection.sql.insertScopeTombstone.run(at, trusted, subject, session, kind, category);
    }
    connection.deleteEmptySessions();
    connection.commit();
  } catch (error) {
    connection.rollback();
    throw error;
  }
  return { entries, stillForgotten, broken };
}

/**
 * Whether an entry existed when the tombstone was written. Times in the future come from a wrong clock. An entry with a future
 * time is treated as existing, and for a tombstone with a future time, its last trusted time is used.
 */
const existedAt = (writtenAt: number, { at, trusted }: Tombstone, now: number): boolean =>
  writtenAt > now || writtenAt <= (at > now ? trusted : at);

const covers = (
  scope: Tombstone,
  { subject, session = '' }: { subject: string; session?: string },
  kind: number,
  category: string,
): boolean =>
  scope.subject === subject &&
  scope.kind === kind &&
  (scope.session === null || scope.session === session) &&
  (scope.category === null || scope.category === category);

/** Encrypts the restored memory with its key on this machine. If the machine has no key for it, stores the recovered key. */
async function resealWithPresentKey(parts: Omit<FileRotationDeps, 'queue'>, keySources: readonly KeySource[]): Promise<void> {
  const { connection, keys } = parts;
  const recovered = { current: keys.ring.current.export() };
  for (const keySource of keySources) {
    const present = await keySource.read('current').catch(() => undefined);
    if (present?.at !== 'found') continue;
    if (present.key.equals(recovered.current)) return;
    const source: KeySource = { name: keySource.name, createsOnFirstStart: false, read: () => Promise.resolve(present) };
    keys.replaceKeys({ ...keys.requireKeys(), source });
    const queue = new CommitQueue(connection, {
      explain: (failure) => ({ failure, doubtful: true }),
      committed: () => connection.checkpointLongLog(),
    });
    await rotationOf({ ...parts, queue }).run();
    return;
  }
  await storeKeys(keySources, recovered, undefined);
}

/** Returns the key sources for the replaced memory: its own sources, and the recovery key if it matches. */
export function keySourcesFor(
  records: Pick<KeyTables, 'meta'>,
  { sources, recoveryKey }: Pick<RestoreOptions, 'sources' | 'recoveryKey'>,
): readonly KeySource[] {
  const keySources = sources(String(records.meta('memory')));
  if (recoveryKey === undefined) return keySources;
  try {
    return [...keySources, recoveredKeySource(recoveredFrom(records, recoveryKey))];
  } catch {
    // The recovery key does not match, because the replaced memory has a newer recovery key or no recovery key.
    return keySources;
  }
}

/**
 * Moves the replaced memory to the backups and returns its new path. Uses a hard link, so that `memory.db` exists at every
 * moment. Also moves a leftover log or journal, because SQLite would apply it to the restored file.
 */
export function moveToBackups(file: string, folder: string, now: number): string | undefined {
  if (!existsSync(file)) {
    // Delete a leftover log, which is useless without its database file.
    removeDatabase(file);
    return undefined;
  }
  const { file: backup } = backupName(folder, 'before-restore', now);
  try {
    linkSync(file, backup);
  } catch {
    // Copy the file, because some file systems have no hard links. The copy gets its final name only when it is complete.
    const draft = `${backup}.new`;
    copyFileSync(file, draft);
    syncFile(draft);
    renameSync(draft, backup);
  }
  for (const log of ['-wal', '-journal']) if (existsSync(file + log)) renameSync(file + log, backup + log);
  rmSync(`${file}-shm`, { force: true });
  syncFolder(dirname(backup));
  return backup;
}

export function copyBackup(backup: string, draft: string): void {
  try {
    copyFileSync(backup, draft, constants.COPYFILE_EXCL);
    // If the backup is a copy of an open memory, or of a memory whose program was killed, its last changes are in the log.
    if (existsSync(`${backup}-wal`)) copyFileSync(`${backup}-wal`, `${draft}-wal`, constants.COPYFILE_EXCL);
  } catch (cause) {
    throw (
      diskFailureOf(cause, dirname(draft))?.failure ??
      new Failure('invalid_input', 'The backup cannot be read; check its path with: helmdeck-memory backup --list.', {
        cause,
      })
    );
  }
  chmodSync(draft, 0o600);
}
