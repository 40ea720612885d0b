import { Failure } from '../../contract/failure.ts';
import type { Clock } from '../time/clock.ts';
import type { Caller } from './caller.ts';

const MINUTE_MS = 60_000;

/** Writes of each token within a minute. Off unless the owner set a number. */
export class WriteLimit {
  readonly #most: number | undefined;
  readonly #clock: Clock;
  readonly #counts = new Map<string, number>();
  #since = -Infinity;

  constructor(clock: Clock, most?: number) {
    this.#clock = clock;
    this.#most = most;
  }

  count({ subject, client, token }: Caller, writes: number): void {
    if (this.#most === undefined || writes === 0) return;
    const now = this.#clock.steady();
    if (now - this.#since >= MINUTE_MS) {
      this.#counts.clear();
      this.#since = now;
    }
    // A token without an id is told apart by what it says.
    const name = token === '' ? JSON.stringify([subject, client]) : token;
    const count = this.#counts.get(name) ?? 0;
    // Several at once go through while one would, because refused as a whole they never could.
    if (count >= this.#most) {
      const retryAfter = Math.ceil((this.#since + MINUTE_MS - now) / 1000);
      throw new Failure(
        'rate_limited',
        `This token may write ${this.#most} times a minute (HELMDECK_WRITES_PER_MINUTE); try again in ${retryAfter} s.`,
        { retryAfter },
      );
    }
    this.#counts.set(name, count + writes);
  }
}
