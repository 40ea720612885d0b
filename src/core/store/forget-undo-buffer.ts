import { randomBytes } from 'node:crypto';
import { UNDO_FORGET_MS } from '../../contract/limits.ts';
import type { Clock } from '../time/clock.ts';
import type { Entry, FactWithHistory, MemoryStore, Namespace } from './store.ts';

export interface UndoableForget {
  readonly namespace: Namespace;
  readonly fact: FactWithHistory;
}

/** Whether a forget or an undo covers a version of a fact. */
type Covers = (version: Entry) => boolean;

/** When more facts are held, the oldest is dropped. */
const MOST = 16;

/**
 * Facts that the window forgot, held in RAM for the seconds in which the forget can be undone. Each has a random handle, so only
 * the page that forgot a fact can bring it back, and a page can bring back nothing that it wrote itself.
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
   * Returns the handle of the fact. It replaces an earlier forget of the same key. Undefined while a forget or an undo that
   * covers the fact is running.
   */
  add(forget: UndoableForget): string | undefined {
    const { namespace, fact } = forget;
    this.discard(namespace.subject, ({ key }) => key === fact.entry.key);
    for (const { subject, covers } of this.#exclusions) if (isCovered(forget, subject, covers)) return undefined;
    const handle = randomBytes(16).toString('hex');
    const timer = this.#clock.after(UNDO_FORGET_MS, () => void this.#held.delete(handle));
    this.#held.set(handle, { ...forget, timer });
    const [oldest] = this.#held.keys();
    if (oldest !== undefined && this.#held.size > MOST) this.drop(oldest);
    return handle;
  }

  /** Undefined if the fact was forgotten in the memory of another subject. */
  find(subject: string, handle: string): UndoableForget | undefined {
    const held = this.#held.get(handle);
    return held?.namespace.subject === subject ? held : undefined;
  }

  drop(handle: string): void {
    this.#held.get(handle)?.timer[Symbol.dispose]();
    this.#held.delete(handle);
  }

  /** Drops the facts of a subject of which a version is covered. */
  discard(subject: string, covers: Covers): void {
    this.#dropAll((held) => isCovered(held, subject, covers));
  }

  /** Drops the covered facts, and holds no further such fact until the returned value is disposed. */
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
