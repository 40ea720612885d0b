import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { inElectron, nodeEnvironment } from './runtime.ts';

/** An operating system sandbox around a pack's process, in addition to Node's permission model. */
export interface Confinement {
  readonly name: 'bubblewrap' | 'seatbelt' | 'none';
  /** Returns a command that runs the given command in a sandbox that can read only `files` and the files that Node needs. */
  readonly wrap: (command: readonly string[], files: readonly string[]) => readonly string[];
}

/** @internal Used if the machine has no sandbox that works. */
export const NO_CONFINEMENT: Confinement = { name: 'none', wrap: (command) => command };

/** Fixed paths of Bubblewrap. PATH is not searched, because an attacker could place a program with the same name there. */
const BUBBLEWRAP = ['/usr/bin/bwrap', '/bin/bwrap', '/run/current-system/sw/bin/bwrap'];
const SANDBOX_EXEC = '/usr/bin/sandbox-exec';

/** Folders and files in which Node's shared libraries can be installed. */
const LIBRARIES = [
  '/lib',
  '/lib32',
  '/lib64',
  '/usr/lib',
  '/usr/lib32',
  '/usr/lib64',
  '/usr/local/lib',
  '/nix/store',
  '/etc/ld.so.cache',
];

/**
 * The sandbox on Linux: separate namespaces (processes, network, users and others), no capabilities, and a read-only root without
 * the user's files.
 */
const bubblewrap = (program: string): Confinement => ({
  name: 'bubblewrap',
  wrap: (command, files) => [
    program,
    '--unshare-all',
    '--die-with-parent',
    '--cap-drop',
    'ALL',
    ...LIBRARIES.flatMap((path) => ['--ro-bind-try', path, path]),
    ...[nodeFiles(), ...files].flatMap((path) => ['--ro-bind', path, path]),
    '--remount-ro',
    '/',
    '--chdir',
    '/',
    '--',
    ...command,
  ],
});

/**
 * The sandbox on macOS: denies everything except reading the files that Node needs. Based on Apple's profiles; not yet tested on
 * a Mac.
 */
const seatbelt: Confinement = {
  name: 'seatbelt',
  wrap(command, files) {
    const subpaths = ['/usr/lib', '/System', '/opt/homebrew', '/usr/local/Cellar', '/usr/local/opt', '/usr/local/lib'];
    const readable = [...subpaths, nodeFiles(), ...files].map((path) => `(subpath ${JSON.stringify(path)})`).join(' ');
    const profile = [
      '(version 1)',
      '(deny default)',
      '(import "system.sb")',
      `(allow process-exec (literal ${JSON.stringify(process.execPath)}))`,
      '(allow signal (target self))',
      '(allow sysctl-read)',
      `(allow file-read* ${readable})`,
      '(deny network*)',
    ].join('\n');
    return [SANDBOX_EXEC, '-p', profile, ...command];
  },
};

/** Returns the path that Node needs: its binary, or in Electron the binary's folder, because Electron reads more files there. */
const nodeFiles = (): string => (inElectron ? dirname(process.execPath) : process.execPath);

let found: Promise<Confinement> | undefined;

/**
 * Returns the sandbox that works on this machine, and tests the sandbox only once. A test is needed because an installed sandbox
 * program can be forbidden to create a sandbox.
 */
export const findConfinement = (): Promise<Confinement> => (found ??= probe());

async function probe(): Promise<Confinement> {
  for (const candidate of candidates()) if (await isEffective(candidate)) return candidate;
  return NO_CONFINEMENT;
}

function candidates(): readonly Confinement[] {
  if (process.platform === 'linux') return BUBBLEWRAP.filter(isTheSystems).slice(0, 1).map(bubblewrap);
  if (process.platform === 'darwin' && existsSync(SANDBOX_EXEC)) return [seatbelt];
  return [];
}

/** True if only root can replace the program. Another user's replacement would run with the owner's rights. */
function isTheSystems(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true && stats.uid === 0 && (stats.mode & 0o022) === 0;
}

const TRIAL_MS = 20_000;

const CONFINED = 'neither read, nor written, nor connected';

/** Test script. Prints `CONFINED` if the sandbox stops it from reading and writing a file and from connecting to a port. */
const TRIAL = `
const fs = require('node:fs');
const [, file, port] = process.argv;
const fails = (attempt) => { try { attempt(); return false; } catch { return true; } };
if (!fails(() => fs.readFileSync(file)) || !fails(() => fs.writeFileSync(file, 'written'))) process.exit(3);
const socket = require('node:net').connect(Number(port), '127.0.0.1');
socket.on('connect', () => process.exit(4)).on('error', () => process.stdout.write(${JSON.stringify(CONFINED)}));`;

/**
 * Tests the sandbox. True if Node starts in it and there can neither read or write a file nor connect to a port of this process.
 *
 * @internal
 */
export async function isEffective({ wrap: around }: Confinement): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'helmdeck-trial-'));
  const file = join(folder, 'file');
  const server = createServer((socket) => socket.destroy());
  try {
    writeFileSync(file, 'read', { mode: 0o600 });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const [program = '', ...args] = around([process.execPath, '-e', TRIAL, file, String(port)], []);
    const { stdout } = await promisify(execFile)(program, args, { env: nodeEnvironment(), cwd: '/', timeout: TRIAL_MS });
    return stdout === CONFINED;
  } catch {
    return false;
  } finally {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
