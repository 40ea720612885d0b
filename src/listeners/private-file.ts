import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { Failure } from '../contract/failure.ts';
import { errorCodeOf } from '../core/file/files.ts';

/** Returns undefined if the file is missing. Rejects a file that another user owns or can read. */
export function readPrivateFile(path: string): string | undefined {
  let file: number;
  try {
    // Without O_NONBLOCK, opening a named pipe would wait for a writer. Windows has neither flag; there the folder is private.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    // ENOTDIR: the data folder is a file. Opening the memory refuses it with a better message.
    if (errorCodeOf(cause) === 'ENOENT' || errorCodeOf(cause) === 'ENOTDIR') return undefined;
    throw notPrivate(cause);
  }
  try {
    const { mode, uid } = fstatSync(file);
    const posix = process.platform !== 'win32';
    if ((mode & 0o170000) !== 0o100000) throw notPrivate();
    if (posix && (uid !== process.getuid?.() || (mode & 0o077) !== 0)) throw notPrivate();
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

const notPrivate = (cause?: unknown): Failure =>
  new Failure(
    'unavailable',
    'endpoint.json and owner-token must be files that only their owner can read; delete both from the data folder and restart the program.',
    { cause },
  );
