import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { parse } from 'node:path';
import type { Duplex } from 'node:stream';
import { Failure } from '../../contract/failure.ts';
import type { Confinement } from './confinement.ts';
import { canBeNode, findRuntime, nodeEnvironment } from './runtime.ts';

/** A process that runs a pack's code. */
export interface PackProcess {
  readonly pid: number | undefined;
  /** Carries messages in both directions, one per line. */
  readonly channel: Duplex;
  /** Resolves once the process has exited, with the signal that ended it, if any. */
  readonly ended: Promise<NodeJS.Signals | undefined>;
  /** Kills the whole process group immediately. */
  kill(): void;
}

/** Heap limit in MiB. The total memory is watched from outside. */
const HEAP = 192;

/** Data segment limit on Linux in KiB, enforced even while the watcher is delayed. Node does not start with less. */
const DATA = 1_000_000;

/**
 * Kills the process when the program exits; a process in an endless loop would not notice. A waiting shell in the same process
 * group reads a pipe that only the program holds, and which closes however the program ends. On Windows, Node's job object does
 * this.
 */
const GUARDED = `ulimit -c 0; ulimit -d ${DATA}; (read -r _ <&4; kill -9 0) 3<&- & exec "$@" 4<&-`;

/** Starts a pack's process. No other code knows how. */
export function launchPackProcess(confinement: Confinement): PackProcess {
  if (!canBeNode()) {
    throw new Failure(
      'handler_failed',
      'The packaged desktop app cannot run your own packs, because they need Node; use helmdeck-memory serve instead.',
    );
  }
  const { main, args: given, files } = findRuntime();
  const node = [
    process.execPath,
    // No other files, no programs, workers, native code or debugger; from Node 25 on no network either.
    '--permission',
    ...files.map((path) => `--allow-fs-read=${path}`),
    // SQLite opens files without asking the permission model.
    '--no-experimental-sqlite',
    '--no-addons',
    '--disable-sigusr1',
    // Harden the process's own realm: it can neither be changed nor compile text. See child.ts.
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
    // A separate process group, so that one signal ends all its processes.
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
      // The process has already exited.
    }
  };
  const { promise: ended, resolve } = Promise.withResolvers<NodeJS.Signals | undefined>();
  child.once('exit', (code, signal) => {
    // The guard shell is still waiting.
    kill();
    gone = true;
    resolve(signal ?? signalIn(code));
  });
  child.once('error', () => resolve(undefined));
  const [, , , channel, lifeline] = child.stdio as unknown as Duplex[];
  lifeline?.on('error', () => undefined);
  return { pid: child.pid, channel: channel as Duplex, ended, kill };
}

/** A sandbox program exits with 128 plus the number of the signal that ended its child. */
function signalIn(code: number | null): NodeJS.Signals | undefined {
  const entries = Object.entries(constants.signals) as [NodeJS.Signals, number][];
  return entries.find(([, number]) => code === 128 + number)?.[0];
}
