import type { EntryEvent } from './store.ts';

/**
 * What came and went in a transaction, told when it is durable and not at all when it is taken back. It is told before
 * whoever wrote is answered, so that their next question finds what they wrote.
 */
export class EntryEvents {
  readonly #listeners = new Set<(change: EntryEvent) => void>();
  #pending: EntryEvent[] = [];
  #mark = 0;

  subscribe(hear: (change: EntryEvent) => void): Disposable {
    this.#listeners.add(hear);
    return { [Symbol.dispose]: () => void this.#listeners.delete(hear) };
  }

  record(change: EntryEvent): void {
    if (this.#listeners.size > 0) this.#pending.push(change);
  }

  /** Changes of the running transaction. */
  get pending(): readonly EntryEvent[] {
    return this.#pending;
  }

  /** From here on it may be taken back apart from what came before. */
  savepoint(): void {
    this.#mark = this.#pending.length;
  }

  rollbackToSavepoint(): void {
    this.#pending.length = Math.min(this.#mark, this.#pending.length);
  }

  rollback(): void {
    this.#pending = [];
    this.#mark = 0;
  }

  publish(): void {
    const told = this.#pending;
    this.rollback();
    for (const change of told) for (const listener of this.#listeners) hearOrDoubt(listener, change);
  }

  /** Nothing that was told can be relied upon any more. */
  publishReset(): void {
    this.rollback();
    for (const listener of this.#listeners) listener({ what: 'doubt' });
  }
}

/** The write is durable by now: one who cannot take the news in must begin anew, and nobody else hears of it. */
function hearOrDoubt(listener: (change: EntryEvent) => void, change: EntryEvent): void {
  try {
    listener(change);
  } catch {
    listener({ what: 'doubt' });
  }
}
