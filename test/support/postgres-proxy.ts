import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { afterAll, beforeAll } from 'vitest';
import { type PostgresServer, startPostgres } from './postgres.ts';

/** What the proxy does when a client sends a COMMIT. The answers that are not 'pass' come after the server has committed. */
export type CommitFate = 'pass' | 'lose before' | 'lose answer' | 'unreadable answer' | 'fatal answer' | 'broken TLS' | 'silence';

interface Certificate {
  readonly key: string;
  readonly cert: string;
}

export interface PostgresProxy extends AsyncDisposable {
  readonly port: number;
  /** The port of the server that new connections lead to. */
  serverPort: number;
  /** Called for each COMMIT. */
  fateOf: () => CommitFate;
  /** Whether new connections are refused. */
  refuses: boolean;
  /** Whether nothing passes in either direction, while all connections stay open. */
  isSilent: boolean;
  /** Whether notifications of the server are dropped. */
  dropsNotifications: boolean;
  /** Number of connections that the proxy has cut. */
  readonly cut: number;
}

const NOTIFICATION = 0x41;
const QUERY = 0x51;
const COMMAND_COMPLETE = 0x43;

/** Splits a stream into messages of the PostgreSQL protocol, and calls `each` for every message. */
function splitter(hasStartup: boolean, each: (message: Buffer, type: number) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let starting = hasStartup;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      // The first message of a client has no type.
      const at = starting ? 0 : 1;
      if (rest.length < at + 4) return;
      const length = at + rest.readInt32BE(at);
      if (rest.length < length) return;
      each(rest.subarray(0, length), starting ? 0 : (rest[0] ?? 0));
      starting = false;
      rest = rest.subarray(length);
    }
  };
}

/** An answer that the driver cannot read. */
const UNREADABLE = Buffer.from([0x3f, 0, 0, 0, 4]);
/** An error after which the server closes the connection, with a code that means nothing else. */
const FATAL = ((fields: string): Buffer => {
  const head = Buffer.from([0x45, 0, 0, 0, 0]);
  head.writeInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, Buffer.from(fields)]);
})('SFATAL\0VFATAL\0CXX000\0Mthe server has a problem\0\0');
/** A TLS record that cannot be decrypted. */
const BROKEN_RECORD = Buffer.from([0x17, 3, 3, 0, 32, ...Buffer.alloc(32, 7)]);

/**
 * Starts a proxy in front of a PostgreSQL server that can lose notifications, and connections in the middle of a commit. With a
 * certificate, its clients connect with TLS.
 */
export async function startProxy(serverPort: number, certificate?: Certificate): Promise<PostgresProxy> {
  let cut = 0;
  const sockets = new Set<Socket>();
  const server = createServer((raw) => {
    if (proxy.refuses) return void raw.destroy();
    if (!certificate) return serve(raw, raw);
    raw.on('error', () => raw.destroy());
    raw.once('data', () => {
      raw.write('S');
      serve(new TLSSocket(raw, { isServer: true, ...certificate }), raw);
    });
  });
  const serve = (client: Socket, raw: Socket): void => {
    const upstream = connect(proxy.serverPort, '127.0.0.1');
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', end);
      socket.on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
    let fate: CommitFate = 'pass';
    let lost = false;
    const cutConnection = (): void => {
      lost = true;
      cut += 1;
      end();
    };
    const failCommit = (): void => {
      if (fate === 'lose answer') return cutConnection();
      lost = true;
      cut += 1;
      if (fate === 'unreadable answer') client.write(UNREADABLE);
      else if (fate === 'fatal answer') client.end(FATAL);
      else if (fate === 'broken TLS') raw.write(BROKEN_RECORD);
    };
    client.on(
      'data',
      splitter(true, (message, type) => {
        if (lost || proxy.isSilent) return;
        if (type === QUERY && message.includes('COMMIT')) {
          fate = proxy.fateOf();
          if (fate === 'lose before') return cutConnection();
        }
        upstream.write(message);
      }),
    );
    upstream.on(
      'data',
      splitter(false, (message, type) => {
        if (lost || proxy.isSilent || (type === NOTIFICATION && proxy.dropsNotifications)) return;
        if (fate !== 'pass') {
          if (type === COMMAND_COMPLETE && message.includes('COMMIT')) failCommit();
          return;
        }
        client.write(message);
      }),
    );
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port.');
  const proxy: PostgresProxy = {
    port: address.port,
    serverPort,
    fateOf: () => 'pass',
    refuses: false,
    isSilent: false,
    dropsNotifications: false,
    get cut() {
      return cut;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return proxy;
}

/** Starts a server with a proxy in front of it for all tests of a file. */
export function startProxiedServer(): { readonly server: PostgresServer; readonly proxy: PostgresProxy } {
  const started = new AsyncDisposableStack();
  const local = {} as { server: PostgresServer; proxy: PostgresProxy };
  beforeAll(async () => {
    local.server = started.use(await startPostgres());
    local.proxy = started.use(await startProxy(local.server.port));
  });
  afterAll(() => started.disposeAsync());
  return local;
}
