import { lookup } from 'node:dns/promises';
import { connect, type Socket } from 'node:net';
import { Failure } from '../../contract/failure.ts';
import { EGRESS } from '../../contract/limits.ts';
import { type Egress, type EgressRequest, forbidsCaching, type EgressResponse } from '../../core/packs/egress.ts';
import { type Clock, systemClock } from '../../core/time/clock.ts';
import { isPublicAddress } from './addresses.ts';
import { type HttpsResponse, sendRequest, startTls } from './https-request.ts';
import { portOf, parseRedirect, parseTarget } from './target.ts';
import { type EgressTimeouts, createTimeouts } from './timeouts.ts';

/** Names only the product, so that servers learn nothing about the user or the machine. */
const USER_AGENT = 'Helmdeck-Memory';
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Maximum number of addresses that are tried per host name, one after another. */
const MAX_ADDRESSES = 4;
const ATTEMPT_MS = 4000;

/** Network functions. Tests replace them. */
export interface Network {
  /** Resolves a host name to all its addresses. Called once per request. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  /** Connects to an address. Never receives a host name, because a second lookup could return another address. */
  readonly dial?: (address: string, port: number) => Socket;
  /** Trusted certificate authorities. If absent, Node's default authorities. */
  readonly ca?: string;
}

interface Deps extends Network {
  readonly clock?: Clock;
}

/** Creates the object that sends the requests of all packs (R-PACK-14). Uses no proxy, no cookies and no connection pool. */
export function createEgress({ resolve = addressesOf, dial = connectTo, ca, clock = systemClock }: Deps = {}): Egress {
  async function publicAddresses(name: string, { signal }: EgressTimeouts): Promise<readonly string[]> {
    const addresses = await abortable(signal, resolve(name)).catch(failWith(signal, `${name} could not be resolved`));
    // Refuse the host name if even one of its addresses is private, because this can be an attack by DNS rebinding.
    if (addresses.length > 0 && addresses.every(isPublicAddress)) return addresses;
    throw new Failure(
      'handler_failed',
      `${name} resolves to an address that is not public, so no request was sent; check the host name.`,
    );
  }

  async function connectToAny(url: URL, addresses: readonly string[], { signal }: EgressTimeouts): Promise<Socket> {
    let cause: unknown;
    for (const address of addresses.slice(0, MAX_ADDRESSES)) {
      signal.throwIfAborted();
      const socket = dial(address, portOf(url));
      using _limit = clock.after(ATTEMPT_MS, () =>
        socket.destroy(new Error('The server did not accept the connection in time.')),
      );
      try {
        return await connected(socket, signal);
      } catch (error) {
        cause = error;
      }
    }
    return failWith(signal, `${url.hostname} could not be reached`)(cause);
  }

  async function sendOnce(
    url: URL,
    { headers, maxBytes = EGRESS.bytes, truncate = false }: EgressRequest,
    timeouts: EgressTimeouts,
  ): Promise<HttpsResponse> {
    const { signal } = timeouts;
    const addresses = await publicAddresses(url.hostname, timeouts);
    timeouts.resetIdle();
    const socket = await connectToAny(url, addresses, timeouts);
    try {
      timeouts.resetIdle();
      const tls = await startTls(socket, url.hostname, ca).catch(
        failWith(signal, `${url.hostname} has no valid certificate, or closed the connection during the TLS handshake`),
      );
      timeouts.resetIdle();
      const sent = { ...headers, Host: url.host, 'User-Agent': USER_AGENT, 'Accept-Encoding': 'identity' };
      const limits = { maxBytes: Math.min(maxBytes, EGRESS.bytes), truncate, onData: () => timeouts.resetIdle() };
      return await sendRequest(tls, url, sent, limits).catch(
        failWith(signal, `${url.hostname} closed the connection before the response was complete`),
      );
    } finally {
      socket.destroy();
    }
  }

  return {
    async get(given): Promise<EgressResponse> {
      given.signal.throwIfAborted();
      let url = parseTarget(given.url, given.hosts);
      using timeouts = createTimeouts(url.hostname, clock, given.signal);
      let { headers = {} } = given;
      let uncacheable = false;
      for (let redirects = 0; ; redirects += 1) {
        const answer = await sendOnce(url, { ...given, headers }, timeouts);
        uncacheable ||= forbidsCaching(answer.headers);
        const location = REDIRECTS.has(answer.status) ? answer.headers.get('location') : undefined;
        if (location === undefined) return { ...answer, url: url.href, uncacheable };
        if (redirects === EGRESS.redirects) {
          throw new Failure(
            'handler_failed',
            `${url.hostname} redirected more than ${redirects} times; request the final address directly.`,
          );
        }
        const next = parseRedirect(location, url, given.hosts);
        // If the host changes, drop the request headers for all further redirects, even if a later redirect leads back to the
        // first host.
        if (next.host !== url.host) headers = {};
        url = next;
      }
    },
  };
}

const addressesOf = async (name: string): Promise<string[]> =>
  (await lookup(name, { all: true, order: 'verbatim' })).map(({ address }) => address);

const connectTo = (address: string, port: number): Socket => connect({ host: address, port });

function connected(socket: Socket, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const abort = (): void => void socket.destroy();
  signal.addEventListener('abort', abort, { once: true });
  socket.once('connect', () => resolve(socket));
  // Keep this listener until the socket closes, because an `error` event without a listener would crash the program.
  socket.on('error', reject);
  socket.once('close', () => {
    signal.removeEventListener('abort', abort);
    reject(new Error('The connection was closed.'));
  });
  return promise;
}

function abortable<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const abort = (): void => reject(signal.reason as Failure);
  signal.addEventListener('abort', abort, { once: true });
  work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  return promise;
}

/**
 * Returns an error handler that throws the signal's reason after a timeout or a cancellation. Otherwise the handler throws a
 * readable failure, with the network error as its cause.
 */
const failWith =
  (signal: AbortSignal, what: string) =>
  (cause: unknown): never => {
    signal.throwIfAborted();
    throw cause instanceof Failure ? cause : new Failure('handler_failed', `${what}; try again later.`, { cause });
  };
