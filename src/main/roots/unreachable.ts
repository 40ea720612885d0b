import { rmSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { lazy, type SchemaOutput } from '../../contract/schema.ts';
import type { ListeningState } from '../../contract/status.ts';
import { writePrivateFile } from '../../core/file/files.ts';
import { isProcessAlive } from '../../listeners/endpoint.ts';
import { readPrivateFile } from '../../listeners/private-file.ts';

const FILE = 'unreachable.json';

/** Contents of unreachable.json. Tells other processes why the program that has the memory open accepts no connections. */
const Unreachable = lazy(() =>
  z.object({ pid: z.int().min(1), at: z.enum(['paused', 'failed']), why: z.string().exactOptional() }),
);
export type Unreachable = SchemaOutput<typeof Unreachable>;

/**
 * Writes unreachable.json if the program accepts no connections. Otherwise deletes the file. Pass undefined when the program
 * exits.
 */
export function recordUnreachable(folder: string, state: ListeningState | undefined): void {
  try {
    const file = join(folder, FILE);
    if (state === undefined || state.at === 'listening') rmSync(file, { force: true });
    else writePrivateFile(file, `${JSON.stringify({ pid: process.pid, ...state } satisfies Unreachable)}\n`);
  } catch {
    // Ignore the error, because pausing must work even on a full disk. Without the file, commands only report that the
    // program does not respond.
  }
}

/** Reads unreachable.json. Returns undefined if the program that wrote the file is no longer running. */
export function readUnreachable(folder: string): Unreachable | undefined {
  try {
    const { success, data } = Unreachable().safeParse(JSON.parse(readPrivateFile(join(folder, FILE)) ?? ''));
    return success && isProcessAlive(data.pid) ? data : undefined;
  } catch {
    return undefined;
  }
}

export const describeUnreachable = ({ pid, at, why }: Unreachable): string =>
  at === 'paused'
    ? `Helmdeck Memory is running (process ${pid}) but paused. Resume it in its window or its tray menu, or quit it.`
    : `Helmdeck Memory is running (process ${pid}) but cannot be reached${why === undefined ? '.' : `: ${why}`} Try again in its window, or quit it.`;
