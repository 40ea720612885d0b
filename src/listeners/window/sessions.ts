import { hash, randomBytes } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';

const MINUTE = 60_000;
/** A link that nobody followed is worth nothing to whoever finds it later in a log. */
const LINK_MS = 5 * MINUTE;
/** A window that nobody uses for so long asks for a new link. */
const REST_MS = 12 * 60 * MINUTE;
/** Windows at once; the one used least recently makes room. */
const MOST = 16;

/**
 * Who may use the window in a browser. A link is followed once and within minutes; what it is exchanged for lives in the
 * page's own storage, because cookies go to every port of this machine. Both are held as digests: comparing those takes the
 * same time whatever was sent.
 */
export class WindowSessions {
  readonly #clock: Clock;
  /** Digest of the link, and when it ends, in steady milliseconds. */
  readonly #links = new Map<string, number>();
  /** Digest of the session, and when it was used last; the latest stands last. */
  readonly #sessions = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  newLink(): string {
    const now = this.#clock.steady();
    for (const [link, end] of this.#links) if (end <= now) this.#links.delete(link);
    const link = randomBytes(32).toString('base64url');
    this.#links.set(digestOf(link), now + LINK_MS);
    return link;
  }

  /** The session that a link is good for, once. */
  open(link: string): string | undefined {
    const digest = digestOf(link);
    const end = this.#links.get(digest);
    this.#links.delete(digest);
    if (end === undefined || end <= this.#clock.steady()) return undefined;
    const session = randomBytes(32).toString('base64url');
    this.#sessions.set(digestOf(session), this.#clock.steady());
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MOST && oldest !== undefined) this.#sessions.delete(oldest);
    return session;
  }

  /** Whether it may still be used, which it is hereby. */
  use(session: string): boolean {
    if (!this.stands(session)) return false;
    const digest = digestOf(session);
    this.#sessions.delete(digest);
    this.#sessions.set(digest, this.#clock.steady());
    return true;
  }

  /** The same, of one that only listens. */
  stands(session: string): boolean {
    const usedAt = this.#sessions.get(digestOf(session));
    return usedAt !== undefined && usedAt + REST_MS > this.#clock.steady();
  }
}

const digestOf = (secret: string): string => hash('sha256', secret, 'base64url');
