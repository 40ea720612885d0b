import { hash } from 'node:crypto';
import { Failure } from '../../contract/failure.ts';
import type { TokenRegistry } from '../../core/access/token-registry.ts';
import type { SpaceChange, MemoryStore } from '../../core/store/store.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { Exchange } from '../router.ts';
import { ProtocolError } from './rpc.ts';
import { Session, type TransportKind } from './session.ts';

const MINUTE_MS = 60_000;

/**
 * A client that has no stream open and says nothing for so long begins anew when it comes back.
 * @internal
 */
export const SESSION_IDLE_MS = 30 * MINUTE_MS;
/**
 * Sessions of one subject; programs that are started for each call leave one behind every time.
 * @internal
 */
export const MAX_SESSIONS = 256;
/** Changes within this are told as one. */
const GATHER_MS = 100;

interface Deps {
  readonly clock: Clock;
  readonly tokens: Pick<TokenRegistry, 'onRevoked'>;
  readonly onChange: MemoryStore['onChange'];
  /** Gives a new session its server. */
  readonly startServer: (session: Session) => Promise<void>;
  /** What a client that listens to this hears of, when something of the kind changes. */
  readonly isAffected: (uri: string, kind: SpaceChange['kind']) => boolean;
}

/**
 * The sessions of one MCP server. A session is no proof of who asks (the token is, on every request); it belongs to the token
 * that opened it, and to every other it does not exist (R-MCP-06).
 */
export class SessionRegistry implements Disposable {
  readonly #deps: Deps;
  readonly #sessions = new Map<string, Session>();
  readonly #listening: readonly Disposable[];
  readonly #changed = new Map<string, Set<SpaceChange['kind']>>();
  #telling: Disposable | undefined;
  #waiting: Disposable | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#listening = [
      deps.tokens.onRevoked((id) => this.#endAll(({ owner }) => owner.caller.token === id)),
      deps.onChange((changed) => this.#gather(changed)),
    ];
  }

  get size(): number {
    return this.#sessions.size;
  }

  async open({ caller, token }: Pick<Exchange, 'caller' | 'token'>, transportKind: TransportKind): Promise<Session> {
    this.#makeRoom(caller.subject);
    const owner = { caller, transportKind, token: digestOf(token) };
    const session = new Session(owner, this.#deps.clock.steady(), () => this.#drop(session));
    this.#sessions.set(session.id, session);
    try {
      await this.#deps.startServer(session);
    } catch (error) {
      await session.close();
      throw error;
    }
    this.#wait();
    return session;
  }

  /** Another's session and none at all are the same to whoever asks. */
  find(id: string, { caller, token }: Pick<Exchange, 'caller' | 'token'>, way: TransportKind): Session {
    const session = this.#sessions.get(id);
    const owner = session?.owner;
    if (!session || owner?.caller.subject !== caller.subject || owner.transportKind !== way || owner.token !== digestOf(token)) {
      throw new ProtocolError('unknown_session', 'Session not found; connect again with initialize.');
    }
    session.usedAt = this.#deps.clock.steady();
    return session;
  }

  [Symbol.dispose](): void {
    for (const listening of this.#listening) listening[Symbol.dispose]();
    this.#telling?.[Symbol.dispose]();
    this.#waiting?.[Symbol.dispose]();
    this.#endAll(() => true);
  }

  #drop({ id }: Session): void {
    this.#sessions.delete(id);
    if (this.#sessions.size > 0) return;
    this.#waiting?.[Symbol.dispose]();
    this.#waiting = undefined;
  }

  /** The oldest idle one goes. */
  #makeRoom(subject: string): void {
    const own = [...this.#sessions.values()].filter(({ owner }) => owner.caller.subject === subject);
    if (own.length < MAX_SESSIONS) return;
    const [oldest] = own.filter(({ busy }) => !busy).toSorted((one, other) => one.usedAt - other.usedAt);
    if (!oldest) {
      throw new Failure('rate_limited', `There are ${MAX_SESSIONS} open sessions of this subject; close those that nobody uses.`);
    }
    void oldest.close();
  }

  #endAll(which: (session: Session) => boolean): void {
    for (const session of this.#sessions.values()) if (which(session)) void session.close();
  }

  /** Sleeps until the first session may have been idle for too long; it wakes at most twice for each that is used again. */
  #wait(): void {
    if (this.#waiting || this.#sessions.size === 0) return;
    const now = this.#deps.clock.steady();
    const first = Math.min(...[...this.#sessions.values()].map(({ busy, usedAt }) => (busy ? now : usedAt)));
    this.#waiting = this.#deps.clock.after(Math.max(first + SESSION_IDLE_MS - now, MINUTE_MS), () => {
      this.#waiting = undefined;
      const late = this.#deps.clock.steady() - SESSION_IDLE_MS;
      for (const session of this.#sessions.values()) if (session.busy) session.usedAt = this.#deps.clock.steady();
      this.#endAll(({ usedAt }) => usedAt <= late);
      this.#wait();
    });
  }

  /** Only the subject's own namespace: a pack session's is no client's. */
  #gather({ namespace: { subject, session }, kind }: SpaceChange): void {
    if (session !== undefined) return;
    const kinds = this.#changed.get(subject) ?? new Set();
    this.#changed.set(subject, kinds.add(kind));
    this.#telling ??= this.#deps.clock.after(GATHER_MS, () => this.#tell());
  }

  #tell(): void {
    this.#telling = undefined;
    const { isAffected: concerns } = this.#deps;
    for (const session of this.#sessions.values()) {
      const kinds = [...(this.#changed.get(session.owner.caller.subject) ?? [])];
      for (const uri of session.subscriptions) {
        if (!kinds.some((kind) => concerns(uri, kind))) continue;
        session.notify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });
      }
    }
    this.#changed.clear();
  }
}

const digestOf = (token: string): string => hash('sha256', token, 'base64url');
