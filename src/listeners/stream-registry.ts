import { Failure } from '../contract/failure.ts';
import type { TokenRegistry } from '../core/access/token-registry.ts';
import type { Clock } from '../core/time/clock.ts';
import { tokenExpiryMs } from './bearer-token.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import type { Exchange } from './router.ts';

interface Stream {
  readonly subject: string;
  readonly id: string;
  /** When its token ends. */
  readonly until: number;
  end(): void;
  /** Nothing happened for a while. */
  keepAlive?(): void;
}

/**
 * What stays open: each ends with the token that opened it (R-AUTH-09), and no subject has more than its share. A clock may
 * leap while the machine sleeps, so the end of a token is looked for at every keep-alive too.
 */
export class StreamRegistry implements Disposable {
  readonly #clock: Clock;
  readonly #open = new Map<Stream, Disposable>();
  readonly #revocations: Disposable;

  constructor(clock: Clock, tokens: Pick<TokenRegistry, 'onRevoked'>) {
    this.#clock = clock;
    this.#revocations = tokens.onRevoked((id) => {
      for (const stream of this.#open.keys()) if (stream.id === id) this.#end(stream);
    });
  }

  /** Until the result is disposed, or the stream's token ends, or the program. */
  open({ caller, token }: Pick<Exchange, 'caller' | 'token'>, { end, keepAlive }: Pick<Stream, 'end' | 'keepAlive'>): Disposable {
    const stream: Stream = {
      subject: caller.subject,
      id: caller.token,
      until: tokenExpiryMs(token),
      end,
      ...(keepAlive && { keepAlive }),
    };
    let own = 0;
    for (const { subject } of this.#open.keys()) if (subject === caller.subject) own += 1;
    if (own >= CONNECTION_LIMITS.streams) {
      throw new Failure(
        'rate_limited',
        `There are ${CONNECTION_LIMITS.streams} open streams of this subject; close those that nobody reads.`,
      );
    }
    this.#wait(stream);
    return { [Symbol.dispose]: () => this.#forget(stream) };
  }

  [Symbol.dispose](): void {
    this.#revocations[Symbol.dispose]();
    for (const stream of this.#open.keys()) this.#end(stream);
  }

  #wait(stream: Stream): void {
    const ms = Math.min(CONNECTION_LIMITS.keepAliveMs, stream.until - this.#clock.now());
    const wake = (): void => {
      if (stream.until <= this.#clock.now()) {
        this.#end(stream);
        return;
      }
      this.#wait(stream);
      stream.keepAlive?.();
    };
    this.#open.set(stream, this.#clock.after(ms, wake));
  }

  #end(stream: Stream): void {
    this.#forget(stream);
    stream.end();
  }

  #forget(stream: Stream): void {
    this.#open.get(stream)?.[Symbol.dispose]();
    this.#open.delete(stream);
  }
}
