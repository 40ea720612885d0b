import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { KeyKeeper, type KeyTables } from '../crypto/key-keeper.ts';
import type { KeySources } from '../crypto/keys/key-source.ts';
import { diskFailureOf } from '../file/disk-failure.ts';
import { syncFile, syncFolder } from '../file/files.ts';
import { lockFolder } from '../file/folder.ts';
import { prepareFolder } from '../file/prepare-folder.ts';
import { Connection } from '../store/connection.ts';
import { MEMORY_FILE, openDatabase, openUnmigrated } from '../store/database.ts';
import { BatchSecrets } from '../store/postgres/batch-secrets.ts';
import { EVERYTHING } from '../store/postgres/change-feed.ts';
import { Database, type DatabaseOptions, type RunQuery } from '../store/postgres/database.ts';
import { Mirror } from '../store/postgres/mirror.ts';
import { ServerCopy, ServerCopySource } from '../store/postgres/server-copy.ts';
import { commitAlone, createTables, hasMemory, UncertainCommit } from '../store/postgres/server-transaction.ts';
import { NEWEST_CHANGE } from '../store/postgres/sql.ts';
import { UndoLog } from '../store/postgres/undo-log.ts';
import { TOKEN_RECORD, VAULT_PREFIX } from '../store/vault.ts';
import type { Clock } from '../time/clock.ts';
import { removeDatabase, removeDrafts } from './copies.ts';
import { copyMemory, type CopyResult, type CopySource, type CopyTarget, countRows } from './copy-memory.ts';
import { FileCopy } from './file-copy.ts';
import { MOVED, MOVING, MOVING_FILE } from './moved.ts';
import { moveToBackups } from './restore.ts';

/** Passes over a memory that other processes change during the move. */
const MOST_PASSES = 5;

export interface MoveOptions {
  readonly folder: string;
  readonly database: DatabaseOptions;
  /** Names of the file and of the database, for marks and messages. They contain no password. */
  readonly places: { readonly file: string; readonly server: string };
  readonly clock: Clock;
  readonly sources: KeySources;
  /** Called with the number of rows that are compared in this pass. */
  readonly progress?: (rows: number) => void;
}

export interface MoveResult extends Omit<CopyResult, 'changes'> {
  /** Set if an earlier command has copied the memory, so that this command only counted its entries. */
  readonly wasFinished?: true;
  /** Path of the file that the memory replaced, which is now a backup. */
  readonly replaced?: string | undefined;
}

/** What is known about the two copies, for the message of a failure. */
interface MoveState {
  known: string;
}

/** Moves the memory of the data folder to PostgreSQL. The file is marked as moved only after every row was compared. */
export async function moveToServer(options: MoveOptions): Promise<MoveResult> {
  const { folder, places, clock, sources } = options;
  const file = join(folder, MEMORY_FILE);
  if (!existsSync(file))
    throw new Failure('not_found', 'There is no memory file in this data folder, so there is nothing to move.');
  prepareFolder(folder);
  using _lock = lockFolder(folder);
  removeDrafts(folder);
  const connection = new Connection(file, openDatabase(file));
  try {
    const id = String(connection.meta('memory'));
    const moved = connection.meta(MOVED);
    const keys = await unlocked(connection, clock, sources(id));
    const state: MoveState = { known: `The memory is still ${places.file}.` };
    const copy = async (database: Database, isMemory: boolean): Promise<MoveResult> => {
      if (typeof moved === 'string' && (moved !== places.server || !isMemory)) throw alreadyMoved(moved);
      const { ring } = keys.requireKeys();
      const read = database.read.bind(database);
      if (typeof moved === 'string' && isUsable((await readTables(read)).meta, id))
        return { ...(await countRows(new ServerCopySource(read, ring))), wasFinished: true };
      if (!isMemory) await createTables(database);
      // Checked in the transaction that marks the database, because another process can store facts until then.
      await commitAlone(database, async (run) => {
        const present = await readTables(run);
        const isUnfinished = present.meta.get(MOVING) === id;
        if (typeof moved === 'string' && !isUnfinished) throw alreadyMoved(moved);
        if (!isUnfinished) await requireFree(run, present, id);
        await run('DELETE FROM meta WHERE name = $1', [MOVED]);
        await setMark(run, MOVING, id);
      });
      const commit = (step: (run: RunQuery) => Promise<void>): Promise<void> =>
        commitAlone(database, async (run) => {
          await requireMark(run, id);
          await step(run);
        });
      const target = new ServerCopy({ read, ring, commit });
      const result = await copyUntilEqual(new FileCopy(connection, keys), target, options.progress);
      await requireMark(read, id);
      // Marking the file first means that there are never two copies that can be opened.
      connection.transaction(() => connection.setMeta(MOVED, places.server));
      state.known = 'Every entry was copied and compared, and the file is marked as moved.';
      connection.truncateLog();
      await commitAlone(database, deleteMark);
      return result;
    };
    return await withDatabase(options, (database, isMemory) =>
      copy(database, isMemory).catch((error: unknown) => {
        throw stopped(error, folder, state);
      }),
    );
  } catch (error) {
    throw diskFailureOf(error, folder)?.failure ?? error;
  } finally {
    connection.close();
  }
}

/** Moves a memory from PostgreSQL to the data folder. The database is marked as moved only after every row was compared. */
export async function moveToFile(options: MoveOptions): Promise<MoveResult> {
  const { folder } = options;
  prepareFolder(folder);
  using _lock = lockFolder(folder);
  removeDrafts(folder);
  return await withDatabase(options, async (database, isMemory) => {
    if (!isMemory) throw new Failure('not_found', 'There is no memory in this database, so there is nothing to move.');
    // A rotation or a backup in another process would use the keys during the move.
    const state: MoveState = { known: `The memory is still ${options.places.server}.` };
    const ran = await database.alone('rotation', () =>
      moveAlone(database, options, state).catch((error: unknown) => {
        throw stopped(error, folder, state);
      }),
    );
    if (!ran) throw new Failure('unavailable', 'A key rotation or a backup is running; move the memory after it has finished.');
    return ran.value;
  });
}

async function moveAlone(database: Database, options: MoveOptions, state: MoveState): Promise<MoveResult> {
  const { folder, places, clock, sources } = options;
  const run = database.read.bind(database);
  const mirror = await readTables(run);
  const id = String(mirror.meta.get('memory'));
  const [moved, isUnfinished] = [mirror.meta.get(MOVED), mirror.meta.has(MOVING)];
  if (isUnfinished && moved === undefined)
    throw new Failure('unavailable', 'A move into this database has not finished. Finish that move first.');
  const [file, draft] = [join(folder, MEMORY_FILE), join(folder, MOVING_FILE)];
  const finish = (): Promise<void> => commitAlone(database, deleteMark);
  if (typeof moved === 'string') {
    // The file lost its first name when it got its last one.
    const isInstalled = !existsSync(draft) && isCopy(file, id);
    // Only the folder with the copy can finish the move, because another machine can have a folder with the same path.
    if (moved !== places.file || !(isInstalled || (isUnfinished && isCopy(draft, id)))) throw alreadyMoved(moved);
    state.known = 'The database is marked as moved.';
    if (isInstalled) {
      if (isUnfinished) await finish();
      return { ...(await countFile(file, clock, sources(id))), wasFinished: true };
    }
  }
  requireReplaceable(file, id, places.server);
  const records = new BatchSecrets(mirror, new UndoLog(), () => undefined);
  const keys = await unlocked(records, clock, sources(id));
  const { entries, broken } = await copyToDraft(draft, { database, keys, id, state }, options);
  const replaced = moveToBackups(file, folder, clock.now());
  renameSync(draft, file);
  syncFolder(folder);
  state.known = `The memory is now ${places.file}, and can be used.`;
  await finish();
  return { entries, broken, replaced };
}

/** Whether a file is a copy of this memory that was not moved away. */
function isCopy(file: string, id: string): boolean {
  if (!existsSync(file)) return false;
  const connection = new Connection(file, openUnmigrated(file));
  try {
    return connection.meta('memory') === id && connection.meta(MOVED) === undefined;
  } finally {
    connection.close();
  }
}

/** Counts the entries of a file that an earlier move has written. */
async function countFile(file: string, clock: Clock, sources: ReturnType<KeySources>): Promise<MoveResult> {
  const connection = new Connection(file, openDatabase(file));
  try {
    return await countRows(new FileCopy(connection, await unlocked(connection, clock, sources)));
  } finally {
    connection.close();
  }
}

async function copyToDraft(
  draft: string,
  { database, keys, id, state }: { database: Database; keys: KeyKeeper; id: string; state: MoveState },
  { places, progress }: MoveOptions,
): Promise<CopyResult> {
  let connection = new Connection(draft, openDatabase(draft));
  if (connection.meta(MOVING) !== id && connection.meta('memory') !== id) {
    // The draft is new, or was made for another memory.
    connection.close();
    removeDatabase(draft);
    connection = new Connection(draft, openDatabase(draft));
  }
  try {
    connection.setMeta(MOVING, id);
    const { ring } = keys.requireKeys();
    const source = new ServerCopySource(database.read.bind(database), ring);
    const target = new FileCopy(connection, keys);
    let result: CopyResult | undefined;
    for (let pass = 0; !result && pass < MOST_PASSES; pass += 1) result = await copyAndMark(source, target);
    if (!result)
      throw new Failure('unavailable', 'Other processes keep changing this memory. Stop them, and run this command again.');
    connection.transaction(() => connection.deleteMeta(MOVING));
    connection.truncateLog();
    connection.db.pragma('journal_mode = DELETE');
    return result;
  } finally {
    connection.close();
    syncFile(draft);
  }

  /** Copies everything, and marks the source as moved unless it was changed meanwhile. */
  async function copyAndMark(source: CopySource, target: CopyTarget): Promise<CopyResult | undefined> {
    const [newest] = await database.read<{ change: number }>(NEWEST_CHANGE);
    const result = await copyUntilEqual(source, target, progress);
    let isSame = false;
    await commitAlone(database, async (run, change) => {
      isSame = change === newest?.change;
      if (!isSame) return;
      await setMark(run, MOVED, places.file);
      // Stays until the file has its name. After that, no other folder can take the memory.
      await setMark(run, MOVING, places.file);
    }).catch((error: unknown) => {
      if (error instanceof UncertainCommit) state.known = 'The database may be marked as moved already.';
      throw error;
    });
    if (!isSame) return undefined;
    state.known = 'Every entry was copied and compared, and the database is marked as moved.';
    return result;
  }
}

/** Copies until a pass finds no difference, so that every row was compared after it was written. */
async function copyUntilEqual(source: CopySource, target: CopyTarget, progress?: (rows: number) => void): Promise<CopyResult> {
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const result = await copyMemory(source, target, progress);
    if (result.changes === 0) return result;
  }
  throw new Failure('unavailable', 'The copy stays different from the memory. Stop all programs that use either, and try again.');
}

async function unlocked(records: KeyTables, clock: Clock, sources: ReturnType<KeySources>): Promise<KeyKeeper> {
  if (records.keyRecords().length === 0)
    throw new Failure('key_unavailable', 'This memory has no key yet, so there is nothing to move.');
  const keys = new KeyKeeper(records, clock, sources);
  await keys.unlock();
  if (keys.requireKeys().ring.retiring)
    throw new Failure('unavailable', 'A key rotation has not finished; start Helmdeck Memory, and move the memory afterwards.');
  return keys;
}

/** Says where the memory is now, if a failure of a disk or of the connection has stopped the move. */
function stopped(error: unknown, folder: string, { known }: MoveState): unknown {
  const local = diskFailureOf(error, folder)?.failure;
  const failure = local ?? error;
  if (!(failure instanceof Failure) || (failure.code !== 'disk_full' && failure.code !== 'store_unavailable')) return failure;
  const disk = local ? 'The disk of the data folder is full.' : 'The disk of the database server is full.';
  const lost = failure instanceof UncertainCommit ? 'The connection to the database was lost.' : failure.message;
  const reason = failure.code === 'disk_full' ? disk : lost;
  return new Failure(failure.code, `${reason} ${known} Run the same command again to finish the move.`, { cause: error });
}

/** Runs a step with the database, in one process at a time. Nothing is written before the step. */
async function withDatabase<T>(
  { database: options }: MoveOptions,
  step: (database: Database, isMemory: boolean) => Promise<T>,
): Promise<T> {
  const database = new Database(options);
  try {
    await hasMemory(database);
    const ran = await database.alone('move', async () => step(database, await hasMemory(database)));
    if (!ran) throw new Failure('unavailable', 'Another process is moving or restoring this memory; wait until it has finished.');
    return ran.value;
  } finally {
    await database.close();
  }
}

async function readTables(run: RunQuery): Promise<Mirror> {
  const mirror = new Mirror();
  await mirror.read(run, EVERYTHING);
  return mirror;
}

async function setMark(run: RunQuery, name: string, value: string): Promise<void> {
  const sql = 'INSERT INTO meta (name, plain) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET plain = excluded.plain';
  await run(sql, [name, value]);
}

const deleteMark = async (run: RunQuery): Promise<void> => void (await run('DELETE FROM meta WHERE name = $1', [MOVING]));

/** Whether a database contains this memory, and no mark prevents its use. */
const isUsable = (meta: Mirror['meta'], id: string): boolean =>
  meta.get('memory') === id && !meta.has(MOVED) && !meta.has(MOVING);

/** Throws if the database is no longer the target of this move. The server frees the lock of a lost connection. */
async function requireMark(run: RunQuery, id: string): Promise<void> {
  const [mark] = await run<{ plain: string }>('SELECT plain FROM meta WHERE name = $1', [MOVING]);
  if (mark?.plain === id) return;
  throw new Failure('unavailable', 'Another command changed the database during the move, so the move was stopped.');
}

/** Throws unless the database is empty, or contains an earlier copy of this memory that was moved away. */
async function requireFree(run: RunQuery, { meta }: Mirror, id: string): Promise<void> {
  if (meta.has(MOVED) && meta.get('memory') === id) return;
  const [row] = await run('SELECT 1 FROM entry LIMIT 1');
  // A program that was started with the empty database has already stored its own secrets there.
  const hasTokens = [...meta.keys()].some((name) => name.startsWith(VAULT_PREFIX + TOKEN_RECORD));
  if (!row && !hasTokens && !meta.has(MOVING)) return;
  throw new Failure(
    'invalid_input',
    'The database already contains another memory. Use another database, or another schema with ?schema=<name> in the address.',
  );
}

/** Throws if the data folder has a memory of its own. The earlier file of this memory can be replaced. */
function requireReplaceable(file: string, id: string, server: string): void {
  if (!existsSync(file)) return;
  const connection = new Connection(file, openUnmigrated(file));
  try {
    if (connection.meta(MOVED) === server && connection.meta('memory') === id) return;
  } finally {
    connection.close();
  }
  throw new Failure(
    'invalid_input',
    'This data folder already contains a memory. Move to another data folder with HELMDECK_DATA_DIR.',
  );
}

const alreadyMoved = (place: string): Failure =>
  new Failure('invalid_input', `This memory was already moved to ${place}. Move it from there.`);
