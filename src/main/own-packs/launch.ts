import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, parse } from 'node:path';
import type { Duplex } from 'node:stream';
import { Failure } from '../../contract/failure.ts';

/** A process that runs somebody's code. */
export interface Launched {
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

const BUILT = 'own-pack.cjs';

const inElectron = 'electron' in process.versions;

/** Packed, Electron takes no orders to be Node, and would start as a second desktop. */
const canBeNode = (): boolean => !inElectron || 'defaultApp' in process;

/** The one place that knows what a pack's process is. */
export function launch(): Launched {
  if (!canBeNode()) {
    throw new Failure(
      'handler_failed',
      'Packs of your own need Node, which the packed desktop is not; run them with helmdeck-memory serve, or from the sources.',
    );
  }
  const runtime = runtimeFile();
  const node = [
    process.execPath,
    '--permission',
    // It opens files past the permission model.
    '--no-experimental-sqlite',
    // From Node 25 on the network is closed unless this is said; a pack is the same under each.
    ...(process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []),
    ...readable(runtime).map((path) => `--allow-fs-read=${path}`),
    `--max-old-space-size=${HEAP}`,
    runtime,
  ] as const;
  const [program, ...args]: readonly [string, ...string[]] =
    process.platform === 'win32' ? node : ['/bin/sh', '-c', GUARDED, 'sh', ...node];
  const child = spawn(program, args, {
    // Nothing of ours: keys stand in our environment, and the way to the keychain.
    env: inElectron ? { ELECTRON_RUN_AS_NODE: '1' } : {},
    cwd: parse(process.execPath).root,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    // A group of its own, which is ended as one.
    detached: process.platform !== 'win32',
    windowsHide: true,
  });
  return asLaunched(child);
}

function asLaunched(child: ChildProcess): Launched {
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
  child.once('exit', (_code, signal) => {
    // Its guard waits still.
    kill();
    gone = true;
    resolve(signal ?? undefined);
  });
  child.once('error', () => resolve(undefined));
  const [, , , channel, lifeline] = child.stdio as unknown as Duplex[];
  lifeline?.on('error', () => undefined);
  return { pid: child.pid, channel: channel as Duplex, ended, kill };
}

/** Beside us as a source, and beside the program when it is built. */
function runtimeFile(): string {
  const here = import.meta.dirname;
  const places = [join(here, 'child.ts'), join(here, BUILT), join(here, '..', BUILT)];
  return places.find((path) => existsSync(path)) ?? join(here, BUILT);
}

/** Itself, and what it imports: zod, which the build puts into it. */
function readable(runtime: string): readonly string[] {
  if (basename(runtime) === BUILT) return [runtime];
  return [runtime, dirname(createRequire(import.meta.url).resolve('zod/package.json'))];
}
