import { closeSync, existsSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { Failure } from '../contract/failure.ts';
import { syncFile, syncFolder } from './files.ts';
import { Sqlite } from './sqlite.ts';
import type { Backup, MadeBackup, Verification } from './store.ts';

const FOLDER = 'backups';
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
  now: number,
  check: (file: string) => Promise<Verification>,
): Promise<MadeBackup> {
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
    for (const leftover of [draft, `${draft}-wal`, `${draft}-shm`, `${draft}-journal`]) rmSync(leftover, { force: true });
    throw error;
  }
  for (const old of listBackups(folder, 'memory').slice(KEPT)) rmSync(old.file, { force: true });
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

/** Newest first; also the copies made before a restore or a migration, unless only one kind is asked for. */
export function listBackups(folder: string, label = '[a-z0-9-]+'): readonly Backup[] {
  const target = join(folder, FOLDER);
  if (!existsSync(target)) return [];
  const name = new RegExp(`^${label}-(\\d+)\\.db$`);
  return readdirSync(target)
    .flatMap((file) => {
      const at = name.exec(file)?.[1];
      return at === undefined ? [] : [{ file: join(target, file), at: Number(at) }];
    })
    .toSorted((one, other) => other.at - one.at);
}

/** What a killed program left half made beside its memory and its backups. */
export function removeDrafts(folder: string): void {
  for (const place of [folder, join(folder, FOLDER)]) {
    if (!existsSync(place)) continue;
    const drafts = readdirSync(place).filter((name) =>
      /\.db\.new(-wal|-shm|-journal)?$|^memory\.restoring\.db|^memory\.key(\.next)?\.new$/.test(name),
    );
    for (const draft of drafts) rmSync(join(place, draft), { force: true });
  }
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
  const target = join(folder, FOLDER);
  if (mkdirSync(target, { recursive: true, mode: 0o700 }) !== undefined) syncFolder(folder);
  for (let at = now; ; at += 1) {
    const file = join(target, `${label}-${at}.db`);
    if (!existsSync(file)) return file;
  }
}
