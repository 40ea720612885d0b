import { execFile } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import type { HostMachine } from '../config/config.ts';
import { findUntrustedPath } from '../trusted-path.ts';
import type { ProgramResult, LocalMachine } from './connector.ts';
import { namesInFolder } from './places.ts';

/** A client's own command asks nobody and answers within seconds. */
const PATIENCE_MS = 60_000;
const MOST_OUTPUT = 1024 * 1024;

/** The absolute path of a program: from the PATH, or where installers put it. Never one that others could have put there. */
export function findProgram(
  machine: LocalMachine,
  name: string,
  places: readonly string[] = [],
  fits: (path: string) => boolean = () => true,
): string | undefined {
  const file = machine.platform === 'win32' ? `${name}.exe` : name;
  return [...pathOf(machine), ...places, ...machine.places()]
    .map((folder) => join(folder, file))
    .find((path) => isSafe(path) && fits(path));
}

/** A relative folder would be one of wherever we were started. */
const pathOf = ({ environment }: HostMachine): string[] => (environment['PATH'] ?? '').split(delimiter).filter(isAbsolute);

function usualPlaces(machine: HostMachine): string[] {
  if (machine.platform === 'win32') {
    const { ProgramFiles, LOCALAPPDATA } = machine.environment;
    return [ProgramFiles && join(ProgramFiles, 'nodejs'), LOCALAPPDATA && join(LOCALAPPDATA, 'Programs')].filter(
      (one) => one !== undefined && one !== '',
    ) as string[];
  }
  const home = machine.home();
  const shims = ['.volta/bin', '.asdf/shims', '.local/share/mise/shims', '.local/share/pnpm', 'Library/pnpm'];
  const own = ['.local/bin', 'bin', '.npm-global/bin', '.bun/bin', ...shims, ...ofNvm(home)];
  return [...own.map((folder) => join(home, folder)), '/opt/homebrew/bin', '/usr/local/bin', '/usr/bin', '/bin'];
}

/** Its Nodes, newest first, each with the programs that were installed with it. */
function ofNvm(home: string): string[] {
  const folder = join('.nvm', 'versions', 'node');
  const major = (version: string): number => Number(/\d+/.exec(version)?.[0] ?? 0);
  const versions = namesInFolder(join(home, folder)).toSorted((one, other) => major(other) - major(one));
  return versions.map((version) => join(folder, version, 'bin'));
}

/** A program that can be run, and that nobody but its owner, or root, can replace. */
export const isSafe = (path: string): boolean =>
  isTrustedFile(path) && (process.platform === 'win32' || (statSync(path).mode & 0o111) !== 0);

export function isTrustedFile(path: string): boolean {
  try {
    return statSync(path).isFile() && findUntrustedPath(path) === undefined;
  } catch {
    return false;
  }
}

/** What its package says, without starting it. */
export function versionOf(program: string | undefined): string | undefined {
  if (program === undefined) return undefined;
  const real = realpathSync(program);
  const [named] = /^\d+\.\d+\.\d+[\w.-]*$/.exec(basename(real)) ?? [];
  if (named !== undefined) return named;
  for (let folder = dirname(real); dirname(folder) !== folder; folder = dirname(folder)) {
    const file = join(folder, 'package.json');
    if (existsSync(file)) {
      const { version } = described(file);
      if (typeof version === 'string') return version.slice(0, 40);
    }
  }
  return undefined;
}

function described(file: string): { version?: unknown } {
  try {
    return Object(JSON.parse(readFileSync(file, 'utf8'))) as { version?: unknown };
  } catch {
    return {};
  }
}

/** What a program of others' is started with. Keys of ours stand in our environment; none of it goes along. */
export const environmentFor = ({ environment }: HostMachine): Record<string, string> =>
  Object.fromEntries(
    Object.entries(environment).filter(
      (pair): pair is [string, string] =>
        pair[1] !== undefined &&
        !pair[0].startsWith('HELMDECK_') &&
        pair[0] !== 'NODE_OPTIONS' &&
        pair[0] !== 'ELECTRON_RUN_AS_NODE',
    ),
  );

export const localMachine = (machine: HostMachine, places = () => usualPlaces(machine)): LocalMachine => ({
  places,
  environment: machine.environment,
  platform: machine.platform,
  home: () => machine.home(),
  run(program, args, added = {}) {
    const { promise, resolve } = Promise.withResolvers<ProgramResult>();
    const own = environmentFor(machine);
    // Many are scripts of the Node that lies beside them.
    const path = [...(own['PATH'] ?? '').split(delimiter), dirname(program)].filter(isAbsolute).join(delimiter);
    const options = {
      env: { ...own, PATH: path, ...added },
      // Away from any project: some clients read what lies in the folder that they are started in.
      cwd: machine.home(),
      timeout: PATIENCE_MS,
      maxBuffer: MOST_OUTPUT,
      windowsHide: true,
    };
    const child = execFile(program, [...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? (typeof error.code === 'number' ? error.code : 1) : 0, stdout, stderr });
    });
    child.stdin?.end();
    return promise;
  },
});
