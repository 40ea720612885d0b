import { Failure } from '../contract/failure.ts';
import type { Clock } from '../core/clock.ts';
import type { Tokens } from '../core/tokens.ts';
import { endOf } from './authenticate.ts';
import { LIMITS } from './limits.ts';
import type { Exchange } from './routes.ts';

interface Stream {
  readonly subject: string;
  readonly id: string;
  /** When its token ends. */
  readonly until: number;
  end(): void;
  /** Nothing happened for a while. */
  rest?(): void;
}

/**
 * What stays open: each ends with the token that opened it (R-AUTH-09), and no subject has more than its share. A clock may
 * leap while the machine sleeps, so the end of a token is looked for at every keep-alive too.
 */
export class Streams implements Disposable {
  readonly #clock: Clock;
  readonly #open = new Map<Stream, Disposable>();
  readonly #revocations: Disposable;

  constructor(clock: Clock, tokens: Pick<Tokens, 'onRevoked'>) {
    this.#clock = clock;
    this.#revocations = tokens.onRevoked((id) => {
      for (const stream of this.#open.keys()) if (stream.id === id) this.#end(stream);
    });
  }

  /** Until the result is disposed, or the stream's token ends, or the program. */
  open({ caller, token }: Pick<Exchange, 'caller' | 'token'>, { end, rest }: Pick<Stream, 'end' | 'rest'>): Disposable {
    const stream: Stream = { subject: caller.subject, id: caller.token, until: endOf(token), end, ...(rest && { rest }) };
    let own = 0;
    for (const { subject } of this.#open.keys()) if (subject === caller.subject) own += 1;
    if (own >= LIMITS.streams) {
      throw new Failure(
        'rate_limited',
        `There are ${LIMITS.streams} open streams of this subject; close those that nobody reads.`,
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
    const ms = Math.min(LIMITS.keepAliveMs, stream.until - this.#clock.now());
    const wake = (): void => {
      if (stream.until <= this.#clock.now()) {
        this.#end(stream);
        return;
      }
      this.#wait(stream);
      stream.rest?.();
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
