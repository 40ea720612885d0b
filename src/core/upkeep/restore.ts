import { randomBytes } from 'node:crypto';
import { chmodSync, constants, copyFileSync, existsSync, linkSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { KeyKeeper } from '../crypto/key-keeper.ts';
import type { KeySource } from '../crypto/keys/key-source.ts';
import { unwrapKey, RECOVERY_WRAPPED_KEY, RECOVERY_WRAPPED_RETIRING_KEY } from '../crypto/recovery-key.ts';
import { diskFailureOf } from '../file/disk-failure.ts';
import { syncFile, syncFolder } from '../file/files.ts';
import { lockFolder } from '../file/folder.ts';
import { prepareFolder } from '../file/prepare-folder.ts';
import { CommitQueue } from '../store/commit-queue.ts';
import { Connection } from '../store/connection.ts';
import { MEMORY_FILE, openDatabase } from '../store/database.ts';
import { tombstoneHash } from '../store/forgetting.ts';
import type { KeySources } from '../store/open-store.ts';
import { SealedRows } from '../store/sealed-rows.ts';
import { KIND_NUMBERS } from '../store/statements.ts';
import type { Clock } from '../time/clock.ts';
import { backupName } from './backup.ts';
import { removeDatabase, removeDrafts } from './copies.ts';
import {
  applyNewerState,
  type NewerState,
  EMPTY_NEWER_STATE,
  readNewerState,
  openedSegments,
  type Tombstone,
} from './newer-state.ts';
import { Rotation } from './rotation.ts';
import { integrityErrors, walkEntries, type WalkedEntry } from './verification.ts';

export interface RestoreOptions {
  readonly folder: string;
  readonly backup: string;
  readonly clock: Clock;
  readonly sources: KeySources;
  /** For a backup whose key is not available. */
  readonly recoveryKey?: string;
}

export interface RestoreResult {
  readonly entries: number;
  /** Entries of the backup that were forgotten later or while it was written. The restore removes them. */
  readonly stillForgotten: number;
  readonly broken: number;
  /** The backup file of the replaced memory. */
  readonly replacedMemory: string | undefined;
  /** Tokens newer than the backup that were revoked because their record does not open without the key of the replaced memory. */
  readonly revokedTokens: number;
  /**
   * False when the replaced memory could not be read. Then facts forgotten and tokens revoked or paused after the backup may be
   * back, and newer tokens are valid but not listed.
   */
  readonly readReplacedMemory: boolean;
}

interface Keys {
  readonly current: Buffer;
  readonly next?: Buffer;
}

/** Replaces the memory with a backup, prepared in a draft and put in place by one rename. The old memory becomes a backup. Expiry times stay. */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreResult> {
  const { folder, backup, clock } = options;
  prepareFolder(folder);
  using _lock = lockFolder(folder);
  const file = join(folder, MEMORY_FILE);
  const draft = join(folder, 'memory.restoring.db');
  removeDrafts(folder);
  try {
    copy(backup, draft);
    const since = await readNewerState(file, (connection) => placesFor(connection, options));
    const result = await makeReady(draft, options, since ?? EMPTY_NEWER_STATE);
    const before = putAside(file, folder, clock.now());
    renameSync(draft, file);
    syncFolder(folder);
    return { ...result, replacedMemory: before, readReplacedMemory: since !== undefined };
  } finally {
    removeDatabase(draft);
  }
}

/** Stores a lost master key again, unwrapped with the recovery key. */
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
    const places = sources(String(connection.meta('memory')));
    const recovered = recoveredFrom(connection, recoveryKey);
    const keys = new KeyKeeper(connection, clock, [handedIn(recovered)]);
    if ((await keys.unlock()).at !== 'ok')
      throw new Failure('key_unavailable', 'The recovered key does not fit this memory; restore a backup instead.');
    await keepIn(places, recovered, keys.records().find(({ role }) => role === 'current')?.source);
  } finally {
    connection.close();
  }
}

async function makeReady(
  draft: string,
  { sources, clock, recoveryKey }: RestoreOptions,
  since: NewerState,
): Promise<Omit<RestoreResult, 'replacedMemory' | 'readReplacedMemory'>> {
  const connection = new Connection(draft, openDatabase(draft));
  try {
    const places = sources(String(connection.meta('memory')));
    const keys = new KeyKeeper(
      connection,
      clock,
      recoveryKey === undefined ? places : [handedIn(recoveredFrom(connection, recoveryKey))],
    );
    await keys.unlock();
    // Throws if the key of the backup is missing.
    keys.requireKeys();
    requireSound(connection);
    const rows = new SealedRows(connection, keys);
    const result = await forgetAgain(connection, keys, rows, since.tombstones, clock.now());
    const revokedTokens = applyNewerState(connection, keys, since);
    if (recoveryKey !== undefined)
      await bringUnderPresentKey({ connection, keys, rows, segmentsOf: (key) => openedSegments(since, key) }, places);
    connection.truncateLog();
    connection.db.pragma('journal_mode = DELETE');
    return { ...result, revokedTokens };
  } finally {
    connection.close();
    syncFile(draft);
  }
}

/** An index that lacks a row would hide that row from a later forget, so every index is rebuilt before the check. */
function requireSound(connection: Connection): void {
  let damage: string | undefined;
  let cause: unknown;
  try {
    connection.db.exec('REINDEX main.entry; REINDEX main.namespace; REINDEX main.tombstone');
    [damage] = integrityErrors(connection);
  } catch (error) {
    if (diskFailureOf(error, '')?.failure.code === 'disk_full') throw error;
    cause = error;
    damage = error instanceof Error ? error.message : String(error);
  }
  if (damage === undefined) return;
  throw new Failure(
    'unavailable',
    `The backup is damaged: ${damage}. Restore another one; helmdeck-memory backup --list shows them.`,
    { cause },
  );
}

/** Deletes what was forgotten after the backup, by the tombstones of the backup and of the replaced memory. */
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
  const forgotten = ({ row, namespace, kind, entry }: WalkedEntry): boolean => {
    const real = kind === 'history' ? 'fact' : kind;
    const named = entry && names.get(tombstoneHash(secret, namespace, real, entry.key).toString('hex'));
    return [...scopes.filter((scope) => covers(scope, namespace, KIND_NUMBERS[real], row.category)), ...(named ?? [])].some(
      (tombstone) => wasThere(row.updated_at, tombstone, now),
    );
  };
  let entries = 0;
  let keptForgotten = 0;
  let broken = 0;
  try {
    for await (const slice of walkEntries(connection, rows)) {
      for (const walked of slice) {
        if (forgotten(walked)) {
          rows.deleteRow(walked.row);
          keptForgotten += 1;
        } else if (walked.entry) entries += 1;
        else broken += 1;
      }
    }
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
  return { entries, stillForgotten: keptForgotten, broken };
}

/**
 * Whether an entry existed when the tombstone was written. Times in the future come from a wrong clock: such an entry counts as
 * existing, and such a tombstone uses its last trusted time.
 */
const wasThere = (writtenAt: number, { at, trusted }: Tombstone, now: number): boolean =>
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

/** If this machine has a key for this memory, reseals with it. Otherwise stores the recovered key. */
async function bringUnderPresentKey(
  parts: Omit<ConstructorParameters<typeof Rotation>[0], 'queue'>,
  places: readonly KeySource[],
): Promise<void> {
  const { connection, keys } = parts;
  const recovered = { current: keys.ring.current.export() };
  for (const place of places) {
    const present = await place.read('current').catch(() => undefined);
    if (present?.at !== 'found') continue;
    if (present.key.equals(recovered.current)) return;
    const source: KeySource = { name: place.name, createsOnFirstStart: false, read: () => Promise.resolve(present) };
    keys.replaceKeys({ ...keys.requireKeys(), source });
    const queue = new CommitQueue(connection, {
      explain: (failure) => ({ failure, doubtful: true }),
      committed: () => connection.checkpointLongLog(),
    });
    await new Rotation({ ...parts, queue }).run();
    return;
  }
  await keepIn(places, recovered, undefined);
}

/**
 * Stores the key in its former source, or in the first that can store one. Overwrites a key there that does not match. If that
 * source is locked or unavailable, throws instead of using a weaker one.
 */
async function keepIn(places: readonly KeySource[], keys: Keys, from: string | undefined): Promise<void> {
  const able = places.filter(({ save: keep }) => keep);
  const place = able.find(({ name }) => name === from) ?? able[0];
  const reading = place && (await place.read('current').catch(() => undefined));
  if (place?.save && reading?.at !== 'locked' && reading?.at !== 'unavailable') {
    if (keys.next) await place.save('next', keys.next);
    return place.save('current', keys.current);
  }
  const closed = reading && 'why' in reading ? `${place?.name} is ${reading.at}: ${reading.why}` : 'no place here can keep a key';
  throw new Failure(
    'key_unavailable',
    `The recovered key was not kept, because ${closed}. Open that place, or choose another, and try again.`,
  );
}

/** The replaced memory may open with its own key or with the recovery key of the backup. */
function placesFor(connection: Connection, { sources, recoveryKey }: RestoreOptions): readonly KeySource[] {
  const places = sources(String(connection.meta('memory')));
  if (recoveryKey === undefined) return places;
  try {
    return [...places, handedIn(recoveredFrom(connection, recoveryKey))];
  } catch {
    // The replaced memory has a newer recovery key, or none.
    return places;
  }
}

const handedIn = (keys: Keys): KeySource => ({
  name: 'the recovery key',
  createsOnFirstStart: false,
  read: (slot) => {
    const key = keys[slot];
    return Promise.resolve(key ? { at: 'found', key: Buffer.from(key) } : { at: 'absent' });
  },
});

/** During a rotation there are two keys, for the two slots of a source. */
function recoveredFrom(connection: Connection, recoveryKey: string): Keys {
  const [lockedUp, retiring] = [connection.meta(RECOVERY_WRAPPED_KEY), connection.meta(RECOVERY_WRAPPED_RETIRING_KEY)];
  if (!Buffer.isBuffer(lockedUp))
    throw new Failure('not_found', 'No recovery key was ever made for this memory; only its own key opens it.');
  const key = unwrapKey(recoveryKey, lockedUp);
  return Buffer.isBuffer(retiring) ? { current: unwrapKey(recoveryKey, retiring), next: key } : { current: key };
}

/**
 * Uses a hard link, so that a memory exists at every moment. Moves a leftover log or journal along, because SQLite would apply
 * it to the restored file.
 */
function putAside(file: string, folder: string, now: number): string | undefined {
  if (!existsSync(file)) {
    // A log is useless without its database file.
    removeDatabase(file);
    return undefined;
  }
  const { file: aside } = backupName(folder, 'before-restore', now);
  try {
    linkSync(file, aside);
  } catch {
    // Some file systems have no hard links. The copy gets its final name only when it is complete.
    const draft = `${aside}.new`;
    copyFileSync(file, draft);
    syncFile(draft);
    renameSync(draft, aside);
  }
  for (const log of ['-wal', '-journal']) if (existsSync(file + log)) renameSync(file + log, aside + log);
  rmSync(`${file}-shm`, { force: true });
  syncFolder(dirname(aside));
  return aside;
}

function copy(backup: string, draft: string): void {
  try {
    copyFileSync(backup, draft, constants.COPYFILE_EXCL);
    // A copy of an open memory, or of one whose program was killed, has its last changes in the log.
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
