import { randomBytes } from 'node:crypto';
import { UNDO_FORGET_MS } from '../../contract/limits.ts';
import type { Clock } from '../time/clock.ts';
import type { Entry, FactWithHistory, MemoryStore, Namespace } from './store.ts';

export interface UndoableForget {
  readonly namespace: Namespace;
  readonly fact: FactWithHistory;
}

type Covers = (version: Entry) => boolean;

/** Maximum facts in the buffer. When another fact is added, the oldest is dropped. */
const MAX_FACTS = 16;

/**
 * Keeps in RAM the facts that were forgotten in the window, for the seconds in which the owner can undo the forget. Each fact
 * has a random handle, so only the page that forgot a fact can restore it, and no page can restore invented content.
 */
export class ForgetUndoBuffer implements Disposable {
  readonly #clock: Clock;
  readonly #held = new Map<string, UndoableForget & { readonly timer: Disposable }>();
  readonly #exclusions = new Set<{ readonly subject: string; readonly covers: Covers }>();
  readonly #subscription: Disposable;

  constructor(store: Pick<MemoryStore, 'onKeyChange'>, clock: Clock) {
    this.#clock = clock;
    this.#subscription = store.onKeyChange(() => this.#dropAll(() => true));
  }

  /**
   * Adds a forgotten fact and returns its handle. Replaces an earlier forget of the same key. Returns undefined while a running
   * forget or undo excludes the fact.
   */
  add(forget: UndoableForget): string | undefined {
    const { namespace, fact } = forget;
    this.discard(namespace.subject, ({ key }) => key === fact.entry.key);
    for (const { subject, covers } of this.#exclusions) if (isCovered(forget, subject, covers)) return undefined;
    const handle = randomBytes(16).toString('hex');
    const timer = this.#clock.after(UNDO_FORGET_MS, () => void this.#held.delete(handle));
    this.#held.set(handle, { ...forget, timer });
    const [oldest] = this.#held.keys();
    if (oldest !== undefined && this.#held.size > MAX_FACTS) this.drop(oldest);
    return handle;
  }

  /** Returns the forgotten fact, or undefined if the handle is unknown or belongs to another subject. */
  find(subject: string, handle: string): UndoableForget | undefined {
    const held = this.#held.get(handle);
    return held?.namespace.subject === subject ? held : undefined;
  }

  drop(handle: string): void {
    this.#held.get(handle)?.timer[Symbol.dispose]();
    this.#held.delete(handle);
  }

  /** Drops a subject's facts if any of their versions matches `covers`. */
  discard(subject: string, covers: Covers): void {
    this.#dropAll((held) => isCovered(held, subject, covers));
  }

  /** Drops the facts that match `covers`, and rejects such facts until the caller disposes the returned value. */
  exclude(subject: string, covers: Covers): Disposable {
    this.discard(subject, covers);
    const exclusion = { subject, covers };
    this.#exclusions.add(exclusion);
    return { [Symbol.dispose]: () => void this.#exclusions.delete(exclusion) };
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
    this.#dropAll(() => true);
  }

  #dropAll(is: (held: UndoableForget) => boolean): void {
    for (const [handle, held] of this.#held) if (is(held)) this.drop(handle);
  }
}

const isCovered = ({ namespace, fact }: UndoableForget, subject: string, covers: Covers): boolean =>
  namespace.subject === subject && [fact.entry, ...fact.versions].some(covers);
