/** Maximum milliseconds that a turn of the event loop should take. If a turn takes longer, fewer calls run in the next turn. */
const TURN_MS = 1;
/**
 * Maximum calls that run in one turn. Calls of the same operation that run together share the processor's caches: eight searches
 * together take a quarter less time than one after the other (measured by the benchmark).
 */
const MOST_PER_TURN = 8;
/**
 * Number of consecutive short turns after which more calls run in each turn. A single turn is not enough, because one fast call
 * says nothing about slow calls after it.
 */
const LIGHT_TURNS = 8;

/**
 * Schedules calls by round-robin between subjects. All operations share one thread, so a subject that sends many calls or long
 * calls would delay the others. Calls wait in a queue for each subject. At the end of each event loop turn, the next calls of
 * different subjects run one step each. Fewer calls run in a turn while turns take long, but always at least one. While the
 * program is idle, a call does not wait.
 */
export class FairScheduler {
  /** The waiting calls of each subject. The subject whose call ran least recently comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #latestRequester: object | undefined;
  #planned = false;
  #turnEnds = 0;
  #mostPerTurn = MOST_PER_TURN;
  #lightTurns = 0;

  /**
   * Returns undefined if the call can run at once: no other call is waiting, and no other requester has called after this
   * requester's last call. A call without a requester is made by the program itself, and waits only while the program is busy.
   */
  acquire(subject: string, requester?: object): Promise<void> | undefined {
    const isOnlyRequester = requester === undefined || requester === this.#latestRequester;
    this.#latestRequester = requester ?? this.#latestRequester;
    return isOnlyRequester && this.#waiting.size === 0 && this.#hasTime() ? undefined : this.yieldTurn(subject);
  }

  /** Waits until all calls that are already waiting have had a turn. Await it between two steps of a long call. */
  yieldTurn(subject: string): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(subject);
      if (waiting) waiting.push(resolve);
      else this.#waiting.set(subject, [resolve]);
      this.#plan();
    });
  }

  #hasTime(): boolean {
    const now = performance.now();
    if (!this.#planned) {
      this.#turnEnds = now + TURN_MS;
      this.#plan();
    }
    if (now < this.#turnEnds) return true;
    // Start with one call per turn, because it is unknown how long the waiting calls take.
    this.#mostPerTurn = 1;
    return false;
  }

  #plan(): void {
    if (this.#planned) return;
    this.#planned = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#planned = false;
    if (this.#waiting.size === 0) return;
    const start = performance.now();
    this.#turnEnds = start + TURN_MS;
    let count = 0;
    for (; count < this.#mostPerTurn && this.#waiting.size > 0; count += 1) this.#resumeNext();
    this.#plan();
    // Skip the measurement if only one call ran where several were allowed, because a single call says little about the others.
    // The tick runs after the promises of the resumed calls, so the measurement includes their work.
    if (count > 1 || count === this.#mostPerTurn) {
      queueMicrotask(() => process.nextTick(() => this.#adapt(count, performance.now() - start)));
    }
  }

  #resumeNext(): void {
    const [first] = this.#waiting;
    if (!first) return;
    const [subject, waiting] = first;
    const resume = waiting.shift();
    this.#waiting.delete(subject);
    if (waiting.length > 0) this.#waiting.set(subject, waiting);
    resume?.();
  }

  #adapt(count: number, took: number): void {
    if (took >= TURN_MS / 2) this.#lightTurns = 0;
    else if (count === this.#mostPerTurn) this.#lightTurns += 1;
    if (took > TURN_MS) this.#mostPerTurn = Math.max(1, Math.floor((count * TURN_MS) / took));
    if (this.#lightTurns < LIGHT_TURNS) return;
    this.#lightTurns = 0;
    this.#mostPerTurn = Math.min(MOST_PER_TURN, 2 * this.#mostPerTurn);
  }
}
