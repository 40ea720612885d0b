import type { Changed } from './store.ts';

/** Tells whoever listens that something changed, once for all that changed in the same turn. */
export class Changes {
  readonly #listeners = new Set<(changed: Changed) => void>();
  readonly #untold = new Map<string, Changed>();
  #planned: NodeJS.Immediate | undefined;

  subscribe(hear: (changed: Changed) => void): Disposable {
    // The same function handed in twice is two listeners.
    const listener = (changed: Changed): void => hear(changed);
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  tell(changed: Changed): void {
    if (this.#listeners.size === 0) return;
    const { subject, session = '' } = changed.namespace;
    this.#untold.set(JSON.stringify([subject, session, changed.kind]), changed);
    if (!this.#planned) this.#planned = setImmediate(() => this.#tellAll());
  }

  #tellAll(): void {
    this.#planned = undefined;
    const told = [...this.#untold.values()];
    this.#untold.clear();
    for (const changed of told) for (const listener of this.#listeners) listener(changed);
  }
}
