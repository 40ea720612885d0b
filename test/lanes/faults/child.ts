import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { Line } from './ops.ts';

const WORKER = new URL('worker.ts', import.meta.url).pathname;

export interface Child {
  /** The process id of the worker, also when it runs inside another program. */
  readonly pid: number;
  /** Resolves after the last line was read. */
  readonly ended: Promise<Ended>;
  kill(): void;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  readonly figures: Readonly<Record<string, number | string>>;
}

interface Way {
  /** A program with arguments that runs the worker, for example strace. */
  readonly inside?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  hear?(line: Line): void;
  /** After this many milliseconds without a line, the worker counts as hung. */
  readonly patience?: number;
}

/** Starts a worker. Resolves when it is ready or has exited. It reports through a pipe, so a line that was read was sent before any kill. */
export async function startWorker(task: string, given: object, way: Way = {}): Promise<Child> {
  const [command, ...rest] = [...(way.inside ?? []), process.execPath, WORKER, task, JSON.stringify(given)];
  const child = spawn(command, rest, {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...way.environment },
  });
  let pid = child.pid ?? 0;
  let stderr = '';
  let figures: Ended['figures'] = {};
  let hung = false;
  child.stderr?.on('data', (text: Buffer) => (stderr += text.toString()));
  const { promise: ready, resolve: isReady } = Promise.withResolvers<void>();
  const kill = (): void => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The worker has just exited by itself.
    }
  };
  const hangs = (): void => {
    hung = true;
    kill();
    child.kill('SIGKILL');
  };
  let patience = setTimeout(hangs, way.patience ?? 120_000);
  const lines = createInterface({ input: child.stdio[3] as Readable });
  lines.on('line', (text) => {
    const line = parsed(text);
    if (!line) return;
    patience = (clearTimeout(patience), setTimeout(hangs, way.patience ?? 120_000));
    if (line.says === 'ready') {
      pid = line.pid;
      isReady();
    } else if (line.says === 'done') figures = line.figures;
    way.hear?.(line);
  });
  const ended = Promise.all([once(child, 'close'), once(lines, 'close')]).then(([[code, signal]]) => {
    clearTimeout(patience);
    if (hung) throw new Error(`the worker hung at ${task}: ${stderr.slice(-500)}`);
    return { code: code as number | null, signal: signal as NodeJS.Signals | null, stderr, figures };
  });
  ended.catch(() => undefined);
  await Promise.race([ready, ended]);
  return {
    get pid() {
      return pid;
    },
    ended,
    kill,
  };
}

/** Runs a worker that must exit with code 0. */
export async function runWorker(task: string, given: object, way: Way = {}): Promise<Ended> {
  const child = await startWorker(task, given, way);
  const ended = await child.ended;
  if (ended.code !== 0)
    throw new Error(`the worker broke at ${task} (${ended.signal ?? ended.code}): ${ended.stderr.slice(-1500)}`);
  return ended;
}

/** Kills the worker after the given milliseconds, unless it has exited. */
export async function killAfter(child: Child, ms: number): Promise<Ended> {
  await Promise.race([wait(ms), child.ended]);
  child.kill();
  return child.ended;
}

/** Parses a line. A kill can truncate a line; ignore it then. */
function parsed(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}
