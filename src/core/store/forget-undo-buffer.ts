import { randomBytes } from 'node:crypto';
import { UNDO_FORGET_MS } from '../../contract/limits.ts';
import type { Clock } from '../time/clock.ts';
import type { MemoryStore, Namespace, FactWithHistory } from './store.ts';

/** A fact on its way to be forgotten for good. */
export interface UndoableForget {
  readonly namespace: Namespace;
  readonly fact: FactWithHistory;
  /** The moment before it was forgotten. */
  readonly at: number;
}

/** More at once are not held: the oldest are forgotten for good. */
const MOST = 16;

/**
 * Facts that the window forgot, held in RAM for the seconds in which the forget can be undone. They stand under random handles,
 * so only the page that forgot a fact can bring it back, and a page can bring back nothing that it wrote itself.
 */
export class ForgetUndoBuffer implements Disposable {
  readonly #clock: Clock;
  readonly #held = new Map<string, UndoableForget & { readonly end: Disposable }>();
  readonly #following: Disposable;

  constructor(store: Pick<MemoryStore, 'onEntryEvent'>, clock: Clock) {
    this.#clock = clock;
    // Nothing that was opened outlives a lock.
    this.#following = store.onEntryEvent(({ what }) => {
      if (what === 'doubt') this.#drop(() => true);
    });
  }

  /** The handle by which the fact can be taken. */
  add(fact: UndoableForget): string {
    const handle = randomBytes(16).toString('hex');
    const end = this.#clock.after(UNDO_FORGET_MS, () => void this.#held.delete(handle));
    this.#held.set(handle, { ...fact, end });
    const [oldest] = this.#held.keys();
    if (this.#held.size > MOST) this.#drop((one) => one === oldest);
    return handle;
  }

  /** Only in the memory that it was forgotten in. */
  find(subject: string, handle: string): UndoableForget | undefined {
    const held = this.#held.get(handle);
    return held?.namespace.subject === subject ? held : undefined;
  }

  /** All facts of a subject, or the one under a key. */
  discard(subject: string, key?: string): void {
    this.#drop((_, { namespace, fact }) => namespace.subject === subject && (key === undefined || fact.entry.key === key));
  }

  [Symbol.dispose](): void {
    this.#following[Symbol.dispose]();
    this.#drop(() => true);
  }

  #drop(is: (handle: string, held: UndoableForget) => boolean): void {
    for (const [handle, held] of this.#held) {
      if (!is(handle, held)) continue;
      held.end[Symbol.dispose]();
      this.#held.delete(handle);
    }
  }
}
