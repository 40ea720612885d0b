import { closeSync, existsSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { Failure } from '../../contract/failure.ts';
import { syncFile, syncFolder } from '../file/files.ts';
import { Sqlite } from '../store/sqlite.ts';
import type { Backup, BackupResult, VerificationReport } from '../store/store.ts';
import { BACKUPS_FOLDER, listDatabaseCopies, removeDatabase } from './copies.ts';

const KEPT = 7;
/** Pages copied between two looks at what else waits. */
const PAGES_AT_ONCE = 200;

/**
 * A copy under a name that appears only when it is complete and on disk. Entries stay sealed in it; it ends where the
 * memory stood when the copying ended.
 */
export async function writeBackup(
  db: Database,
  folder: string,
  { now, doubtful }: { now: number; doubtful: boolean },
  check: (file: string) => Promise<VerificationReport>,
): Promise<BackupResult> {
  const file = backupName(folder, 'memory', now);
  const draft = `${file}.new`;
  let broken: number;
  try {
    rmSync(draft, { force: true });
    closeSync(openSync(draft, 'wx', 0o600));
    await db.backup(draft, { progress: () => PAGES_AT_ONCE });
    const verified = await check(draft);
    if (verified.structure.length > 0)
      throw new Failure('internal', 'The backup did not come out whole and was thrown away; check the disk and try again.');
    ({ broken } = verified);
    asOneFile(draft);
    syncFile(draft);
    renameSync(draft, file);
    syncFolder(dirname(file));
  } catch (error) {
    removeDatabase(draft);
    throw error;
  }
  // While the clock is in doubt no backup is old. One from the future was made by a wrong clock and must not replace later ones.
  const others = namedBackups(folder, 'memory').filter((one) => one.file !== file && one.at <= now);
  if (!doubtful) for (const old of others.slice(KEPT - 1)) removeDatabase(old.file);
  return { file, at: now, broken };
}

/** The memory as it stood before its schema changes. */
export function copyBeforeMigration(db: Database, folder: string, version: number, now: number): void {
  const file = backupName(folder, `schema-${version}`, now);
  const draft = `${file}.new`;
  closeSync(openSync(draft, 'wx', 0o600));
  db.prepare('VACUUM INTO ?').run(draft);
  syncFile(draft);
  renameSync(draft, file);
  syncFolder(dirname(file));
}

/**
 * Every copy of the memory in its folder, newest first: backups, copies made before a restore or a migration, and copies
 * under any other name. A forget counts them, since it cannot reach into them.
 */
export function listBackups(folder: string): readonly Backup[] {
  const named = new Map(namedBackups(folder, '[a-z0-9-]+').map((backup) => [backup.file, backup]));
  const others = listDatabaseCopies(folder).filter(({ file }) => !named.has(file));
  return [...named.values(), ...others].toSorted((one, other) => other.at - one.at);
}

function namedBackups(folder: string, label: string): readonly Backup[] {
  const target = join(folder, BACKUPS_FOLDER);
  if (!existsSync(target)) return [];
  const name = new RegExp(`^${label}-(\\d+)\\.db$`);
  return readdirSync(target)
    .flatMap((file) => {
      const at = name.exec(file)?.[1];
      return at === undefined ? [] : [{ file: join(target, file), at: Number(at) }];
    })
    .toSorted((one, other) => other.at - one.at);
}

/** A copy of a file with a log announces a log of its own, which nobody would copy along. */
function asOneFile(file: string): void {
  const db = new Sqlite(file);
  try {
    db.pragma('journal_mode = DELETE');
  } finally {
    db.close();
  }
}

/** A name among the backups that nothing stands under yet. */
export function backupName(folder: string, label: string, now: number): string {
  const target = join(folder, BACKUPS_FOLDER);
  if (mkdirSync(target, { recursive: true, mode: 0o700 }) !== undefined) syncFolder(folder);
  for (let at = now; ; at += 1) {
    const file = join(target, `${label}-${at}.db`);
    if (!existsSync(file)) return file;
  }
}
