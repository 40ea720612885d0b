import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** What the proxy does when a client sends a COMMIT. */
export type CommitFate = 'pass' | 'lose before' | 'lose answer';

export interface PostgresProxy extends AsyncDisposable {
  readonly port: number;
  /** Called for each COMMIT. */
  fateOf: () => CommitFate;
  /** Whether new connections are refused. */
  refuses: boolean;
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

/** Starts a proxy in front of a PostgreSQL server that can lose notifications, and connections in the middle of a commit. */
export async function startProxy(serverPort: number): Promise<PostgresProxy> {
  let cut = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    if (proxy.refuses) return void client.destroy();
    const upstream = connect(serverPort, '127.0.0.1');
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
    let losesAnswer = false;
    let lost = false;
    const cutConnection = (): void => {
      lost = true;
      cut += 1;
      end();
    };
    client.on(
      'data',
      splitter(true, (message, type) => {
        if (lost) return;
        if (type === QUERY && message.includes('COMMIT')) {
          const fate = proxy.fateOf();
          if (fate === 'lose before') return cutConnection();
          losesAnswer = fate === 'lose answer';
        }
        upstream.write(message);
      }),
    );
    upstream.on(
      'data',
      splitter(false, (message, type) => {
        if (lost || (type === NOTIFICATION && proxy.dropsNotifications)) return;
        if (losesAnswer) {
          if (type === COMMAND_COMPLETE && message.includes('COMMIT')) cutConnection();
          return;
        }
        client.write(message);
      }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port.');
  const proxy: PostgresProxy = {
    port: address.port,
    fateOf: () => 'pass',
    refuses: false,
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
