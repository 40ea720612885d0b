import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { Failure } from '../contract/failure.ts';

/** Whole or not at all, for its owner alone, and in the place of a link rather than where it points. */
export function writePrivately(path: string, content: string): void {
  const draft = `${path}.new`;
  // One that was left there may be readable by others, or lead elsewhere.
  rmSync(draft, { force: true });
  const file = openSync(draft, 'wx', 0o600);
  try {
    writeFileSync(file, content);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}

/** Undefined when there is none. What others may have put there, or may read, is refused. */
export function readPrivately(path: string): string | undefined {
  let file: number;
  try {
    // Windows has no such flag; there the folder keeps others out.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined;
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
    'store_unavailable',
    'What says where the program listens must be a file that only its owner may read; delete endpoint.json and owner-token in the data folder, and start the program again.',
    { cause },
  );

export const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');
