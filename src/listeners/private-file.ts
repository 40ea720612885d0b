import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { Failure } from '../contract/failure.ts';
import { errorCodeOf } from '../core/file/files.ts';

/** Undefined when there is none. What others may have put there, or may read, is refused. */
export function readPrivateFile(path: string): string | undefined {
  let file: number;
  try {
    // A pipe would keep us waiting for whoever writes into it. Windows has no such flags; there the folder keeps others out.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    if (errorCodeOf(cause) === 'ENOENT') return undefined;
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
    'What says where the program listens must be a file that only its owner may read; delete endpoint.json and owner-token in the data folder, and start the program again.',
    { cause },
  );
