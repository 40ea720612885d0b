import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { parse } from 'node:path';
import type { Duplex } from 'node:stream';
import { Failure } from '../../contract/failure.ts';
import type { Confinement } from './confinement.ts';
import { canBeNode, nodeEnvironment, type Runtime } from './runtime.ts';

export interface PackProcess {
  readonly pid: number | undefined;
  /** Carries messages in both directions, one per line. */
  readonly channel: Duplex;
  /** Resolves when the process has exited, with the signal that killed the process, or undefined. */
  readonly ended: Promise<NodeJS.Signals | undefined>;
  /** Kills the whole process group immediately. */
  kill(): void;
}

/** Heap limit in MiB. The parent process monitors the total memory. */
const HEAP = 192;

/**
 * Limit of the data segment in KiB, effective on Linux. Works even while the memory monitor is delayed. Node does not start with
 * a lower limit.
 */
const DATA = 1_000_000;

/**
 * Shell command that starts a pack's process and kills it when the program exits. Needed because a pack's process in an endless
 * loop would not notice that exit. A shell in the same process group waits on a pipe that only the program holds open. The pipe
 * closes however the program exits. On Windows, Node's job object does the same.
 */
const GUARDED = `ulimit -c 0; ulimit -d ${DATA}; (read -r _ <&4; kill -9 0) 3<&- & exec "$@" 4<&-`;

/** Starts a pack's process. */
export function launchPackProcess(confinement: Confinement, findRuntime: () => Runtime): PackProcess {
  if (!canBeNode()) {
    throw new Failure(
      'handler_failed',
      'The packaged desktop app cannot run your own packs, because they need Node; run `helmdeck-memory serve` instead.',
    );
  }
  const { main, args: given, files } = findRuntime();
  const node = [
    process.execPath,
    // Deny access to other files, programs, workers, native code and the debugger. From Node 25 on, also deny the network.
    '--permission',
    ...files.map((path) => `--allow-fs-read=${path}`),
    // Disable SQLite, because it opens files without a check by the permission model.
    '--no-experimental-sqlite',
    '--no-addons',
    '--disable-sigusr1',
    // Harden the process's own realm, so that it cannot be changed and cannot compile text. See child.ts.
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
    // Start a new process group, so that the whole group can be killed.
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
      // Ignore the error: the process has already exited.
    }
  };
  const { promise: ended, resolve } = Promise.withResolvers<NodeJS.Signals | undefined>();
  child.once('exit', (code, signal) => {
    // Kill the shell that still waits in the process group.
    kill();
    gone = true;
    resolve(signal ?? signalIn(code));
  });
  child.once('error', () => resolve(undefined));
  const [, , , channel, lifeline] = child.stdio as unknown as Duplex[];
  lifeline?.on('error', () => undefined);
  return { pid: child.pid, channel: channel as Duplex, ended, kill };
}

/** Returns the signal that killed the process in the sandbox. The sandbox program exits with 128 plus the signal's number. */
function signalIn(code: number | null): NodeJS.Signals | undefined {
  const entries = Object.entries(constants.signals) as [NodeJS.Signals, number][];
  return entries.find(([, number]) => code === 128 + number)?.[0];
}
