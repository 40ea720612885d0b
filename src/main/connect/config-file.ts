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

/** Maximum bytes of a configuration file. Larger files are refused. Handwritten files are far smaller. */
const MAX_BYTES = 16 * 1024 * 1024;

/** A configuration file of another program, as it was read. */
export interface ConfigFile {
  /** The file's path after following all symbolic links. */
  readonly target: string;
  readonly bytes: Buffer;
  /** Text of the file, including the byte order mark if there is one. */
  readonly text: string;
  readonly mode: number;
}

/**
 * Reads a configuration file, or returns undefined if it does not exist. Refuses a file that we could not restore byte for byte.
 */
export function readConfigFile(path: string): ConfigFile | undefined {
  const target = targetOf(path);
  if (target === undefined) return undefined;
  const file = openForReading(target);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw refused(`${path} is not a regular file. Replace it with a regular file and try again.`);
    if (stats.size > MAX_BYTES)
      throw refused(`${path} is larger than 16 MiB, so it was not changed. Make the file smaller and try again.`);
    const bytes = readFileSync(file);
    return { target, bytes, text: textOf(bytes, path), mode: stats.mode & 0o7777 };
  } finally {
    closeSync(file);
  }
}

/**
 * Returns a function that caches the result of `make` until the file changes. Needed because some clients store megabytes in
 * their configuration, and the client list is requested every few seconds.
 */
export function cachedByFile<T>(make: (text: string | undefined) => T): (path: string) => T {
  let cached: { readonly stamp: string; readonly result: () => T } | undefined;
  return (path) => {
    // Get the stamp before reading the file, so that the next call notices a write during the read.
    const stamp = stampOf(path);
    if (stamp === undefined) return make(readConfigFile(path)?.text);
    if (cached?.stamp !== stamp) cached = { stamp, result: storeOutcome(() => make(readConfigFile(path)?.text)) };
    return cached.result();
  };
}

/**
 * Returns a text that changes whenever the file changes. Returns undefined if the file cannot be examined; reading the file then
 * reports the reason.
 */
function stampOf(path: string): string | undefined {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [path, dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch {
    return undefined;
  }
}

/** Calls `make` and stores its result or its error. Errors are stored too, because reading a refused file takes as long. */
function storeOutcome<T>(make: () => T): () => T {
  try {
    const result = make();
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Returns the SHA-256 digest of a file's content. Undefined bytes mean that the file does not exist. */
export const digestOf = (bytes: Buffer | undefined): string =>
  bytes === undefined ? 'none' : createHash('sha256').update(bytes).digest('hex');

/**
 * Returns the path after following symbolic links, or undefined if the file does not exist. A link to a missing file is refused,
 * because the link's owner may intend another target.
 */
function targetOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch (cause) {
    if (errorCodeOf(cause) === 'ENOTDIR')
      throw refused(`${path} cannot be created, because one of its parent folders is a file.`, cause);
    if (errorCodeOf(cause) !== 'ENOENT')
      throw refused(`${path} cannot be read, because a link in the path is circular or broken.`, cause);
    if (lstatSync(path, { throwIfNoEntry: false }))
      throw refused(`${path} is a broken link. Repair or remove the link and try again.`, cause);
    return undefined;
  }
}

function openForReading(path: string): number {
  try {
    // Without O_NONBLOCK, opening a named pipe would block.
    return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    throw refused(`${path} cannot be read. Change the file's permissions and try again.`, cause);
  }
}

function textOf(bytes: Buffer, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw refused(`${path} is not UTF-8 text, so it was not changed. Save the file as UTF-8 and try again.`, cause);
  }
}

/** Throws if the file cannot be replaced, or if its permissions make it read-only. */
export function requireWritable(path: string): void {
  const target = targetOf(path);
  try {
    if (target !== undefined) refuseReadOnly(target);
    refuseReadOnly(firstExistingFolder(dirname(target ?? path)));
  } catch (cause) {
    throw refused(`${path} cannot be written, so it was not changed. Change the file's permissions and try again.`, cause);
  }
}

function refuseReadOnly(path: string): void {
  accessSync(path, constants.W_OK);
  // For root, access() reports even a read-only file as writable.
  if (process.platform !== 'win32' && (statSync(path).mode & 0o222) === 0) throw new Error('read-only');
}

/** Returns the folder, or its closest parent that exists. Missing folders would be created there. */
const firstExistingFolder = (folder: string): string =>
  existsSync(folder) || dirname(folder) === folder ? folder : firstExistingFolder(dirname(folder));

/**
 * Atomically replaces a file. Refuses if the file's digest is not `expected`, because another program has then changed the file.
 * Preserves permissions and owner; `restrict` removes the access of other users. A new file is readable only by its owner.
 * Undefined content deletes the file.
 */
export function replaceConfigFile(path: string, expected: string, content: Buffer | undefined, restrict = false): void {
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
    write(draft, content, before && { ...before, mode: restrict ? ownerOnly(before.mode) : before.mode });
    // Check again immediately before the rename, because clients write these files too.
    if (digestOf(readConfigFile(path)?.bytes) !== expected) throw changed(path);
    renameSync(draft, target);
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(dirname(target));
}

/** Permission bits of all users except the file's owner. */
const OTHERS = 0o077;
export const isReadableByOthers = (mode: number): boolean => (mode & OTHERS) !== 0;
const ownerOnly = (mode: number): number => mode & ~OTHERS;

/** Restores the mode of a file that another program rewrote. Does nothing if the file was deleted. */
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
  // Without this step, the file would belong to this process's user and group.
  if (own.uid !== uid || own.gid !== gid) {
    try {
      fchownSync(file, uid, gid);
    } catch (cause) {
      throw refused(
        `${target} belongs to another user or group, so it was not changed. Change the file's owner and try again.`,
        cause,
      );
    }
  }
  fchmodSync(file, mode);
}

const changed = (path: string): Failure =>
  refused(`${path} was changed by another program at the same time, so it was not overwritten. Try again.`);

const refused = (message: string, cause?: unknown): Failure =>
  new Failure('invalid_input', message, cause === undefined ? {} : { cause });
