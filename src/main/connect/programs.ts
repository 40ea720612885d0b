import { execFile } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import type { HostMachine } from '../config/config.ts';
import { findUntrustedPath, isTrustedFolder } from '../trusted-path.ts';
import type { ProgramResult, LocalMachine } from './connector.ts';
import { namesInFolder } from './places.ts';

/** Time limit for a client's command. A working command finishes within seconds. */
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT = 1024 * 1024;

/**
 * Returns the absolute path of a program in the PATH or in an installer's folder. Never returns a file that other users could
 * have placed there.
 */
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

/** Returns the folders of the PATH. Ignores relative folders, because they depend on the working directory. */
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
  const own = ['.local/bin', 'bin', '.npm-global/bin', '.bun/bin', ...shims, ...nvmFolders(home)];
  return [...own.map((folder) => join(home, folder)), '/opt/homebrew/bin', '/usr/local/bin', '/usr/bin', '/bin'];
}

/**
 * Returns the folders of all Node versions that nvm installed, newest first. The folders also contain globally installed
 * programs.
 */
function nvmFolders(home: string): string[] {
  const folder = join('.nvm', 'versions', 'node');
  const major = (version: string): number => Number(/\d+/.exec(version)?.[0] ?? 0);
  const versions = namesInFolder(join(home, folder)).toSorted((one, other) => major(other) - major(one));
  return versions.map((version) => join(folder, version, 'bin'));
}

/** True if a file is executable and only its owner or root can replace it. */
export const isSafe = (path: string): boolean =>
  isTrustedFile(path) && (process.platform === 'win32' || (statSync(path).mode & 0o111) !== 0);

export function isTrustedFile(path: string): boolean {
  try {
    return statSync(path).isFile() && findUntrustedPath(path) === undefined;
  } catch {
    return false;
  }
}

/** Reads a program's version from its path or its package.json, without starting the program. */
export function versionOf(program: string | undefined): string | undefined {
  if (program === undefined) return undefined;
  const real = realpathSync(program);
  const [named] = /^\d+\.\d+\.\d+[\w.-]*$/.exec(basename(real)) ?? [];
  if (named !== undefined) return named;
  for (let folder = dirname(real); dirname(folder) !== folder; folder = dirname(folder)) {
    const file = join(folder, 'package.json');
    if (existsSync(file)) {
      const { version } = readManifest(file);
      if (typeof version === 'string') return version.slice(0, 40);
    }
  }
  return undefined;
}

function readManifest(file: string): { version?: unknown } {
  try {
    return Object(JSON.parse(readFileSync(file, 'utf8'))) as { version?: unknown };
  } catch {
    return {};
  }
}

/**
 * Returns our environment for other programs, without our settings, which contain keys, and without PATH folders in which other
 * users could place a program. Many programs are scripts that search the PATH for their interpreter.
 */
export function environmentFor({ environment }: HostMachine): Record<string, string> {
  const inherited = Object.entries(environment).filter(
    (pair): pair is [string, string] =>
      pair[1] !== undefined &&
      !pair[0].startsWith('HELMDECK_') &&
      pair[0] !== 'NODE_OPTIONS' &&
      pair[0] !== 'ELECTRON_RUN_AS_NODE',
  );
  return Object.fromEntries(inherited.map(([name, value]) => [name, name === 'PATH' ? trustedPath(value) : value]));
}

const trustedPath = (path: string): string => path.split(delimiter).filter(isAbsolute).filter(isTrustedFolder).join(delimiter);

export const localMachine = (machine: HostMachine, places = () => usualPlaces(machine)): LocalMachine => ({
  places,
  environment: machine.environment,
  platform: machine.platform,
  home: () => machine.home(),
  run(program, args, added = {}) {
    const { promise, resolve } = Promise.withResolvers<ProgramResult>();
    const own = environmentFor(machine);
    // Many programs are scripts that need the Node in the same folder as the script.
    const path = trustedPath([own['PATH'] ?? '', dirname(program)].join(delimiter));
    const options = {
      env: { ...own, PATH: path, ...added },
      // Do not run in a project folder: some clients read configuration from the working directory.
      cwd: machine.home(),
      timeout: TIMEOUT_MS,
      maxBuffer: MAX_OUTPUT,
      windowsHide: true,
    };
    const child = execFile(program, [...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? (typeof error.code === 'number' ? error.code : 1) : 0, stdout, stderr });
    });
    child.stdin?.end();
    return promise;
  },
});
