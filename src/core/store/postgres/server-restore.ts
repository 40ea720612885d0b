import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { KeyKeeper } from '../../crypto/key-keeper.ts';
import { diskFailureOf } from '../../file/disk-failure.ts';
import { lockFolder } from '../../file/folder.ts';
import { prepareFolder } from '../../file/prepare-folder.ts';
import { createDraft, publishDraft } from '../../upkeep/backup.ts';
import { removeDatabase, removeDrafts } from '../../upkeep/copies.ts';
import { copyMemory } from '../../upkeep/copy-memory.ts';
import { FileCopy } from '../../upkeep/file-copy.ts';
import { MOVED, MOVING } from '../../upkeep/moved.ts';
import { EMPTY_NEWER_STATE, type NewerState, newerStateOf, ringOf } from '../../upkeep/newer-state.ts';
import {
  backupFailure,
  copyBackup,
  keySourcesFor,
  prepareDraft,
  type RestoreOptions,
  type RestoreResult,
  RESTORING_FILE,
} from '../../upkeep/restore.ts';
import { Connection } from '../connection.ts';
import { openDatabase } from '../database.ts';
import { BatchSecrets } from './batch-secrets.ts';
import { EVERYTHING } from './change-feed.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { Mirror } from './mirror.ts';
import { copyToFile } from './server-backup.ts';
import { ServerCopy, ServerCopySource } from './server-copy.ts';
import { commitAlone, createTables, hasMemory, UncertainCommit } from './server-transaction.ts';
import { SIGNAL_COUNTS } from './shared-signals.ts';
import { NEWEST_CHANGE } from './sql.ts';
import { UndoLog } from './undo-log.ts';

/** Attempts to restore a memory that other processes change in the meantime. */
const MOST_ATTEMPTS = 5;

type ServerRestoreOptions = RestoreOptions & { readonly database: DatabaseOptions };

/**
 * Replaces the memory in a database with a backup. The backup is prepared in a file, as for a memory in a file, and then replaces all
 * tables in one transaction. The replaced memory becomes a backup file.
 */
export async function restoreToServer(options: ServerRestoreOptions): Promise<RestoreResult> {
  const { folder } = options;
  prepareFolder(folder);
  using _lock = lockFolder(folder);
  removeDrafts(folder);
  const database = new Database(options.database);
  try {
    await hasMemory(database);
    // A rotation in another process would continue with the keys of the replaced memory.
    const ran = await database.alone('move', () => database.alone('rotation', () => restoreUnchanged(database, options)));
    if (!ran) throw new Failure('unavailable', 'Another process is moving or restoring this memory; wait until it has finished.');
    if (!ran.value)
      throw new Failure('unavailable', 'A key rotation or a backup is running; restore the backup after it has finished.');
    return ran.value.value;
  } catch (error) {
    throw diskFailureOf(error, folder)?.failure ?? error;
  } finally {
    await database.close();
  }
}

/** Repeats the restore until no other process changed the memory while the backup was prepared. */
async function restoreUnchanged(database: Database, options: ServerRestoreOptions): Promise<RestoreResult> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const result = await tryRestore(database, options);
    if (result) return result;
  }
  throw new Failure(
    'unavailable',
    'Other processes keep changing this memory, so nothing was restored. Stop them, and run this command again.',
  );
}

/** Restores the backup. Returns undefined, and changes nothing, if another process changed the memory in the meantime. */
async function tryRestore(database: Database, options: ServerRestoreOptions): Promise<RestoreResult | undefined> {
  const { folder, backup, clock, sources } = options;
  const draft = join(folder, RESTORING_FILE);
  let replacedMemory: string | undefined;
  try {
    const isMemory = await hasMemory(database);
    copyBackup(backup, draft);
    // Read before the newer state, so that every change after it is noticed. A schema that is created below has the number 0.
    const before = isMemory ? await newestChange(database) : 0;
    const present = isMemory ? await readPresent(database, options) : undefined;
    const result = await prepareDraft(draft, options, present?.state ?? EMPTY_NEWER_STATE).catch((error: unknown) => {
      throw backupFailure(error, backup, folder);
    });
    replacedMemory = present && (await keepPresent(database, present.keys, options));
    if (!isMemory) await createTables(database);
    const connection = new Connection(draft, openDatabase(draft));
    let isSame = false;
    try {
      const keys = new KeyKeeper(connection, clock, sources(String(connection.meta('memory'))));
      await keys.unlock();
      const { ring } = keys.requireKeys();
      // Other processes follow these counts, so the counts must not go back.
      for (const name of SIGNAL_COUNTS) {
        const count = present?.records.meta(name);
        if (typeof count === 'string') connection.setMeta(name, count);
      }
      await commitAlone(database, async (run, change) => {
        isSame = change === before;
        // The newer state lacks what the other process has acknowledged, such as a forget.
        if (!isSame) return;
        await run('DELETE FROM meta WHERE name = ANY ($1::text[])', [[MOVED, MOVING]]);
        const target = new ServerCopy({ read: run, ring, commit: (step) => step(run) });
        const source = new FileCopy(connection, keys);
        await copyMemory(source, target);
        const { changes } = await copyMemory(source, target);
        if (changes > 0) throw new Failure('internal', 'The restored memory differs from the backup, so nothing was changed.');
      });
    } finally {
      connection.close();
    }
    if (isSame) return { ...result, replacedMemory, readReplacedMemory: true };
    removeCopy(replacedMemory);
    return undefined;
  } catch (error) {
    if (!(error instanceof UncertainCommit)) {
      removeCopy(replacedMemory);
      throw error;
    }
    const copy = replacedMemory === undefined ? '' : ` The replaced memory is in ${replacedMemory}.`;
    throw new Failure(
      error.code,
      `The connection to the database was lost at the end, so the backup may or may not be restored.${copy} Run the same command again.`,
      { cause: error },
    );
  } finally {
    removeDatabase(draft);
  }
}

/** Removes the copy of a memory that was not replaced. The next attempt writes a newer copy. */
const removeCopy = (file: string | undefined): void => {
  if (file !== undefined) rmSync(file, { force: true });
};

async function newestChange(database: Database): Promise<number> {
  const [newest] = await database.read<{ change: number }>(NEWEST_CHANGE);
  return newest?.change ?? 0;
}

interface Present {
  readonly records: BatchSecrets;
  readonly keys: KeyKeeper;
  readonly state: NewerState;
}

/** Reads the memory that is replaced. Its secrets can be read only if its key is available. */
async function readPresent(database: Database, options: RestoreOptions): Promise<Present> {
  const mirror = new Mirror();
  await mirror.read(database.read.bind(database), EVERYTHING);
  const records = new BatchSecrets(mirror, new UndoLog(), () => undefined);
  const keySources = keySourcesFor(records, options);
  const keys = new KeyKeeper(records, options.clock, keySources);
  if (records.keyRecords().length > 0) await keys.unlock();
  const small = await new ServerCopySource(database.read.bind(database), keys.heldKeys?.ring).readSmall();
  return { records, keys, state: newerStateOf(records, small, await ringOf(records, keySources)) };
}

/** Writes the replaced memory to a backup file. Entries that cannot be decrypted are copied as they are. */
async function keepPresent(database: Database, keys: KeyKeeper, { folder, clock }: RestoreOptions): Promise<string> {
  const { file, draft } = createDraft(folder, 'before-restore', clock.now());
  try {
    const { structure } = await copyToFile(database, keys, draft);
    if (structure.length > 0)
      throw new Failure(
        'internal',
        'The copy of the replaced memory was damaged while it was written; check the disk and try again.',
      );
    await publishDraft(draft, file);
    return file;
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
