import { closeSync, existsSync, mkdirSync, openSync, readdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { Failure } from '../../contract/failure.ts';
import { BACKUPS_KEPT } from '../../contract/limits.ts';
import { flushFile, syncFile, syncFolder } from '../file/files.ts';
import { Sqlite } from '../store/sqlite.ts';
import type { Backup, BackupResult, VerificationReport } from '../store/store.ts';
import { BACKUPS_FOLDER, listDatabaseCopies, removeDatabase } from './copies.ts';

/**
 * Writes a backup. `fill` writes and verifies it. The file gets its final name only when it is complete, verified and flushed to the
 * disk. Its entries stay encrypted.
 */
export async function writeBackup(
  folder: string,
  { now, isClockInDoubt }: { now: number; isClockInDoubt: boolean },
  fill: (draft: string) => Promise<VerificationReport>,
): Promise<BackupResult> {
  const { file, draft, at } = createDraft(folder, 'memory', now);
  let broken: number;
  try {
    const verified = await fill(draft);
    if (verified.structure.length > 0)
      throw new Failure(
        'internal',
        'The backup was damaged while it was written, so it was deleted; check the disk and try again.',
      );
    ({ broken } = verified);
    await publishDraft(draft, file);
  } catch (error) {
    removeDatabase(draft);
    throw error;
  }
  // Delete the oldest surplus backups, unless the clock is in doubt. Backups dated in the future are not counted, so that they do
  // not cause the deletion of others.
  const others = namedBackups(folder, 'memory').filter((one) => one.file !== file && one.at <= at);
  if (!isClockInDoubt) for (const old of others.slice(BACKUPS_KEPT - 1)) removeDatabase(old.file);
  return { file, at, broken };
}

/** Gives a complete draft its final name, after it was flushed to the disk. */
export async function publishDraft(draft: string, file: string): Promise<void> {
  asOneFile(draft);
  // Flush in the background, because a large file takes long to flush.
  await flushFile(draft);
  renameSync(draft, file);
  syncFolder(dirname(file));
}

export function copyBeforeMigration(db: Database, folder: string, version: number, now: number): void {
  const { file, draft } = createDraft(folder, `schema-${version}`, now);
  db.prepare('VACUUM INTO ?').run(draft);
  syncFile(draft);
  renameSync(draft, file);
  syncFolder(dirname(file));
}

/** Lists every copy of the memory in its folder, under any name, newest first. A forget reports the number of these copies. */
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

/** Turns WAL mode off, so that the backup is a single file. Otherwise the owner could move the backup without its log. */
function asOneFile(file: string): void {
  const db = new Sqlite(file);
  try {
    db.pragma('journal_mode = DELETE');
  } finally {
    db.close();
  }
}

/** Returns a path in the backup folder that no backup uses, not even an unfinished backup. */
export function backupName(folder: string, label: string, now: number): { readonly file: string; readonly at: number } {
  const target = join(folder, BACKUPS_FOLDER);
  if (mkdirSync(target, { recursive: true, mode: 0o700 }) !== undefined) syncFolder(folder);
  for (let at = now; ; at += 1) {
    const file = join(target, `${label}-${at}.db`);
    if (!existsSync(file) && !existsSync(draftOf(file))) return { file, at };
  }
}

const draftOf = (file: string): string => `${file}.new`;

/** Creates the draft immediately, so that no other backup takes its name. */
export function createDraft(folder: string, label: string, now: number): { file: string; draft: string; at: number } {
  const { file, at } = backupName(folder, label, now);
  const draft = draftOf(file);
  closeSync(openSync(draft, 'wx', 0o600));
  return { file, draft, at };
}
