import { Failure } from '../../contract/failure.ts';
import { PACK } from '../../contract/limits.ts';
import { isKeyAvailable } from '../../contract/status.ts';
import { authorOf, type Caller, hasScope } from '../access/caller.ts';
import { mayEnd, mayTakePlace } from '../access/fair-share.ts';
import type { MemoryStore } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { putFairly } from './fair-quota.ts';

const IDLE_MS = PACK.sessionIdle * 1000;
/** Milliseconds between two marks of a session that is in use, if several processes share the memory. */
const MARK_MS = 60_000;
/** Milliseconds between two searches for sessions of processes that have ended. */
const LEFTOVERS_MS = 600_000;
/** Category and key prefix of marks. Packs cannot write such entries, because their categories have no colon. */
const MARK = { category: 'session:used', begin: 'pack-sessions/' } as const;

interface Session {
  readonly subject: string;
  /** The client that started the session. */
  readonly client: string;
  readonly token: string;
  readonly id: string;
  usedAt: number;
  /** When this process last stored that the session is in use. */
  markedAt?: number;
}

/**
 * The sessions of packs. A session starts when it is first used, and ends on request or after an hour without use. When a session
 * ends, its working memory is deleted.
 *
 * If several processes share the memory, each use stores a mark, at most once a minute. The mark expires when the session has been
 * idle for an hour, so any process can tell whether a session is in use, also if it is only read. A mark needs no connection to
 * stay, so a session outlives a lost connection of its process.
 */
export class PackSessions implements Disposable {
  readonly #store: MemoryStore;
  readonly #clock: Clock;
  readonly #reportError: (error: unknown) => void;
  /** The open sessions, least recently used first. */
  readonly #open = new Map<string, Session>();
  readonly #isShared: boolean;
  readonly #idleMs: number;
  #timer: Disposable | undefined;
  #leftovers: Disposable | undefined;
  #cleanUp: Promise<void> | undefined;

  constructor(store: MemoryStore, clock: Clock, reportError: (error: unknown) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#reportError = reportError;
    this.#isShared = store.refresh !== undefined;
    // The latest mark can be older than the latest use.
    this.#idleMs = this.#isShared ? IDLE_MS + MARK_MS : IDLE_MS;
    if (this.#isShared) this.#endLeftoversLater();
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
    // The mark is stored before the run stores anything in the session.
    await this.#mark(caller, this.#use(caller, id));
  }

  touch(caller: Caller, id: string): void {
    void this.#mark(caller, this.#use(caller, id)).catch(this.#reportError);
  }

  #use(caller: Caller, id: string): Session {
    const { subject, client, token } = caller;
    const name = nameOf(subject, id);
    const known = this.#open.get(name);
    if (!known && !mayTakePlace(caller, this.#openOf(subject), PACK.sessions)) {
      throw new Failure(
        'session_unavailable',
        `This client has reached its share of the ${PACK.sessions} sessions that can be open in a memory; end one of its sessions first.`,
      );
    }
    const session: Session = { ...(known ?? { subject, id, client, token }), usedAt: this.#clock.steady() };
    this.#open.delete(name);
    this.#open.set(name, session);
    this.#startTimer();
    return session;
  }

  /** Stores that a session is in use, if another process could end it. */
  async #mark(caller: Caller, session: Session): Promise<void> {
    if (!this.#isShared || !isKeyAvailable(this.#store.status().key)) return;
    const { subject, id, usedAt, markedAt } = session;
    if (markedAt !== undefined && usedAt - markedAt < MARK_MS) return;
    session.markedAt = usedAt;
    const author = authorOf(caller);
    const draft = { key: MARK.begin + id, value: '', category: MARK.category, tags: [], author, lifetime: this.#idleMs };
    try {
      await putFairly(this.#store, subject, author, () => this.#store.space({ subject }, 'pack').put(draft));
    } catch (error) {
      delete session.markedAt;
      // A session without a mark is still in use for an hour after its last write.
      if (!(error instanceof Failure && error.code === 'quota_exceeded')) throw error;
    }
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
    if (this.#isShared) await this.#store.forget(subject, { kinds: ['pack'], key: MARK.begin + id, session: '' });
    return deleted;
  }

  /** Deletes the entries of sessions of processes that have ended. */
  async endLeftovers(): Promise<void> {
    for (const { namespace } of await this.#store.namespaces('pack')) {
      const { subject, session } = namespace;
      if (session === undefined || this.#open.has(nameOf(subject, session))) continue;
      if (this.#isShared && (await this.#isUsedElsewhere(subject, session))) continue;
      await this.#end(subject, session);
    }
  }

  #endLeftoversLater(): void {
    this.#leftovers = this.#clock.after(LEFTOVERS_MS, () => {
      this.#endLeftoversLater();
      void this.endLeftovers().catch(this.#reportError);
    });
  }

  /** Whether another process that shares the memory may have this session open. */
  async #isUsedElsewhere(subject: string, session: string): Promise<boolean> {
    if (await this.#store.space({ subject }, 'pack').get(MARK.begin + session)) return true;
    const { entries } = await this.#store.space({ subject, session }, 'pack').page({ sort: 'updated', limit: 1 });
    return entries.some(({ updatedAt }) => this.#store.now() - updatedAt < IDLE_MS);
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#leftovers?.[Symbol.dispose]();
  }

  #openOf(subject: string): Session[] {
    return [...this.#open.values()].filter((session) => session.subject === subject);
  }

  #startTimer(): void {
    const [oldest] = this.#open.values();
    if (this.#timer || !oldest) return;
    const left = Math.max(0, oldest.usedAt + this.#idleMs - this.#clock.steady());
    this.#timer = this.#clock.after(left, () => {
      this.#timer = undefined;
      void this.#endIdle().catch(this.#reportError);
      this.#startTimer();
    });
  }

  async #endIdle(): Promise<void> {
    const until = this.#clock.steady() - this.#idleMs;
    const idle = [...this.#open.values()].filter(({ usedAt }) => usedAt <= until);
    for (const { subject, id } of idle) this.#open.delete(nameOf(subject, id));
    for (const { subject, id } of idle) {
      if (this.#isShared && (await this.#isUsedElsewhere(subject, id))) continue;
      await this.#store.forget(subject, { kinds: ['pack'], session: id });
    }
  }
}

const nameOf = (subject: string, id: string): string => `${subject}:${id}`;
