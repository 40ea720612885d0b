import { setTimeout as delay } from 'node:timers/promises';
import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { StoredClock } from '../../time/stored-clock.ts';
import { requireServerHere } from '../../upkeep/moved.ts';
import type { WorkingSet } from './working-set.ts';

/** Name of the number of locks so far. A process that reads a higher number than before locks its memory too. */
const LOCKS = 'locks';
/** Name of the number of times that the owner has confirmed the clock. All processes follow a higher number. */
const CONFIRMATIONS = 'clock confirmations';
/**
 * Milliseconds between two readings of the change number. So a process without calls follows a lock and a revocation even if its
 * notifications are lost, and reconnects to a database that was restarted.
 */
const HEARTBEAT_MS = 500;

/** Counts that never go back. */
export const SIGNAL_COUNTS = [LOCKS, CONFIRMATIONS] as const;

interface Deps {
  readonly set: WorkingSet;
  readonly keys: KeyKeeper;
  readonly time: () => StoredClock;
}

/** What one process tells all others through the database: locks, confirmations of the clock, and a move of the memory. */
export class SharedSignals {
  readonly #deps: Deps;
  readonly #vaultListeners = new Set<() => void>();
  #heartbeat: NodeJS.Timeout | undefined;
  #locks = 0;
  #confirmations = 0;
  /** How often another process has changed secrets or revocations. */
  vaultRevision = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Compares this process with the database from now on, also while there are no calls. */
  start(compare: () => Promise<void>): void {
    this.#locks = this.#countOf(LOCKS);
    this.#confirmations = this.#countOf(CONFIRMATIONS);
    let isComparing = false;
    this.#heartbeat = setInterval(() => {
      // Without the database, a comparison takes longer than the interval.
      if (isComparing) return;
      isComparing = true;
      void compare()
        .catch(() => undefined)
        .finally(() => (isComparing = false));
    }, HEARTBEAT_MS).unref();
  }

  stop(): void {
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
  }

  onVaultChange(listener: () => void): Disposable {
    const entry = (): void => listener();
    this.#vaultListeners.add(entry);
    return { [Symbol.dispose]: () => void this.#vaultListeners.delete(entry) };
  }

  get confirmations(): number {
    return this.#confirmations;
  }

  #countOf(name: string): number {
    return Number(this.#deps.set.secrets.meta(name) ?? 0);
  }

  /** Locks all other processes. Repeats the commit while the database cannot be reached, until this process ends. */
  async lockAll(commit: (step: () => void) => Promise<unknown>): Promise<void> {
    do {
      try {
        // Counted only when it is stored. Otherwise the lock of another process would have the same number, and be ignored.
        await commit(() => this.#deps.set.secrets.setMeta(LOCKS, this.#countOf(LOCKS) + 1));
        this.#locks = Math.max(this.#locks, this.#countOf(LOCKS));
        return;
      } catch {
        await delay(HEARTBEAT_MS, undefined, { ref: false });
      }
    } while (this.#heartbeat);
  }

  /** Call it in the commit that confirms the clock. */
  tellConfirmation(): void {
    this.#deps.set.secrets.setMeta(CONFIRMATIONS, this.#countOf(CONFIRMATIONS) + 1);
  }

  confirmed(): void {
    this.#confirmations = Math.max(this.#confirmations, this.#countOf(CONFIRMATIONS));
  }

  /** Follows another process after tables were read again. */
  follow(topics: ReadonlySet<string>): void {
    const { keys, time } = this.#deps;
    if (topics.has('keys')) keys.follow();
    if (topics.has('meta') || topics.has('revocations')) {
      this.vaultRevision += 1;
      // The listeners read the vault, which waits until this change was followed.
      setImmediate(() => {
        for (const listener of this.#vaultListeners) listener();
      });
    }
    if (!topics.has('meta')) return;
    const [locks, confirmations] = [this.#countOf(LOCKS), this.#countOf(CONFIRMATIONS)];
    if (locks > this.#locks) keys.lock('the owner locked it');
    // The count goes back if a failover lost a lock, or another memory was moved into the database.
    this.#locks = locks;
    if (keys.heldKeys) time().follow(confirmations > this.#confirmations);
    this.#confirmations = confirmations;
  }

  /** Throws if the memory was moved away, or is being moved into this database. */
  requireHere({ namesPlace } = { namesPlace: false }): void {
    requireServerHere((name) => this.#deps.set.secrets.meta(name), { namesPlace });
  }
}
