import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { Failure } from '../contract/failure.ts';
import { errorCodeOf } from '../core/file/files.ts';

/** Returns the text of a file, or undefined if the file does not exist. Throws if another user owns the file or can read it. */
export function readPrivateFile(path: string): string | undefined {
  let file: number;
  try {
    // Without O_NONBLOCK, opening a named pipe would block. Windows does not have these flags, but there the data folder is
    // private.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    // ENOTDIR means that the data folder is a file. Opening the memory later reports that with a better message.
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
    'invalid_config',
    'The files endpoint.json and owner-token can be read by other users, or are not regular files; delete both from the data folder and restart Helmdeck Memory.',
    { cause },
  );
