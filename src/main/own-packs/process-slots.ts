/** Maximum number of concurrent processes per subject, because processes need much memory. Further runs wait. */
const MAX_CONCURRENT = 4;

export class ProcessSlots {
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Map<string, Set<() => void>>();

  async acquire(subject: string, signal: AbortSignal): Promise<Disposable> {
    while ((this.#taken.get(subject) ?? 0) >= MAX_CONCURRENT) {
      signal.throwIfAborted();
      await this.#waitForSlot(subject, signal);
    }
    signal.throwIfAborted();
    this.#taken.set(subject, (this.#taken.get(subject) ?? 0) + 1);
    return { [Symbol.dispose]: () => this.#leave(subject) };
  }

  async #waitForSlot(subject: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(subject) ?? new Set();
    this.#waiting.set(subject, waiting.add(resolve));
    signal.addEventListener('abort', () => resolve(), { once: true });
    await promise;
    waiting.delete(resolve);
    if (waiting.size === 0) this.#waiting.delete(subject);
  }

  #leave(subject: string): void {
    const left = (this.#taken.get(subject) ?? 1) - 1;
    if (left === 0) this.#taken.delete(subject);
    else this.#taken.set(subject, left);
    const [next] = this.#waiting.get(subject) ?? [];
    next?.();
  }
}
