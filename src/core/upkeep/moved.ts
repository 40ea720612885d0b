import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';

/**
 * Names in the table `meta` that mark the target of an unfinished move, and a memory that was moved away. A database has both until
 * the file to which it was moved has its name.
 */
export const MOVING = 'moving';
export const MOVED = 'moved';
/** The target of an unfinished move to a file. The move resumes with it. */
export const MOVING_FILE = 'memory.moving.db';

/** Throws if a move into the data folder has not finished. */
export function requireNoMove(folder: string): void {
  if (!existsSync(join(folder, MOVING_FILE))) return;
  throw new Failure('invalid_config', 'A move into this data folder has not finished. Run helmdeck-memory move --to file again.');
}

/** Throws if a file was moved to a database, because two copies of a memory must not be used at the same time. */
export function requireFileHere(meta: (name: string) => unknown): void {
  const moved = meta(MOVED);
  if (typeof moved !== 'string') return;
  throw new Failure(
    'invalid_config',
    `This memory was moved to ${moved}. Set HELMDECK_DATABASE_URL to use it there, or move it back with: helmdeck-memory move --to file.`,
  );
}

/**
 * Throws if the memory was moved away from a database, or is being moved into it. Only the owner, who starts the program, learns the
 * new place: it contains a path or an address.
 */
export function requireServerHere(meta: (name: string) => unknown, { namesPlace }: { namesPlace: boolean }): void {
  const moved = meta(MOVED);
  if (typeof moved === 'string' && !namesPlace)
    throw new Failure('invalid_config', 'This memory was moved to another place. Ask its owner where it is now.');
  if (typeof moved === 'string') {
    throw new Failure(
      'invalid_config',
      `This memory was moved to ${moved}. Unset HELMDECK_DATABASE_URL to use it there, or move it back with: helmdeck-memory move --to database.`,
    );
  }
  if (meta(MOVING) === undefined) return;
  throw new Failure(
    'invalid_config',
    'A move into this database has not finished. Run helmdeck-memory move --to database again where the memory is now.',
  );
}
