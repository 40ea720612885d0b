import { Failure } from '../../contract/failure.ts';
import { PACK } from '../../contract/limits.ts';
import { type Caller, hasScope } from '../access/caller.ts';
import { mayEnd, mayTakePlace } from '../access/fair-share.ts';
import type { MemoryStore } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';

const IDLE_MS = PACK.sessionIdle * 1000;

interface Session {
  readonly subject: string;
  /** The client that started the session. */
  readonly client: string;
  readonly token: string;
  readonly id: string;
  usedAt: number;
}

/**
 * The sessions of packs. A session starts when it is first used, and ends on request or after an hour without use. When a session
 * ends, its working memory is deleted.
 */
export class PackSessions implements Disposable {
  readonly #store: MemoryStore;
  readonly #clock: Clock;
  readonly #reportError: (error: unknown) => void;
  /** The open sessions, least recently used first. */
  readonly #open = new Map<string, Session>();
  #timer: Disposable | undefined;
  #cleanUp: Promise<void> | undefined;

  constructor(store: MemoryStore, clock: Clock, reportError: (error: unknown) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#reportError = reportError;
  }

  /**
   * Opens a session, or marks it as used. Before the first session opens, deletes the entries of sessions of an earlier process,
   * so that a session with the same name starts empty.
   */
  async open(caller: Caller, id: string): Promise<void> {
    this.#cleanUp ??= this.endLeftovers();
    try {
      await this.#cleanUp;
    } catch (error) {
      this.#cleanUp = undefined;
      throw error;
    }
    this.touch(caller, id);
  }

  touch(caller: Caller, id: string): void {
    const { subject, client, token } = caller;
    const name = nameOf(subject, id);
    const known = this.#open.get(name);
    if (!known && !mayTakePlace(caller, this.#openOf(subject), PACK.sessions)) {
      throw new Failure(
        'session_unavailable',
        `This client has reached its share of the ${PACK.sessions} sessions that can be open in a memory; end one of its sessions first.`,
      );
    }
    this.#open.delete(name);
    this.#open.set(name, { ...(known ?? { subject, id, client, token }), usedAt: this.#clock.steady() });
    this.#startTimer();
  }

  /**
   * Ends a session and returns the number of deleted entries. Only the owner and the client that started the session are allowed
   * to end it. For other clients, the result is the same as for a session that does not exist.
   */
  async end(caller: Caller, id: string): Promise<number> {
    const session = this.#open.get(nameOf(caller.subject, id));
    // A session that is not open can still have entries from an earlier process. Which client started it is unknown.
    const mayEndIt = session ? mayEnd(caller, session) : hasScope(caller, 'admin');
    return mayEndIt ? await this.#end(caller.subject, id) : 0;
  }

  async #end(subject: string, id: string): Promise<number> {
    this.#open.delete(nameOf(subject, id));
    const { deleted } = await this.#store.forget(subject, { kinds: ['pack'], session: id });
    return deleted;
  }

  /** Deletes the entries of sessions of an earlier process. */
  async endLeftovers(): Promise<void> {
    for (const { namespace } of await this.#store.namespaces('pack')) {
      const { subject, session } = namespace;
      if (session === undefined || this.#open.has(nameOf(subject, session))) continue;
      if (this.#store.refresh && (await this.#isUsedElsewhere(subject, session))) continue;
      await this.#end(subject, session);
    }
  }

  /** Whether another process that shares the memory may have this session open: a pack stored something in the last hour. */
  async #isUsedElsewhere(subject: string, session: string): Promise<boolean> {
    const { entries } = await this.#store.space({ subject, session }, 'pack').page({ sort: 'updated', limit: 1 });
    return entries.some(({ updatedAt }) => this.#store.now() - updatedAt < IDLE_MS);
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
  }

  #openOf(subject: string): Session[] {
    return [...this.#open.values()].filter((session) => session.subject === subject);
  }

  #startTimer(): void {
    const [oldest] = this.#open.values();
    if (this.#timer || !oldest) return;
    const left = Math.max(0, oldest.usedAt + IDLE_MS - this.#clock.steady());
    this.#timer = this.#clock.after(left, () => {
      this.#timer = undefined;
      void this.#endIdle().catch(this.#reportError);
      this.#startTimer();
    });
  }

  async #endIdle(): Promise<void> {
    const until = this.#clock.steady() - IDLE_MS;
    const idle = [...this.#open.values()].filter(({ usedAt }) => usedAt <= until);
    for (const { subject, id } of idle) this.#open.delete(nameOf(subject, id));
    for (const { subject, id } of idle) {
      if (this.#store.refresh && (await this.#isUsedElsewhere(subject, id))) continue;
      await this.#store.forget(subject, { kinds: ['pack'], session: id });
    }
  }
}

const nameOf = (subject: string, id: string): string => `${subject}:${id}`;
