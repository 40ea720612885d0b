import { Failure } from '../contract/failure.ts';
import type { Caller } from '../core/access/caller.ts';
import type { TokenRegistry } from '../core/access/token-registry.ts';
import type { Clock } from '../core/time/clock.ts';
import { itemsOfLargerHolder } from './largest-holder.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import type { Exchange } from './route.ts';

interface Stream {
  readonly subject: string;
  readonly client: string;
  readonly tokenId: string;
  readonly expiresAt: number;
  end(): void;
  keepAlive?(): void;
}

/**
 * The open streams, exports and imports. A stream ends when its token expires or is revoked (R-AUTH-09). The number of streams
 * per subject is limited. Every keep-alive also checks the token's expiry, because the clock can jump while the machine sleeps.
 */
export class StreamRegistry implements Disposable {
  readonly #clock: Clock;
  /** The open streams, each with the timer for its next keep-alive. */
  readonly #streams = new Map<Stream, Disposable>();
  readonly #revocations: Disposable;

  constructor(clock: Clock, tokens: Pick<TokenRegistry, 'onRevoked'>) {
    this.#clock = clock;
    this.#revocations = tokens.onRevoked((id) => {
      for (const stream of this.#streams.keys()) if (stream.tokenId === id) this.#end(stream);
    });
  }

  /**
   * Registers a stream until the result is disposed. Until then, calls `end` if the token expires or is revoked, or the program
   * exits.
   */
  open({ caller, token }: Pick<Exchange, 'caller' | 'token'>, { end, keepAlive }: Pick<Stream, 'end' | 'keepAlive'>): Disposable {
    this.#limitStreams(caller);
    const stream: Stream = {
      subject: caller.subject,
      client: caller.client,
      tokenId: caller.token,
      expiresAt: tokenExpiryMs(token),
      end,
      ...(keepAlive && { keepAlive }),
    };
    this.#schedule(stream);
    return { [Symbol.dispose]: () => this.#remove(stream) };
  }

  [Symbol.dispose](): void {
    this.#revocations[Symbol.dispose]();
    for (const stream of this.#streams.keys()) this.#end(stream);
  }

  /** If the subject has too many streams, ends the oldest stream of the client that has the most streams (R-MCP-14). */
  #limitStreams({ subject, client }: Caller): void {
    const streams = [...this.#streams.keys()].filter((stream) => stream.subject === subject);
    if (streams.length < CONNECTION_LIMITS.streams) return;
    const [oldest] = itemsOfLargerHolder(streams, (stream) => stream.client, client);
    if (!oldest) {
      throw new Failure(
        'rate_limited',
        `This subject already has ${CONNECTION_LIMITS.streams} open streams, the maximum, and this client has the most of them; close some of them.`,
      );
    }
    this.#end(oldest);
  }

  #schedule(stream: Stream): void {
    const ms = Math.min(CONNECTION_LIMITS.keepAliveMs, stream.expiresAt - this.#clock.now());
    const timer = this.#clock.after(ms, () => {
      if (stream.expiresAt <= this.#clock.now()) {
        this.#end(stream);
        return;
      }
      this.#schedule(stream);
      stream.keepAlive?.();
    });
    this.#streams.set(stream, timer);
  }

  #end(stream: Stream): void {
    this.#remove(stream);
    stream.end();
  }

  #remove(stream: Stream): void {
    this.#streams.get(stream)?.[Symbol.dispose]();
    this.#streams.delete(stream);
  }
}

/** Returns the expiry time of a verified token, in milliseconds since 1970. */
function tokenExpiryMs(token: string): number {
  const payload = token.split('.')[1] ?? '';
  const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp: number };
  return exp * 1000;
}
