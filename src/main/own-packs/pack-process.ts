import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { parse } from 'node:path';
import type { Duplex } from 'node:stream';
import { Failure } from '../../contract/failure.ts';
import type { Confinement } from './confinement.ts';
import { canBeNode, findRuntime, nodeEnvironment } from './runtime.ts';

/** A process that runs somebody's code. */
export interface PackProcess {
  readonly pid: number | undefined;
  /** Both ways, a message a line. */
  readonly channel: Duplex;
  /** Fulfils when it is gone, with the signal that ended it, if one did. */
  readonly ended: Promise<NodeJS.Signals | undefined>;
  /** At once, with all that belongs to it. */
  kill(): void;
}

/** MiB for JavaScript's own objects. What else a process takes is watched from outside. */
const HEAP = 192;

/** KiB that Linux gives it at most, also while nobody has the time to watch. With less Node does not start. */
const DATA = 1_000_000;

/**
 * A process in an endless loop does not notice that the program has gone, and nothing else would end it. So a second one, a
 * shell that waits, shares its group: it reads from a pipe that only the program holds, and that closes with the program
 * however it ends. Windows ends what a program started together with it.
 */
const GUARDED = `ulimit -c 0; ulimit -d ${DATA}; (read -r _ <&4; kill -9 0) 3<&- & exec "$@" 4<&-`;

/** The one place that knows what a pack's process is. */
export function launchPackProcess(confinement: Confinement): PackProcess {
  if (!canBeNode()) {
    throw new Failure(
      'handler_failed',
      'Packs of your own need Node, which the packed desktop is not; run them with helmdeck-memory serve, or from the sources.',
    );
  }
  const { main, args: given, files } = findRuntime();
  const node = [
    process.execPath,
    // No files but these, no programs, workers, native code or debugger; from Node 25 on no network either.
    '--permission',
    ...files.map((path) => `--allow-fs-read=${path}`),
    // It opens files past the permission model.
    '--no-experimental-sqlite',
    '--no-addons',
    '--disable-sigusr1',
    // See child.ts: the realm of the process itself can neither be changed nor compile text.
    '--disallow-code-generation-from-strings',
    '--frozen-intrinsics',
    '--experimental-vm-modules',
    '--no-warnings',
    `--max-old-space-size=${HEAP}`,
    main,
    ...given,
  ];
  const confined = confinement.wrap(node, files);
  const [program = '', ...args] = process.platform === 'win32' ? confined : ['/bin/sh', '-c', GUARDED, 'sh', ...confined];
  const child = spawn(program, args, {
    env: nodeEnvironment(),
    cwd: parse(process.execPath).root,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    // A group of its own, which is ended as one.
    detached: process.platform !== 'win32',
    windowsHide: true,
  });
  return asLaunched(child);
}

function asLaunched(child: ChildProcess): PackProcess {
  let gone = false;
  const kill = (): void => {
    if (child.pid === undefined || gone) return;
    try {
      if (process.platform === 'win32') child.kill('SIGKILL');
      else process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  };
  const { promise: ended, resolve } = Promise.withResolvers<NodeJS.Signals | undefined>();
  child.once('exit', (code, signal) => {
    // Its guard waits still.
    kill();
    gone = true;
    resolve(signal ?? signalIn(code));
  });
  child.once('error', () => resolve(undefined));
  const [, , , channel, lifeline] = child.stdio as unknown as Duplex[];
  lifeline?.on('error', () => undefined);
  return { pid: child.pid, channel: channel as Duplex, ended, kill };
}

/** A program that confines another one ends with 128 and the number of the signal that ended that one. */
function signalIn(code: number | null): NodeJS.Signals | undefined {
  const entries = Object.entries(constants.signals) as [NodeJS.Signals, number][];
  return entries.find(([, number]) => code === 128 + number)?.[0];
}
