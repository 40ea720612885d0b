import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { databaseFailure, isConnectionLost } from './database-failure.ts';

export interface DatabaseOptions {
  readonly connection: pg.ClientConfig;
  /** The schema of this memory's tables. Several memories can share one database. */
  readonly schema: string;
}

export type Row = Record<string, unknown>;

/** Runs queries on one connection. Queries that are sent together share one round trip, and run in order. */
export type RunQuery = <T = Row>(text: string, values?: readonly unknown[]) => Promise<T[]>;

const READERS = 2;
/** Milliseconds for which a call waits for a database that cannot be reached. */
const PATIENCE_MS = 5000;
const RETRY_MS = 100;
/**
 * Settings of every connection. `synchronous_commit` makes an acknowledged write durable. A transaction that stops in the middle
 * would block all other writers, so the server ends it.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  synchronous_commit: 'on',
  default_transaction_isolation: 'read\\ committed',
  idle_in_transaction_session_timeout: '10s',
  statement_timeout: '60s',
  lock_timeout: '30s',
  bytea_output: 'hex',
  // Every statement has an index. Before the server has statistics, it would often read and sort whole tables instead.
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
  // Compiling a statement takes longer than running it.
  jit: 'off',
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

/** Names of the prepared statements by their text. The server plans a named statement only once for each connection. */
const statementNames = new Map<string, string>();

function statementName(text: string): string {
  const known = statementNames.get(text);
  if (known !== undefined) return known;
  const name = `s${statementNames.size}`;
  statementNames.set(text, name);
  return name;
}

/** One connection to the server. It is opened for the first query, and again after it was lost. */
class Link {
  readonly #config: pg.ClientConfig;
  readonly #opened: (client: pg.Client) => void;
  #client: pg.Client | undefined;
  #opening: Promise<pg.Client> | undefined;

  constructor(config: pg.ClientConfig, opened: (client: pg.Client) => void = () => undefined) {
    this.#config = config;
    this.#opened = opened;
  }

  client(): Promise<pg.Client> {
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
    this.#client = client;
    this.#opened(client);
    return client;
  }

  /** Closes the connection without waiting for its queries, so that the next query opens another one. */
  drop(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
    // `end` would wait for the queries. The type of the driver does not show the stream.
    (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }

  async close(): Promise<void> {
    const client = this.#client ?? (await this.#opening?.catch(() => undefined));
    await client?.end().catch(() => undefined);
  }
}

const runOn =
  (client: pg.Client): RunQuery =>
  async <T>(text: string, values: readonly unknown[] = []) => {
    const { rows } = await client.query({ name: statementName(text), text, values: [...values] });
    return rows as T[];
  };

/**
 * The connections to one database: one for writes, because writes are transactions, and several for reads, each of which is a
 * single query.
 */
export class Database {
  readonly schema: string;
  readonly #writer: Link;
  readonly #readers: readonly Link[];
  #next = 0;
  #closed = false;
  /** Called with the payload of each notification, and after a connection was opened, because notifications may be missing. */
  onNotification: ((payload: string | undefined) => void) | undefined;

  constructor({ connection, schema }: DatabaseOptions) {
    this.schema = schema;
    const settings = Object.entries({ ...SETTINGS, search_path: `"${schema}"` });
    const config: pg.ClientConfig = {
      application_name: 'helmdeck-memory',
      connectionTimeoutMillis: PATIENCE_MS,
      keepAlive: true,
      ...connection,
      options: settings.map(([name, value]) => `-c ${name}=${value}`).join(' '),
      pipeline: true,
      types,
    };
    this.#writer = new Link(config);
    this.#readers = Array.from({ length: READERS }, (_, index) =>
      index === 0 ? new Link(config, (client) => this.#listen(client)) : new Link(config),
    );
  }

  get channel(): string {
    return `helmdeck_memory:${this.schema}`;
  }

  #listen(client: pg.Client): void {
    client.on('notification', ({ payload }) => this.onNotification?.(payload));
    void client.query(`LISTEN "${this.channel}"`).then(
      () => this.onNotification?.(undefined),
      () => undefined,
    );
  }

  /** Reads with one query. A read changes nothing, so it is repeated on a new connection if its connection was lost. */
  read<T = Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    const link = this.#readers[this.#next++ % this.#readers.length] ?? this.#writer;
    return this.patiently(async () => runOn(await link.client())<T>(text, values));
  }

  /** The connection for transactions. Only one transaction may use it at a time. */
  writer(): Promise<pg.Client> {
    return this.#writer.client();
  }

  on(client: pg.Client): { readonly run: RunQuery; readonly query: (text: string) => Promise<unknown> } {
    return { run: runOn(client), query: (text) => client.query(text) };
  }

  dropWriter(client: pg.Client): void {
    this.#writer.drop(client);
  }

  /** Opens the connection that listens, so that a process without calls hears of a lock too. */
  async listen(): Promise<void> {
    await this.patiently(async () => void (await this.#readers[0]?.client()));
  }

  /** Repeats a step that changes nothing while the database cannot be reached, for a few seconds. */
  async patiently<T>(step: () => Promise<T>): Promise<T> {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await step();
      } catch (error) {
        if (this.#closed || !isConnectionLost(error) || performance.now() >= until) throw databaseFailure(error);
      }
      await delay(RETRY_MS);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#writer, ...this.#readers].map((link) => link.close()));
  }
}
