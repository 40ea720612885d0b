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
  if (platform === 'win32') return among(inNetstat(await outputOf(NETSTAT, ['-ano', '-p', 'TCP']), port), pid);
  return among(inLsof(await outputOf('/usr/sbin/lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fp'])), pid);
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

const NETSTAT = win32.join(process.env['SystemRoot'] ?? 'C:\\Windows', 'System32', 'NETSTAT.EXE');
const LISTEN = '0A';

async function onLinux(port: number, pid: number): Promise<PortOwner> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((table) => readFile(table, 'latin1').catch(() => '')));
  const sockets = new Set(tables.flatMap((table) => listening(table, port)));
  if (sockets.size === 0) return 'nobody';
  const folder = `/proc/${pid}/fd`;
  const held = new Set(
    await Promise.all((await readdir(folder).catch(() => [])).map((fd) => readlink(`${folder}/${fd}`).catch(() => ''))),
  );
  // One that listens beside it, on the same port of another address, may be reached instead.
  return [...sockets].every((socket) => held.has(socket)) ? 'it' : 'another';
}

/** What the sockets that listen on a port are called, from a table of the kernel. */
function listening(table: string, port: number): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table
    .split('\n')
    .slice(1)
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(wanted) === true && state === LISTEN)
    .map((columns) => `socket:[${columns[9]}]`);
}

function among(pids: readonly number[], pid: number): PortOwner {
  if (pids.length === 0) return 'nobody';
  return pids.every((one) => one === pid) ? 'it' : 'another';
}

/**
 * A process a line, each begun with p.
 * @internal
 */
export const inLsof = (text: string): number[] => [...text.matchAll(/^p(\d+)$/gm)].map(([, pid]) => Number(pid));

/**
 * By the columns, since the words of states are in the language of the machine: who listens is connected to nobody.
 * @internal
 */
export const inNetstat = (text: string, port: number): number[] =>
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
