import type { EntryChange } from './store.ts';

/**
 * What came and went in a transaction, told when it is durable and not at all when it is taken back. It is told before
 * whoever wrote is answered, so that their next question finds what they wrote.
 */
export class Journal {
  readonly #listeners = new Set<(change: EntryChange) => void>();
  #pending: EntryChange[] = [];
  #mark = 0;

  subscribe(hear: (change: EntryChange) => void): Disposable {
    this.#listeners.add(hear);
    return { [Symbol.dispose]: () => void this.#listeners.delete(hear) };
  }

  note(change: EntryChange): void {
    if (this.#listeners.size > 0) this.#pending.push(change);
  }

  /** From here on it may be taken back apart from what came before. */
  mark(): void {
    this.#mark = this.#pending.length;
  }

  takeBackToMark(): void {
    this.#pending.length = Math.min(this.#mark, this.#pending.length);
  }

  takeBack(): void {
    this.#pending = [];
    this.#mark = 0;
  }

  tell(): void {
    const told = this.#pending;
    this.takeBack();
    for (const change of told) for (const listener of this.#listeners) hearOrDoubt(listener, change);
  }

  /** Nothing that was told can be relied upon any more. */
  tellOfDoubt(): void {
    this.takeBack();
    for (const listener of this.#listeners) listener({ what: 'doubt' });
  }
}

/** The write is durable by now: one who cannot take the news in must begin anew, and nobody else hears of it. */
function hearOrDoubt(listener: (change: EntryChange) => void, change: EntryChange): void {
  try {
    listener(change);
  } catch {
    listener({ what: 'doubt' });
  }
}
