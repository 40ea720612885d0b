import { Failure } from '../contract/failure.ts';
import type { Caller } from '../core/access/caller.ts';
import type { TokenRegistry } from '../core/access/token-registry.ts';
import type { Clock } from '../core/time/clock.ts';
import { itemsToGiveWay } from './largest-holder.ts';
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
 * The open streams, exports and imports. Each ends with its token (R-AUTH-09), and the number per subject is limited. The clock may
 * jump while the machine sleeps, so every keep-alive checks the expiry too.
 */
export class StreamRegistry implements Disposable {
  readonly #clock: Clock;
  /** Each stream with its next timer. */
  readonly #streams = new Map<Stream, Disposable>();
  readonly #revocations: Disposable;

  constructor(clock: Clock, tokens: Pick<TokenRegistry, 'onRevoked'>) {
    this.#clock = clock;
    this.#revocations = tokens.onRevoked((id) => {
      for (const stream of this.#streams.keys()) if (stream.tokenId === id) this.#end(stream);
    });
  }

  /** Registers a stream until the result is disposed. Calls `end` when the token or the program ends first. */
  open({ caller, token }: Pick<Exchange, 'caller' | 'token'>, { end, keepAlive }: Pick<Stream, 'end' | 'keepAlive'>): Disposable {
    this.#makeRoom(caller);
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

  /** Ends the oldest stream of the client that has the most, if the subject has too many (R-MCP-14). */
  #makeRoom({ subject, client }: Caller): void {
    const streams = [...this.#streams.keys()].filter((stream) => stream.subject === subject);
    if (streams.length < CONNECTION_LIMITS.streams) return;
    const [oldest] = itemsToGiveWay(streams, (stream) => stream.client, client);
    if (!oldest) {
      throw new Failure(
        'rate_limited',
        `All ${CONNECTION_LIMITS.streams} streams of this subject are open, and this client has the most; close some of them.`,
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

/** The expiry of a verified token, in milliseconds since 1970. */
function tokenExpiryMs(token: string): number {
  const payload = token.split('.')[1] ?? '';
  const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp: number };
  return exp * 1000;
}
