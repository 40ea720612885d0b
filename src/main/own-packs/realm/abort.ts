type Listener = ((event: object) => void) | { handleEvent(event: object): void };

/** The part of the web's `AbortSignal` API that a handler needs. */
export class Signal {
  aborted = false;
  reason: unknown = undefined;
  onabort: ((event: object) => void) | null = null;
  readonly #listeners = new Set<Listener>();

  addEventListener(type: string, listener: Listener): void {
    if (type === 'abort') this.#listeners.add(listener);
  }

  removeEventListener(_type: string, listener: Listener): void {
    this.#listeners.delete(listener);
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  static abort(reason?: unknown): Signal {
    const signal = new Signal();
    signal.abortWith(reason);
    return signal;
  }

  static timeout(ms: number): Signal {
    const signal = new Signal();
    setTimeout(() => signal.abortWith(namedError('TimeoutError', 'The time limit was reached.')), ms);
    return signal;
  }

  static any(signals: Iterable<Signal>): Signal {
    const any = new Signal();
    for (const signal of signals) {
      if (signal.aborted) any.abortWith(signal.reason);
      else signal.addEventListener('abort', () => any.abortWith(signal.reason));
    }
    return any;
  }

  abortWith(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason ?? namedError('AbortError', 'The run was aborted.');
    const event = { type: 'abort', target: this };
    this.onabort?.(event);
    for (const listener of this.#listeners) {
      if (typeof listener === 'function') listener(event);
      else listener.handleEvent(event);
    }
    this.#listeners.clear();
  }
}

const namedError = (name: string, message: string): Error => Object.assign(new Error(message), { name });

export class Controller {
  readonly signal = new Signal();

  abort(reason?: unknown): void {
    this.signal.abortWith(reason);
  }
}
