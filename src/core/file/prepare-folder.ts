import { lstatSync, mkdirSync, type Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { errorCodeOf, syncFolder } from './files.ts';

/** Creates the data folder, or checks that it belongs to the owner and that no other user can read it (R-STORE-03). */
export function prepareFolder(folder: string): void {
  const { mode, uid } = createOrRead(resolve(folder));
  if ((mode & 0o170000) !== 0o040000) {
    throw new Failure(
      'invalid_config',
      'The data folder must be a folder and not a symbolic link. Set HELMDECK_DATA_DIR to the folder itself.',
    );
  }
  if (process.platform === 'win32') return;
  if (uid !== process.getuid?.()) {
    throw new Failure(
      'invalid_config',
      'The data folder belongs to another user. Set HELMDECK_DATA_DIR to a folder that you own.',
    );
  }
  if ((mode & 0o077) !== 0) {
    throw new Failure(
      'invalid_config',
      'Other users can read the data folder. Run chmod 700 on it, or set HELMDECK_DATA_DIR to another folder.',
    );
  }
}

/** Flushes the parent of each new folder, because the name of a folder is durable only after its parent is flushed. */
function syncNames(first: string, last: string): void {
  for (let folder = last; folder.length >= first.length; folder = dirname(folder)) syncFolder(dirname(folder));
}

/**
 * Creates a folder and its missing parents. Returns the first folder that did not exist. Node's `mkdir` with `recursive` is not
 * used, because it never returns in /proc, which reports ENOENT although the parent exists.
 */
function createWithParents(folder: string): string | undefined {
  try {
    return createOne(folder) ? folder : undefined;
  } catch (error) {
    const above = dirname(folder);
    if (errorCodeOf(error) !== 'ENOENT' || above === folder) throw error;
    const first = createWithParents(above);
    return createOne(folder) ? (first ?? folder) : first;
  }
}

/** Creates one folder. Returns false if the folder exists, for example because another process has just created it. */
function createOne(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 });
    return true;
  } catch (error) {
    if (errorCodeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function createOrRead(folder: string): Stats {
  try {
    const first = createWithParents(folder);
    if (first !== undefined) syncNames(first, folder);
    return lstatSync(folder);
  } catch (cause) {
    throw new Failure(
      'invalid_config',
      'The data folder cannot be created or read. Set HELMDECK_DATA_DIR to a folder that you own.',
      { cause },
    );
  }
}
