import { execFile } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { win32 } from 'node:path';

/** Who listens on a port of this machine: the process that is asked about, another one, or none. */
export type PortOwner = 'it' | 'another' | 'nobody';

/** A program that took the port first would be sent what is to be embedded: so nothing is sent before this says `it` (R-EMB-05). */
export async function ownerOf(port: number, pid: number): Promise<PortOwner> {
  const { platform } = process;
  if (platform === 'linux') return onLinux(port, pid);
  if (platform === 'win32') return among(pidsInNetstat(await outputOf(NETSTAT, ['-ano', '-p', 'TCP']), port), pid);
  return among(pidsInLsof(await outputOf(LSOF, ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fp'])), pid);
}

/**
 * Whether all who listen there are programs of this user, of root, or of the user that Ollama's installer makes for it: nobody else of
 * this machine can then be sent what was meant for an Ollama that does not run. Windows does not tell this to everybody, so
 * there it is not asked (R-EMB-07).
 */
export async function isOwnedByTrustedUser(port: number): Promise<boolean> {
  const { platform } = process;
  if (platform === 'win32') return true;
  const users =
    platform === 'linux'
      ? (await listening(port)).map(({ user }) => user)
      : usersInLsof(await outputOf(LSOF, ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpu']));
  const ours = new Set([0, process.getuid?.(), ...serviceUsers(await readFile('/etc/passwd', 'utf8').catch(() => ''))]);
  return users.length > 0 && users.every((user) => ours.has(user));
}

/** One that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once('error', reject).listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => {
    const address = server.address();
    server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
  });
  return promise;
}

const LSOF = '/usr/sbin/lsof';
const NETSTAT = win32.join(process.env['SystemRoot'] ?? 'C:\\Windows', 'System32', 'NETSTAT.EXE');
const LISTEN = '0A';

async function onLinux(port: number, pid: number): Promise<PortOwner> {
  const sockets = await listening(port);
  if (sockets.length === 0) return 'nobody';
  const folder = `/proc/${pid}/fd`;
  const held = new Set(
    await Promise.all((await readdir(folder).catch(() => [])).map((fd) => readlink(`${folder}/${fd}`).catch(() => ''))),
  );
  // One that listens beside it, on the same port of another address, may be reached instead.
  return sockets.every(({ name }) => held.has(name)) ? 'it' : 'another';
}

interface Listening {
  /** As the folder of a process calls it. */
  readonly name: string;
  readonly user: number;
}

/** The sockets that listen on a port, from the tables of the kernel. */
async function listening(port: number): Promise<Listening[]> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((table) => readFile(table, 'latin1').catch(() => '')));
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return tables
    .flatMap((table) => table.split('\n').slice(1))
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(wanted) === true && state === LISTEN)
    .map((columns) => ({ name: `socket:[${columns[9]}]`, user: Number(columns[7]) }));
}

function among(pids: readonly number[], pid: number): PortOwner {
  if (pids.length === 0) return 'nobody';
  return pids.every((one) => one === pid) ? 'it' : 'another';
}

/**
 * A process a line, each begun with p.
 * @internal
 */
export const pidsInLsof = (text: string): number[] => [...text.matchAll(/^p(\d+)$/gm)].map(([, pid]) => Number(pid));

/**
 * The user of each, behind u.
 * @internal
 */
export const usersInLsof = (text: string): number[] => [...text.matchAll(/^u(\d+)$/gm)].map(([, user]) => Number(user));

/**
 * From a list of users, where there is one of Ollama's own.
 * @internal
 */
export const serviceUsers = (passwd: string): number[] =>
  [...passwd.matchAll(/^ollama:[^:\n]*:(\d+):/gm)].map(([, user]) => Number(user));

/**
 * By the columns, since the words of states are in the language of the machine: who listens is connected to nobody.
 * @internal
 */
export const pidsInNetstat = (text: string, port: number): number[] =>
  text
    .split('\n')
    .map((row) => row.trim().split(/\s+/))
    .filter(
      ([kind, local, remote]) =>
        kind === 'TCP' && local?.endsWith(`:${port}`) === true && /^(0\.0\.0\.0|\[::\]):0$/.test(remote ?? ''),
    )
    .map((columns) => Number(columns.at(-1)));

function outputOf(program: string, args: readonly string[]): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  // Without an answer nobody is known to listen, and nothing is sent.
  execFile(program, args, { timeout: 5000, env: {}, windowsHide: true }, (_error, stdout) => resolve(stdout));
  return promise;
}
