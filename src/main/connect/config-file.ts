import { createHash, randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { errorCodeOf, syncFolder } from '../../core/file/files.ts';

/** Configurations of people are a hundredth of it; what a program has let grow further is not for us to rewrite. */
const MOST_BYTES = 16 * 1024 * 1024;

/** A file of somebody else's program, as it was read. */
export interface ConfigFile {
  /** Behind all links. */
  readonly target: string;
  readonly bytes: Buffer;
  /** With its BOM. */
  readonly text: string;
  readonly mode: number;
}

/** Undefined when there is none. What could not be put back as it was is refused. */
export function readConfigFile(path: string): ConfigFile | undefined {
  const target = targetOf(path);
  if (target === undefined) return undefined;
  const file = opened(target);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw refused(`${path} is not a plain file; look at what stands in its place.`);
    if (stats.size > MOST_BYTES) throw refused(`${path} is larger than 16 MiB, and is left as it is; make it smaller first.`);
    const bytes = readFileSync(file);
    return { target, bytes, text: textOf(bytes, path), mode: stats.mode & 0o7777 };
  } finally {
    closeSync(file);
  }
}

/**
 * Makes something of a file's text, and keeps it as long as that file stays the same: agents keep megabytes in theirs, and the list of
 * them is asked for every few seconds.
 */
export function cachedByFile<T>(make: (text: string | undefined) => T): (path: string) => T {
  let kept: { readonly stamp: string; readonly made: () => T } | undefined;
  return (path) => {
    // Before it is read: what is written in between is seen the next time.
    const stamp = stampOf(path);
    if (stamp === undefined) return make(readConfigFile(path)?.text);
    if (kept?.stamp !== stamp) kept = { stamp, made: outcomeOf(() => make(readConfigFile(path)?.text)) };
    return kept.made();
  };
}

/** Undefined where it cannot be told: to read it says why, and costs nothing. */
function stampOf(path: string): string | undefined {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [path, dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch {
    return undefined;
  }
}

/** A refusal costs as much as an answer. */
function outcomeOf<T>(make: () => T): () => T {
  try {
    const made = make();
    return () => made;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Names the content; undefined is the content of no file. */
export const digestOf = (bytes: Buffer | undefined): string =>
  bytes === undefined ? 'none' : createHash('sha256').update(bytes).digest('hex');

/** Where a link leads; undefined where there is nothing yet. A link to nothing is somebody's intention, and not ours to fill. */
function targetOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch (cause) {
    if (errorCodeOf(cause) === 'ENOTDIR') throw refused(`${path} cannot be there, because one of its folders is a file.`, cause);
    if (errorCodeOf(cause) !== 'ENOENT')
      throw refused(`${path} cannot be read: a link in it leads in a circle, or nowhere.`, cause);
    if (lstatSync(path, { throwIfNoEntry: false }))
      throw refused(`${path} is a link to nothing; mend or remove it first.`, cause);
    return undefined;
  }
}

function opened(path: string): number {
  try {
    // Something that never answers may have been put there.
    return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    throw refused(`${path} cannot be read by you; change its permissions, and try again.`, cause);
  }
}

function textOf(bytes: Buffer, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw refused(`${path} is not text in UTF-8, and is left as it is; save it as UTF-8 first.`, cause);
  }
}

/** Throws unless it can be replaced: what its owner made read-only, nobody changes behind their back. */
export function requireWritable(path: string): void {
  const target = targetOf(path);
  try {
    if (target !== undefined) refuseReadOnly(target);
    refuseReadOnly(firstThere(dirname(target ?? path)));
  } catch (cause) {
    throw refused(`${path} cannot be written by you, and is left as it is; change its permissions, and try again.`, cause);
  }
}

function refuseReadOnly(path: string): void {
  accessSync(path, constants.W_OK);
  // Root may write it all the same, and then it would not say no.
  if (process.platform !== 'win32' && (statSync(path).mode & 0o222) === 0) throw new Error('read-only');
}

/** Where folders that are not there yet would be made. */
const firstThere = (folder: string): string =>
  existsSync(folder) || dirname(folder) === folder ? folder : firstThere(dirname(folder));

/**
 * Replaces what `expected` names, whole or not at all, with mode and owner as they were; `closed` leaves it to its owner alone. What
 * another program has written there in the meantime is not written over. A new file is its owner's alone; undefined content removes it.
 */
export function replaceConfigFile(path: string, expected: string, content: Buffer | undefined, closed = false): void {
  requireWritable(path);
  const before = readConfigFile(path);
  if (digestOf(before?.bytes) !== expected) throw changed(path);
  const target = before?.target ?? path;
  if (content === undefined) {
    rmSync(target, { force: true });
    syncFolder(dirname(target));
    return;
  }
  const draft = `${target}.${randomBytes(6).toString('hex')}.helmdeck`;
  try {
    write(draft, content, before && { ...before, mode: closed ? ownerOnly(before.mode) : before.mode });
    // As late as can be: clients write these files too.
    if (digestOf(readConfigFile(path)?.bytes) !== expected) throw changed(path);
    renameSync(draft, target);
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(dirname(target));
}

/** What others than its owner may do. */
const OTHERS = 0o077;
export const isReadableByOthers = (mode: number): boolean => (mode & OTHERS) !== 0;
const ownerOnly = (mode: number): number => mode & ~OTHERS;

/** Gives a file that another program wrote the mode again that it had; one that has gone has none. */
export function restoreMode(path: string, mode: number): void {
  const now = readConfigFile(path);
  if (now && now.mode !== mode) chmodSync(now.target, mode);
}

function write(draft: string, content: Buffer, before: ConfigFile | undefined): void {
  const file = openSync(draft, 'wx', 0o600);
  try {
    for (let at = 0; at < content.length;) at += writeSync(file, content, at);
    if (before) keepOwner(file, before);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function keepOwner(file: number, { target, mode }: ConfigFile): void {
  if (process.platform === 'win32') return;
  const { uid, gid } = statSync(target);
  const own = fstatSync(file);
  // Whose file it is would change with us; so would who else may read it.
  if (own.uid !== uid || own.gid !== gid) {
    try {
      fchownSync(file, uid, gid);
    } catch (cause) {
      throw refused(`${target} belongs to another user or group, and is left as it is; make it yours first.`, cause);
    }
  }
  fchmodSync(file, mode);
}

const changed = (path: string): Failure =>
  refused(`${path} has been changed by another program in this moment, and is left as that left it; try again.`);

const refused = (message: string, cause?: unknown): Failure =>
  new Failure('invalid_input', message, cause === undefined ? {} : { cause });
