import { isIPv6, type Socket } from 'node:net';
import { itemsOfLargestHolder } from '../largest-holder.ts';
import { CONNECTION_LIMITS } from '../limits.ts';

/**
 * The connections that have not finished their TLS handshake. One address can hold only a few of them, and begin only a few per
 * second, so that it cannot use up the connections or the processor time of other addresses (R-TEAM-06).
 */
export class PendingConnections {
  /** The sockets by remote address and port, oldest first. */
  readonly #sockets = new Map<string, Socket>();
  readonly #perAddress: number;
  readonly #rate: HandshakeRate | undefined;

  /** `perAddress` is Infinity behind a proxy, because all connections come from the proxy. The rate is not limited then. */
  constructor(perAddress: number) {
    this.#perAddress = perAddress;
    this.#rate = perAddress === Infinity ? undefined : new HandshakeRate();
  }

  add(socket: Socket): void {
    const group = addressGroup(socket.remoteAddress);
    if (this.#rate?.allows(group, performance.now()) === false) {
      socket.destroy();
      return;
    }
    const same = [...this.#sockets.values()].filter(({ remoteAddress }) => addressGroup(remoteAddress) === group);
    if (same.length >= this.#perAddress) same[0]?.destroy();
    else if (this.#sockets.size >= CONNECTION_LIMITS.handshakes) this.#limitTotal();
    const name = nameOf(socket);
    this.#sockets.set(name, socket);
    socket.once('close', () => {
      if (this.#sockets.get(name) === socket) this.#sockets.delete(name);
    });
  }

  /** Returns the socket of a TLS connection, and forgets the socket. */
  take(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): Socket | undefined {
    const name = nameOf(socket);
    const found = this.#sockets.get(name);
    this.#sockets.delete(name);
    return found;
  }

  /** Closes the oldest connection of the address with the most connections. */
  #limitTotal(): void {
    const [oldest] = itemsOfLargestHolder(
      this.#sockets.values(),
      ({ remoteAddress }) => addressGroup(remoteAddress),
      () => 1,
    );
    oldest?.destroy();
  }

  destroyAll(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}

/** Number of addresses whose handshakes are counted. If there are more, those that have been idle the longest are forgotten. */
const ADDRESSES = 10_000;

/** Limits the TLS handshakes of each address to `handshakesPerSecond`, or to `handshakesAtOnce` after a pause. */
export class HandshakeRate {
  /** How many handshakes an address could begin at a time, the address of the last handshake last. */
  readonly #left = new Map<string, { count: number; at: number }>();

  /** Counts a handshake. Returns false if the address must wait. `now` is in milliseconds and never decreases. */
  allows(address: string, now: number): boolean {
    const { handshakesAtOnce, handshakesPerSecond } = CONNECTION_LIMITS;
    const last = this.#left.get(address) ?? { count: handshakesAtOnce, at: now };
    const left = Math.min(handshakesAtOnce, last.count + ((now - last.at) / 1000) * handshakesPerSecond);
    this.#left.delete(address);
    this.#left.set(address, { count: left < 1 ? left : left - 1, at: now });
    const [oldest] = this.#left.keys();
    if (this.#left.size > ADDRESSES && oldest !== undefined) this.#left.delete(oldest);
    return left >= 1;
  }
}

const nameOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${remoteAddress} ${remotePort}`;

/**
 * Returns the part of an address by which connections are counted: an IPv4 address, or the network of an IPv6 address, because
 * one machine usually has a whole /64 network.
 */
export function addressGroup(address = ''): string {
  const v4 = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (v4 !== undefined || !isIPv6(address)) return v4 ?? address;
  const [start = '', end] = address.split('%')[0]?.split('::') ?? [];
  const groups = start === '' ? [] : start.split(':');
  const tail = end === undefined || end === '' ? [] : end.split(':');
  const zeros = end === undefined ? [] : Array.from({ length: 8 - groups.length - tail.length }, () => '0');
  return [...groups, ...zeros, ...tail].slice(0, 4).join(':');
}
