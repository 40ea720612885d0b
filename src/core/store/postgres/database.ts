import { createHash } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { Failure } from '../../../contract/failure.ts';
import { databaseFailure, isConnectionLost, StandbyError } from './database-failure.ts';

export interface DatabaseOptions {
  readonly connection: pg.ClientConfig;
  /** The schema of this memory's tables. Several memories can share one database. */
  readonly schema: string;
  /** Shorter waits for tests. */
  readonly waits?: Partial<Waits>;
}

interface Waits {
  /** Milliseconds for which a call waits for a database that cannot be reached. */
  readonly reconnect: number;
  /** Milliseconds for which a write waits for the lock of the writers. */
  readonly lock: number;
}

export type Row = Record<string, unknown>;

/** Runs queries on one connection. Queries that are sent together share one round trip, and run in order. */
export type RunQuery = <T = Row>(text: string, values?: readonly unknown[]) => Promise<T[]>;

const READERS = 2;
/**
 * Every write waits for the lock of the writers. A process that stops while it holds the lock loses it before this, because the
 * server ends its idle transaction.
 */
const WAITS: Waits = { reconnect: 5000, lock: 12_000 };
const RETRY_MS = 100;
/** Milliseconds for which the server runs a statement of a read, and of a transaction. */
const READ_MS = 10_000;
const WRITE_MS = 30_000;
/** Milliseconds by which a query may exceed these. After that, the network has lost its answer, and the connection is closed. */
const GRACE_MS = 2000;
/** Milliseconds for which a closing connection waits for its queries and for the server. */
const CLOSE_MS = 1000;
/**
 * Settings of every connection. `synchronous_commit` makes an acknowledged write durable. A transaction that stops in the middle
 * would block all other writers, so the server ends it.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  synchronous_commit: 'on',
  default_transaction_isolation: 'read\\ committed',
  idle_in_transaction_session_timeout: '10s',
  bytea_output: 'hex',
  // Every statement has an index. Before the server has statistics, it would often read and sort whole tables instead.
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
  // Planning takes longer than reading a row, and the plan of a statement does not depend on its values.
  plan_cache_mode: 'force_generic_plan',
  // Compiling a statement, or starting processes for it, takes longer than running it.
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  TimeZone: 'UTC',
};

const INT8 = 20;
const BYTEA = 17;

/** Reads `bigint` as a number, because all our numbers are below 2^53. Reads `bytea` from its hexadecimal form. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (id: number, format?: 'text' | 'binary') => {
    if (id === INT8) return Number;
    if (id === BYTEA) return (text: string) => Buffer.from(text.slice(2), 'hex');
    return pg.types.getTypeParser(id, format) as (text: string) => unknown;
  },
};

/**
 * Names of the prepared statements by their text. The server plans a named statement only once for each connection. The name depends
 * only on the text, because behind a connection pooler two processes can share a connection.
 */
const statementNames = new Map<string, string>();

function statementName(text: string): string {
  const known = statementNames.get(text);
  if (known !== undefined) return known;
  const name = createHash('sha256').update(text).digest('base64url').slice(0, 22);
  statementNames.set(text, name);
  return name;
}

/** One connection to the server. It is opened for the first query, and again after it was lost. */
class Link {
  readonly #config: pg.ClientConfig;
  readonly #opened: (client: pg.Client) => Promise<void> | void;
  /** Reads that wait for their answer. */
  reads = 0;
  #client: pg.Client | undefined;
  #opening: Promise<pg.Client> | undefined;
  #closed = false;

  constructor(config: pg.ClientConfig, opened: (client: pg.Client) => Promise<void> | void) {
    this.#config = config;
    this.#opened = opened;
  }

  client(): Promise<pg.Client> {
    if (this.#closed) return Promise.reject(closed());
    if (this.#client) return Promise.resolve(this.#client);
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #open(): Promise<pg.Client> {
    const client = new pg.Client(this.#config);
    const lost = (): void => {
      if (this.#client === client) this.#client = undefined;
    };
    client.on('error', lost);
    client.on('end', lost);
    await client.connect();
    // The driver reports a message that it cannot read as an error without a code. The answers after it cannot be trusted, and can
    // be missing, so the connection ends at once instead of after the timeout of a query.
    connectionOf(client).on('errorMessage', ({ code }: { code?: string }) => {
      if (code === undefined) this.drop(client);
    });
    try {
      await this.#opened(client);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    this.#client = client;
    return client;
  }

  /** Closes the connection without waiting for its queries, so that the next query opens another one. */
  drop(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
    // `end` would wait for the queries.
    streamOf(client).destroy();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const client = this.#client ?? (await this.#opening?.catch(() => undefined));
    if (!client) return;
    const timer = setTimeout(() => this.drop(client), CLOSE_MS);
    await client.end().catch(() => undefined);
    clearTimeout(timer);
  }
}

const closed = (): Failure => new Failure('store_unavailable', 'The memory has been closed; start Helmdeck Memory again.');

interface Connection extends EventEmitter {
  readonly stream: Duplex;
}

/** The connection of a client. The type of the driver does not show it. */
const connectionOf = (client: pg.Client): Connection => (client as unknown as { connection: Connection }).connection;
const streamOf = (client: pg.Client): Duplex => connectionOf(client).stream;

const corked = new WeakSet<Duplex>();

/** Collects the queries of the present turn, so that the system sends them together. */
function sendTogether(client: pg.Client): void {
  const stream = streamOf(client);
  if (corked.has(stream)) return;
  corked.add(stream);
  stream.cork();
  process.nextTick(() => {
    corked.delete(stream);
    stream.uncork();
  });
}

const runOn =
  (client: pg.Client): RunQuery =>
  async <T>(text: string, values: readonly unknown[] = []) => {
    sendTogether(client);
    const { rows } = await client.query({ name: statementName(text), text, values: [...values] });
    return rows as T[];
  };

/**
 * The connections to one database: one for writes, because writes are transactions, and several for reads, each of which is a
 * single query.
 */
export class Database {
  readonly schema: string;
  /** Milliseconds for which a call waits for a database that cannot be reached. */
  readonly reconnectMs: number;
  readonly #newLink: () => Link;
  readonly #writer: Link;
  /** The reader that listens, and holds locks between processes. */
  readonly #listener: Link;
  readonly #readers: readonly Link[];
  /** The names of the steps that run alone in this process. The server grants a lock to its holder a second time. */
  readonly #alone = new Set<string>();
  #closed = false;
  /** Set after the server's settings and the tables were checked. */
  isPrepared = false;
  /** False after a call waited in vain for the database, until the next call succeeds. */
  isReachable = true;
  /** Called with the payload of each notification, and after a connection was opened, because notifications may be missing. */
  onNotification: ((payload: string | undefined) => void) | undefined;

  constructor({ connection, schema, waits }: DatabaseOptions) {
    this.schema = schema;
    const { reconnect, lock } = { ...WAITS, ...waits };
    this.reconnectMs = reconnect;
    const configOf = (longest: number): pg.ClientConfig => {
      const own = { lock_timeout: `${lock}ms`, search_path: `"${schema}"`, statement_timeout: `${longest}ms` };
      const settings = Object.entries({ ...SETTINGS, ...own });
      return {
        application_name: 'helmdeck-memory',
        connectionTimeoutMillis: reconnect,
        query_timeout: longest + GRACE_MS,
        keepAlive: true,
        keepAliveInitialDelayMillis: READ_MS,
        ...connection,
        options: settings.map(([name, value]) => `-c ${name}=${value}`).join(' '),
        pipeline: true,
        types,
      };
    };
    const check = (client: pg.Client): Promise<void> => this.#requirePrimary(client);
    this.#newLink = () => new Link(configOf(WRITE_MS), check);
    this.#writer = this.#newLink();
    this.#listener = new Link(configOf(READ_MS), async (client) => {
      await check(client);
      this.#listen(client);
    });
    this.#readers = [this.#listener, ...Array.from({ length: READERS - 1 }, () => new Link(configOf(READ_MS), check))];
  }

  get channel(): string {
    return `helmdeck_memory:${this.schema}`;
  }

  /**
   * Refuses a standby, which may lack acknowledged writes. After a failover the address can lead to one for a moment, so the
   * connection is tried again. The first connection is checked with the other settings of the server.
   */
  async #requirePrimary(client: pg.Client): Promise<void> {
    if (!this.isPrepared) return;
    const { rows } = await client.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
    if (rows[0]?.standby !== false) throw new StandbyError();
  }

  #listen(client: pg.Client): void {
    // Every process holds this lock together with the others, so that a process can tell whether it is the only one.
    void client.query('SELECT pg_advisory_lock_shared(hashtextextended($1, 0))', [this.#processLock]).catch(() => undefined);
    client.on('notification', ({ payload }) => this.onNotification?.(payload));
    void client.query(`LISTEN "${this.channel}"`).then(
      () => this.onNotification?.(undefined),
      () => undefined,
    );
  }

  /** Reads with one query. A read changes nothing, so it is repeated on a new connection if its connection was lost. */
  read<T = Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    return this.retryWhileLost(async () => {
      // Reads that are sent together take different connections, so that the server runs them at the same time. A read that is
      // alone takes the same connection as the one before it, because its process on the server is awake.
      const link = this.#readers.reduce((least, each) => (each.reads < least.reads ? each : least));
      link.reads += 1;
      try {
        return await runOn(await link.client())<T>(text, values);
      } finally {
        link.reads -= 1;
      }
    });
  }

  /** The connection for transactions. Only one transaction may use it at a time. */
  writer(): Promise<pg.Client> {
    return this.#writer.client();
  }

  on(client: pg.Client): { readonly run: RunQuery; readonly query: (text: string) => Promise<unknown> } {
    const query = (text: string): Promise<unknown> => {
      sendTogether(client);
      return client.query(text);
    };
    return { run: runOn(client), query };
  }

  dropWriter(client: pg.Client): void {
    this.#writer.drop(client);
  }

  /**
   * Runs a step while no step with the same name runs in this or another process. Returns undefined if one does. The lock belongs to
   * a connection, so the server frees it when its process ends.
   */
  async alone<T>(name: string, step: () => Promise<T>): Promise<{ readonly value: T } | undefined> {
    if (this.#alone.has(name)) return undefined;
    this.#alone.add(name);
    try {
      return await this.#withLock(name, step);
    } finally {
      this.#alone.delete(name);
    }
  }

  async #withLock<T>(name: string, step: () => Promise<T>): Promise<{ readonly value: T } | undefined> {
    const lock = [`helmdeck-memory ${this.schema} ${name}`];
    const { run, taken } = await this.retryWhileLost(async () => {
      const onListener = runOn(await this.#listener.client());
      const sql = 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken';
      const [row] = await onListener<{ taken: boolean }>(sql, lock);
      return { run: onListener, taken: row?.taken === true };
    });
    if (!taken) return undefined;
    try {
      return { value: await step() };
    } finally {
      await run('SELECT pg_advisory_unlock(hashtextextended($1, 0))', lock).catch(() => undefined);
    }
  }

  /** Runs a step that reads the database as it is now, on a connection of its own. */
  async snapshot<T>(step: (run: RunQuery) => Promise<T>): Promise<T> {
    const link = this.#newLink();
    try {
      const client = await this.retryWhileLost(() => link.client());
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      return await step(runOn(client));
    } catch (error) {
      throw databaseFailure(error);
    } finally {
      await link.close();
    }
  }

  /** Whether no other process has a connection that listens to this memory. */
  async isOnlyProcess(): Promise<boolean> {
    return this.retryWhileLost(async () => {
      // The exclusive lock is free if nobody else holds the shared one. It is released at once.
      const sql = `SELECT CASE WHEN pg_try_advisory_lock(hashtextextended($1, 0))
        THEN pg_advisory_unlock(hashtextextended($1, 0)) ELSE false END AS alone`;
      const [row] = await runOn(await this.#listener.client())<{ alone: boolean }>(sql, [this.#processLock]);
      return row?.alone === true;
    });
  }

  get #processLock(): string {
    return `helmdeck-memory process ${this.schema}`;
  }

  /** Opens the connection that listens, so that a process without calls hears of a lock too. */
  async listen(): Promise<void> {
    await this.retryWhileLost(async () => void (await this.#listener.client()));
  }

  /** Repeats a step that changes nothing while the database cannot be reached, for a few seconds. */
  async retryWhileLost<T>(step: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.reconnectMs;
    for (;;) {
      try {
        if (this.#closed) throw closed();
        const result = await step();
        this.isReachable = true;
        return result;
      } catch (error) {
        const isLost = isConnectionLost(error);
        if (this.#closed || !isLost || performance.now() >= until) {
          this.isReachable = !isLost;
          throw databaseFailure(error);
        }
      }
      await delay(RETRY_MS);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    // The notification of the last commit would begin another refresh.
    this.onNotification = undefined;
    await Promise.all([this.#writer, ...this.#readers].map((link) => link.close()));
  }
}
