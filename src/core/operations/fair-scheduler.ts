/** So long a turn of the loop takes others at most, mostly: what took longer makes the next turns smaller. */
const TURN_MS = 1;
/**
 * So many go on together at most. Each of their steps finds the processor warm from the same step of the one before: eight searches
 * together take a quarter less than one after the other (bench).
 */
const TOGETHER = 8;
/** So many turns of little work in a row, before more go on together: one light step among heavy ones tells nothing of them. */
const LIGHT_TURNS = 8;

/**
 * Who may go on. There is one thread: whoever asks for much, or often, keeps all others waiting for what is being done. So those who
 * ask in one turn of the loop go on together at its end, subject after subject, one step each, whoever has many steps as whoever has
 * one. As soon as that has taken long, fewer go on in the next turn, down to one. While there is little to do, whoever asks alone
 * does not wait.
 */
export class FairScheduler {
  /** The subject that was served last stands last. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #latest: object | undefined;
  #planned = false;
  #until = 0;
  #most = TOGETHER;
  #light = 0;

  /**
   * Undefined where nobody has to wait: nobody else does, and nobody else has asked since the same asker did. Whoever asks from
   * within the program, and names no asker, waits only where much is being done.
   */
  acquire(subject: string, asker?: object): Promise<void> | undefined {
    const alone = asker === undefined || asker === this.#latest;
    this.#latest = asker ?? this.#latest;
    return alone && this.#waiting.size === 0 && this.#hasTime() ? undefined : this.yieldTurn(subject);
  }

  /** Behind everybody who waits already; between two steps of one long question. */
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
      this.#until = now + TURN_MS;
      this.#plan();
    }
    if (now < this.#until) return true;
    // Who knows what those will ask for who wait from now on.
    this.#most = 1;
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
    this.#until = start + TURN_MS;
    let together = 0;
    for (; together < this.#most && this.#waiting.size > 0; together += 1) this.#goOn();
    this.#plan();
    // One that went on where many might have tells nothing. What they do at once is done when their promises are through, and the
    // next tick comes behind that.
    if (together > 1 || together === this.#most) {
      queueMicrotask(() => process.nextTick(() => this.#learn(together, performance.now() - start)));
    }
  }

  /** The first of the subject whose turn it is. */
  #goOn(): void {
    const [first] = this.#waiting;
    if (!first) return;
    const [subject, waiting] = first;
    const goOn = waiting.shift();
    this.#waiting.delete(subject);
    if (waiting.length > 0) this.#waiting.set(subject, waiting);
    goOn?.();
  }

  #learn(together: number, took: number): void {
    if (took >= TURN_MS / 2) this.#light = 0;
    else if (together === this.#most) this.#light += 1;
    if (took > TURN_MS) this.#most = Math.max(1, Math.floor((together * TURN_MS) / took));
    if (this.#light < LIGHT_TURNS) return;
    this.#light = 0;
    this.#most = Math.min(TOGETHER, 2 * this.#most);
  }
}
