import type { Clock } from '../../time/clock.ts';

/** A reading that is older than the estimate by more than this was made after the server's clock was set back. */
const SET_BACK_MS = 1000;
/** Maximum difference between the two clocks at which this machine's synchronization also vouches for the server. */
const AGREEMENT_MS = 5000;

/**
 * The clock of the database server, so that all processes agree on what has expired. Between two readings, it advances with this
 * machine's steady clock.
 */
export class DatabaseClock implements Clock {
  readonly #machine: Clock;
  /** The server's time minus the steady clock. */
  #offset: number | undefined;

  constructor(machine: Clock) {
    this.#machine = machine;
  }

  /**
   * Takes a reading of the server's clock. The reading took some time to arrive, so the largest offset is the most accurate one.
   */
  observe(now: number): void {
    const offset = now - this.#machine.steady();
    const known = this.#offset;
    if (known === undefined || offset > known || known - offset > SET_BACK_MS) this.#offset = offset;
  }

  now(): number {
    return this.#offset === undefined ? this.#machine.now() : Math.floor(this.#offset + this.#machine.steady());
  }

  steady(): number {
    return this.#machine.steady();
  }

  uptime(): number {
    return this.#machine.uptime();
  }

  /** Unknown, because this machine's uptime says nothing about the server. */
  uptimeOrigin(): undefined {
    return undefined;
  }

  /** Whether this machine's clock is synchronized and agrees with the server's clock. */
  async synchronized(): Promise<boolean | undefined> {
    const isSynchronized = await this.#machine.synchronized();
    return isSynchronized && Math.abs(this.#machine.now() - this.now()) <= AGREEMENT_MS;
  }

  after(ms: number, action: () => void): Disposable {
    return this.#machine.after(ms, action);
  }
}
