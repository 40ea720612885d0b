import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { basename, join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { PACK_NAME } from '../../contract/pack.ts';

export interface PackFile {
  readonly name: string;
  readonly source: string;
  /** Hash of the source. A cached output is returned only for the same revision. */
  readonly revision: string;
}

const EXTENSION = '.mjs';
const MAX_BYTES = 1024 * 1024;
const TYPE = 0o170000;
const FOLDER = 0o040000;
const FILE = 0o100000;

/** Pack groups that are not allowed, because their tools would have the same names as the tools of this program. */
const RESERVED_GROUPS: ReadonlySet<string> = new Set(['helmdeck', 'memory', 'pipeline']);

export const packFolderOf = (folder: string): string => join(folder, 'packs');

export const packPathOf = (folder: string, name: string): string => join(packFolderOf(folder), name + EXTENSION);

/** Returns the pack name in a file's path, without validating it. */
export const packNameOf = (path: string): string => basename(path, EXTENSION);

export function requirePackName(name: string): void {
  if (!PACK_NAME.test(name)) {
    throw refused('A pack name must be a group and a name separated by a dot, such as weather.today; use only a-z, 0-9 and "_"');
  }
  const [group = ''] = name.split('.');
  if (RESERVED_GROUPS.has(group)) throw refused(`The group ${group} is reserved for Helmdeck Memory; choose another group`);
}

/**
 * Reads a pack from the `packs` folder. Throws if other users can write to that folder, because they could then run code as the
 * owner.
 */
export function readListedPack(folder: string, name: string): PackFile {
  requirePackName(name);
  const path = packFolderOf(folder);
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (!stats) throw refused(`The data folder has no \`packs\` folder; create the pack with: helmdeck-memory pack new ${name}`);
  if ((stats.mode & TYPE) !== FOLDER) throw refused('`packs` in the data folder is a link or a file; replace it with a folder');
  requirePrivate(stats, 'The `packs` folder', 'chmod 700');
  return readPackFile(packPathOf(folder, name));
}

/** Reads a pack's source from its file. The file is read only once, so later changes to the file do not affect a run. */
export function readPackFile(path: string): PackFile {
  const name = packNameOf(path);
  requirePackName(name);
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    throw refused(describeOpenError(name, cause), cause);
  }
  try {
    const stats = fstatSync(file);
    if ((stats.mode & TYPE) !== FILE) throw refused(`${name}.mjs is not a regular file; replace it with a regular file`);
    requirePrivate(stats, `${name}.mjs`, 'chmod 600');
    if (stats.size > MAX_BYTES) throw refused(`${name}.mjs is larger than ${MAX_BYTES / 1024} KiB; make the file smaller`);
    const bytes = readFileSync(file);
    return { name, source: bytes.toString(), revision: createHash('sha256').update(bytes).digest('hex') };
  } finally {
    closeSync(file);
  }
}

function describeOpenError(name: string, cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  if (code === 'ENOENT') return `The \`packs\` folder has no file ${name}.mjs; create it with: helmdeck-memory pack new ${name}`;
  if (code === 'ELOOP') return `${name}.mjs is a link; replace the link with the file itself`;
  return `${name}.mjs cannot be read; check the file's permissions`;
}

function requirePrivate({ mode, uid }: Stats, what: string, command: string): void {
  if (process.platform === 'win32') return;
  if ((uid === process.getuid?.() || uid === 0) && (mode & 0o022) === 0) return;
  throw refused(`${what} must belong to you, and other users must not be able to write to it; run ${command} on it`);
}

const refused = (message: string, cause?: unknown): Failure =>
  new Failure('invalid_input', `${message}.`, cause === undefined ? {} : { cause });
