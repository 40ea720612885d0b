/** So long others are served within one turn of the loop; whoever comes after that waits for the next. */
const TURN_MS = 8;

/**
 * Who may go on. There is one thread: whoever asks for much, or often, keeps all others waiting for what is being done. So as soon
 * as a turn of the loop has taken long, subjects go on one after the other, one step at a time, whoever has many steps as whoever
 * has one. While there is little to do nobody waits.
 */
export class Turns {
  /** The subject that was served last stands last. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #until = 0;
  #planned = false;

  /** Undefined where nobody has to wait. */
  begin(subject: string): Promise<void> | undefined {
    return this.#waiting.size === 0 && this.#hasTime() ? undefined : this.next(subject);
  }

  /** Behind everybody who waits already; between two steps of one long question. */
  next(subject: string): Promise<void> {
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
    return now < this.#until;
  }

  #plan(): void {
    if (this.#planned) return;
    this.#planned = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#planned = false;
    const [first] = this.#waiting;
    if (!first) return;
    const [subject, [resolve, ...rest]] = first;
    this.#waiting.delete(subject);
    if (rest.length > 0) this.#waiting.set(subject, rest);
    this.#until = performance.now() + TURN_MS;
    this.#plan();
    resolve?.();
  }
}
