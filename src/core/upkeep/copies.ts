import {
  closeSync,
  constants,
  type Dirent,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
} from 'node:fs';
import { join } from 'node:path';
import { APPLICATION_ID, MEMORY_FILE } from '../store/database.ts';

export const BACKUPS_FOLDER = 'backups';

const PARTS = ['', '-wal', '-shm', '-journal'] as const;
/** Names of the unfinished files of this program. All other files belong to the owner and are never removed. */
const DRAFT = /^memory\.(?:db\.new|restoring\.db|salvaging\.db)(?:-wal|-shm|-journal)?$|^memory\.key(?:\.next)?\.new$/;
const BACKUP = /^(?:memory|schema-\d+|before-restore)-\d+\.db/;
const BACKUP_DRAFT = /^[^.]+\.db\.new(?:\.new)?(?:-wal|-shm|-journal)?$/;
const BACKUP_LOG = /^([^.]+\.db)-(?:wal|shm|journal)$/;
const MAGIC = 'SQLite format 3\0';

/** Removes a database and the files that SQLite creates beside it. */
export function removeDatabase(file: string): void {
  for (const part of PARTS) rmSync(file + part, { force: true });
}

/**
 * Removes the drafts of killed commands, because they contain complete copies of the memory. The caller must hold the folder
 * lock.
 */
export function removeDrafts(folder: string): void {
  for (const name of namesIn(folder)) if (DRAFT.test(name)) rmSync(join(folder, name), { force: true });
  const backups = join(folder, BACKUPS_FOLDER);
  undoSecondName(join(folder, MEMORY_FILE), backups);
  for (const name of namesIn(backups).filter((one) => BACKUP.test(one))) {
    const log = BACKUP_LOG.exec(name)?.[1];
    if (BACKUP_DRAFT.test(name) || (log !== undefined && !existsSync(join(backups, log))))
      rmSync(join(backups, name), { force: true });
  }
}

/**
 * Removes the second name that a killed restore can leave: a hard link to the memory among the backups. The log can be under
 * that second name only, so the log is renamed back.
 */
function undoSecondName(file: string, backups: string): void {
  const memory = statOf(file);
  if (!memory || memory.nlink < 2) return;
  for (const name of namesIn(backups).filter((one) => /^before-restore-\d+\.db$/.test(one))) {
    const second = join(backups, name);
    if (!isSameFile(memory, statOf(second))) continue;
    for (const log of ['-wal', '-journal'])
      if (existsSync(second + log) && !existsSync(file + log)) renameSync(second + log, file + log);
    rmSync(second);
  }
}

export interface DatabaseCopy {
  readonly file: string;
  /** Time of the last modification, in milliseconds since 1970. */
  readonly at: number;
}

/** Lists every other memory database in the data folder, whatever its name, because each can still contain forgotten facts. */
export function listDatabaseCopies(folder: string): readonly DatabaseCopy[] {
  const memory = statOf(join(folder, MEMORY_FILE));
  return databasesBelow(folder).filter(({ file }) => !isSameFile(memory, statOf(file)));
}

function databasesBelow(folder: string): DatabaseCopy[] {
  const found: DatabaseCopy[] = [];
  for (const entry of entriesIn(folder)) {
    const file = join(folder, entry.name);
    if (entry.isDirectory()) found.push(...databasesBelow(file));
    else if (entry.isFile() && isOurs(file)) found.push({ file, at: Math.floor(statOf(file)?.mtimeMs ?? 0) });
  }
  return found;
}

/** Whether a file is a memory database. Checks only the header, because even a truncated copy can still contain facts. */
function isOurs(file: string): boolean {
  let handle: number | undefined;
  try {
    handle = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const header = Buffer.alloc(72);
    if (readSync(handle, header, 0, header.length, 0) < header.length) return false;
    return header.toString('latin1', 0, MAGIC.length) === MAGIC && header.readUInt32BE(68) === APPLICATION_ID;
  } catch {
    // Skip an unreadable file, because it must not prevent a forget.
    return false;
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

const namesIn = (folder: string): string[] => entriesIn(folder).flatMap((entry) => (entry.isDirectory() ? [] : [entry.name]));

function entriesIn(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

const statOf = (file: string): Stats | undefined => lstatSync(file, { throwIfNoEntry: false });

const isSameFile = (one: Stats | undefined, other: Stats | undefined): boolean =>
  one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev;
