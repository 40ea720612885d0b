import { Failure } from '../../contract/failure.ts';
import type { Caller } from '../../core/access/caller.ts';
import type { TokenRegistry } from '../../core/access/token-registry.ts';
import type { MemoryStore, SpaceChange } from '../../core/store/store.ts';
import type { Clock } from '../../core/time/clock.ts';
import { itemsOfLargerHolder } from '../largest-holder.ts';
import type { Exchange } from '../route.ts';
import { ProtocolError } from './rpc.ts';
import { Session, type TransportKind } from './session.ts';

const MINUTE_MS = 60_000;

/**
 * A session without an event stream expires after this time without requests. The client can then open a new session.
 * @internal
 */
export const SESSION_IDLE_MS = 30 * MINUTE_MS;
/**
 * Maximum number of sessions per subject. High, because a program that is started for each call opens a session every time and
 * never ends it.
 * @internal
 */
export const MAX_SESSIONS = 256;
/** Delay before clients are notified of a change. Changes within this time are combined into one notification per resource. */
const NOTIFY_DELAY_MS = 100;

interface Deps {
  readonly clock: Clock;
  readonly tokens: Pick<TokenRegistry, 'onRevoked' | 'offers'>;
  readonly onChange: MemoryStore['onChange'];
  /** Creates the SDK's server object for a new session and connects the two. */
  readonly startServer: (session: Session) => Promise<void>;
  /** Whether the list of tools contains packs, so that the owner can change it for each client. */
  readonly offersPacks: boolean;
  /** Whether a change to entries of this kind changes the content of the resource. */
  readonly isAffected: (uri: string, kind: SpaceChange['kind']) => boolean;
}

/**
 * The sessions of one MCP server. A session id does not authenticate the client, so every request must also have a token. Only
 * the token that opened a session can use the session (R-MCP-06).
 */
export class SessionRegistry implements Disposable {
  readonly #deps: Deps;
  readonly #sessions = new Map<string, Session>();
  readonly #listeners: readonly Disposable[];
  readonly #changedKinds = new Map<string, Set<SpaceChange['kind']>>();
  #notifyTimer: Disposable | undefined;
  #idleTimer: Disposable | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#listeners = [
      deps.tokens.onRevoked((id) => this.#closeWhere(({ owner }) => owner.caller.token === id)),
      deps.onChange((change) => this.#collect(change)),
      ...(deps.offersPacks ? [deps.tokens.offers.onChange((client) => this.#announceTools(client))] : []),
    ];
  }

  async open({ caller, digest }: Pick<Exchange, 'caller' | 'digest'>, transportKind: TransportKind): Promise<Session> {
    this.#limitSessions(caller);
    const owner = { caller, transportKind, digest };
    const session = new Session(owner, this.#deps.clock.steady(), () => this.#remove(session));
    this.#sessions.set(session.id, session);
    try {
      await this.#deps.startServer(session);
    } catch (error) {
      await session.close();
      throw error;
    }
    this.#scheduleIdleCheck();
    return session;
  }

  /** Returns the caller's own session. Fails with the same error for another caller's session as for an unknown id. */
  find(id: string, { caller, digest }: Pick<Exchange, 'caller' | 'digest'>, transportKind: TransportKind): Session {
    const session = this.#sessions.get(id);
    const owner = session?.owner;
    if (
      !session ||
      owner?.caller.subject !== caller.subject ||
      owner.transportKind !== transportKind ||
      owner.digest !== digest
    ) {
      throw new ProtocolError('unknown_session', 'Session not found; send `initialize` to open a new session.');
    }
    // The owner may have changed which packs the client is offered since its last request.
    session.owner = { ...owner, caller };
    session.usedAt = this.#deps.clock.steady();
    return session;
  }

  [Symbol.dispose](): void {
    for (const listener of this.#listeners) listener[Symbol.dispose]();
    this.#notifyTimer?.[Symbol.dispose]();
    this.#idleTimer?.[Symbol.dispose]();
    this.#closeWhere(() => true);
  }

  #remove({ id }: Session): void {
    this.#sessions.delete(id);
    if (this.#sessions.size > 0) return;
    this.#idleTimer?.[Symbol.dispose]();
    this.#idleTimer = undefined;
  }

  /**
   * If the subject has too many sessions, closes the least recently used session of the client with the most sessions. If that
   * client is the caller, closes only an idle session. So a client cannot close the sessions of clients with fewer (R-MCP-14).
   */
  #limitSessions({ subject, client }: Caller): void {
    const sessions = [...this.#sessions.values()].filter(({ owner }) => owner.caller.subject === subject);
    if (sessions.length < MAX_SESSIONS) return;
    const others = itemsOfLargerHolder(sessions, ({ owner }) => owner.caller.client, client);
    const own = sessions.filter(({ owner, busy }) => owner.caller.client === client && !busy);
    const candidates = others.length > 0 ? others : own;
    const [oldest] = candidates.toSorted((one, other) => Number(one.busy) - Number(other.busy) || one.usedAt - other.usedAt);
    if (!oldest) {
      throw new Failure(
        'rate_limited',
        `This subject already has ${MAX_SESSIONS} open sessions, the maximum, and this client has the most of them; close some of them.`,
      );
    }
    void oldest.close();
  }

  #announceTools(client: string): void {
    for (const session of this.#sessions.values())
      if (session.owner.caller.client === client) session.notify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  }

  #closeWhere(matches: (session: Session) => boolean): void {
    for (const session of this.#sessions.values()) if (matches(session)) void session.close();
  }

  /** Sets a timer for the earliest time at which a session can have been idle too long. */
  #scheduleIdleCheck(): void {
    if (this.#idleTimer || this.#sessions.size === 0) return;
    const { clock } = this.#deps;
    const now = clock.steady();
    const earliest = Math.min(...[...this.#sessions.values()].map(({ busy, usedAt }) => (busy ? now : usedAt)));
    this.#idleTimer = clock.after(Math.max(earliest + SESSION_IDLE_MS - now, MINUTE_MS), () => {
      this.#idleTimer = undefined;
      const limit = clock.steady() - SESSION_IDLE_MS;
      for (const session of this.#sessions.values()) if (session.busy) session.usedAt = clock.steady();
      this.#closeWhere(({ usedAt }) => usedAt <= limit);
      this.#scheduleIdleCheck();
    });
  }

  /**
   * Collects a change for the next notification. Changes in pack sessions are skipped, because clients cannot read their
   * namespaces.
   */
  #collect({ namespace: { subject, session }, kind }: SpaceChange): void {
    if (session !== undefined) return;
    const kinds = this.#changedKinds.get(subject) ?? new Set();
    this.#changedKinds.set(subject, kinds.add(kind));
    this.#notifyTimer ??= this.#deps.clock.after(NOTIFY_DELAY_MS, () => this.#notify());
  }

  #notify(): void {
    this.#notifyTimer = undefined;
    const { isAffected } = this.#deps;
    for (const session of this.#sessions.values()) {
      const kinds = [...(this.#changedKinds.get(session.owner.caller.subject) ?? [])];
      for (const uri of session.subscriptions) {
        if (!kinds.some((kind) => isAffected(uri, kind))) continue;
        session.notify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });
      }
    }
    this.#changedKinds.clear();
  }
}
