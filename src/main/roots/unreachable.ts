import { rmSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { lazy, type SchemaOutput } from '../../contract/schema.ts';
import type { ListeningState } from '../../contract/status.ts';
import { writePrivateFile } from '../../core/file/files.ts';
import { isProcessAlive } from '../../listeners/endpoint.ts';
import { readPrivateFile } from '../../listeners/private-file.ts';

const FILE = 'unreachable.json';

/** State of a program that holds the memory but accepts no connections, written for the command line. */
const Unreachable = lazy(() =>
  z.object({ pid: z.int().min(1), at: z.enum(['paused', 'failed']), why: z.string().exactOptional() }),
);
export type Unreachable = SchemaOutput<typeof Unreachable>;

/** Written while the program accepts no connections, so that commands can say why. Pass undefined when the program exits. */
export function recordUnreachable(folder: string, state: ListeningState | undefined): void {
  try {
    const file = join(folder, FILE);
    if (state === undefined || state.at === 'listening') rmSync(file, { force: true });
    else writePrivateFile(file, `${JSON.stringify({ pid: process.pid, ...state } satisfies Unreachable)}\n`);
  } catch {
    // Pausing must also work on a full disk; commands then say that the program does not answer.
  }
}

/** Returns the state if that program is still running. */
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
    ? `Helmdeck Memory is running (process ${pid}) and paused. Resume it in its window or its tray menu, or quit it.`
    : `Helmdeck Memory is running (process ${pid}) and cannot be reached${why === undefined ? '.' : `: ${why}`} Try again in its window, or quit it.`;
