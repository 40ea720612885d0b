import type { EntryEvent, SpaceChange } from './store.ts';

/**
 * Publishes the entries that a transaction changed. Events are published when the transaction is durable and before its writer
 * receives a response, so that the writer's next search finds its entries. A rollback discards the events.
 */
export class EntryEvents {
  readonly #listeners = new Set<(event: EntryEvent) => void>();
  #pending: EntryEvent[] = [];
  #mark = 0;

  subscribe(listener: (event: EntryEvent) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  record(event: EntryEvent): void {
    if (this.#listeners.size > 0) this.#pending.push(event);
  }

  get pending(): readonly EntryEvent[] {
    return this.#pending;
  }

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
    const events = this.#pending;
    this.rollback();
    for (const event of events) for (const listener of this.#listeners) callOrReset(listener, event);
  }

  /** Tells listeners to discard what they derived from earlier events and to read all entries again. */
  publishReset(): void {
    this.rollback();
    for (const listener of this.#listeners) listener({ what: 'reset' });
  }
}

/**
 * Calls a listener. If the listener throws, it receives `reset` and must read all entries again, because the write is already
 * durable and cannot be undone. Other listeners are not affected.
 */
function callOrReset(listener: (event: EntryEvent) => void, event: EntryEvent): void {
  try {
    listener(event);
  } catch {
    listener({ what: 'reset' });
  }
}

/** Notifies listeners that a space changed, at most once per space in one event loop turn. */
export class ChangeNotifier {
  readonly #listeners = new Set<(changed: SpaceChange) => void>();
  readonly #pending = new Map<string, SpaceChange>();
  #scheduled = false;

  subscribe(listener: (changed: SpaceChange) => void): Disposable {
    // Wrap the listener, so that the `Set` can contain the same listener twice.
    const entry = (changed: SpaceChange): void => listener(changed);
    this.#listeners.add(entry);
    return { [Symbol.dispose]: () => void this.#listeners.delete(entry) };
  }

  notify(changed: SpaceChange): void {
    if (this.#listeners.size === 0) return;
    const { subject, session = '' } = changed.namespace;
    this.#pending.set(JSON.stringify([subject, session, changed.kind]), changed);
    if (!this.#scheduled) setImmediate(() => this.#publish());
    this.#scheduled = true;
  }

  #publish(): void {
    this.#scheduled = false;
    const changes = [...this.#pending.values()];
    this.#pending.clear();
    for (const changed of changes) for (const listener of this.#listeners) listener(changed);
  }
}
