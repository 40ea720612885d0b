import type { SpaceChange } from './store.ts';

/** Tells whoever listens that something changed, once for all that changed in the same turn. */
export class ChangeNotifier {
  readonly #listeners = new Set<(changed: SpaceChange) => void>();
  readonly #untold = new Map<string, SpaceChange>();
  #planned: NodeJS.Immediate | undefined;

  subscribe(hear: (changed: SpaceChange) => void): Disposable {
    // The same function handed in twice is two listeners.
    const listener = (changed: SpaceChange): void => hear(changed);
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  notify(changed: SpaceChange): void {
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
