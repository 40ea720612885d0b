import { Failure } from '../../contract/failure.ts';
import { MINUTE_MS } from '../../contract/units.ts';
import type { Clock } from '../time/clock.ts';
import type { Caller } from './caller.ts';

export class WriteLimit {
  readonly #most: number;
  readonly #clock: Clock;
  readonly #counts = new Map<string, number>();
  #since = -Infinity;

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  count({ subject, client, token }: Caller, writes: number): void {
    if (writes === 0) return;
    const now = this.#clock.steady();
    if (now - this.#since >= MINUTE_MS) {
      this.#counts.clear();
      this.#since = now;
    }
    // Identify a token without an id by its subject and client.
    const name = token === '' ? JSON.stringify([subject, client]) : token;
    const count = this.#counts.get(name) ?? 0;
    // A batch is allowed to exceed the limit. Otherwise a batch larger than the limit could never be written.
    if (count >= this.#most) {
      const retryAfter = Math.ceil((this.#since + MINUTE_MS - now) / 1000);
      throw new Failure(
        'rate_limited',
        `This token has reached its limit of ${this.#most} writes a minute (HELMDECK_WRITES_PER_MINUTE); try again in ${retryAfter} s.`,
        { retryAfter },
      );
    }
    this.#counts.set(name, count + writes);
  }
}
