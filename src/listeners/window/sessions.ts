import { hash, randomBytes } from 'node:crypto';
import type { WindowSession } from '../../contract/window-session.ts';
import type { WindowSessionPort as ListedSessions } from '../../core/operations/memory.ts';
import type { Clock } from '../../core/time/clock.ts';
import { formatTime } from '../../core/time/format-time.ts';
import { browserNameOf } from './browser-name.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Lifetime of an unused link. It is short, so that a link that is later found in a log does not work. */
const LINK_MS = 5 * MINUTE;
/** A session expires after this time without use. */
const IDLE_MS = 12 * HOUR;
/** A session expires after this time even if it is used, so that a stolen session secret does not stay valid. */
const LIFETIME_MS = 7 * 24 * HOUR;
/** Maximum number of open sessions. The next session replaces the least recently used. */
const MAX_SESSIONS = 16;

interface Session {
  /** Id of the session in lists. It is random instead of derived from the secret, because lists show it. */
  readonly id: string;
  readonly browser: string;
  /** Times on the wall clock, shown in lists. */
  readonly openedAt: number;
  usedAt: number;
  /** Times on the steady clock, used for expiry. */
  readonly openedSteady: number;
  usedSteady: number;
}

/**
 * The browser sessions of the window. The page exchanges a link, once, for a session secret. The page stores the secret in its
 * own storage and not in a cookie, because browsers send cookies to every port of this machine. Links and secrets are stored and
 * looked up only as digests, so that the duration of a lookup does not reveal them. Sessions exist only in RAM, so they all end
 * when the program exits.
 */
export class WindowSessionStore implements ListedSessions {
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  /** The unused links. Maps the digest of each link to its expiry time on the steady clock. */
  readonly #links = new Map<string, number>();
  /** Maps the digest of each session secret to its session, least recently used first. */
  readonly #sessions = new Map<string, Session>();

  constructor(clock: Clock, onEnd: () => void = () => undefined) {
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  createLink(): string {
    const now = this.#clock.steady();
    for (const [link, end] of this.#links) if (end <= now) this.#links.delete(link);
    const link = randomBytes(32).toString('base64url');
    this.#links.set(digestOf(link), now + LINK_MS);
    return link;
  }

  /** Exchanges a link for a session secret. Returns undefined if the link is unknown, used or expired. */
  open(link: string, userAgent = ''): string | undefined {
    const digest = digestOf(link);
    const end = this.#links.get(digest);
    this.#links.delete(digest);
    const steady = this.#clock.steady();
    if (end === undefined || end <= steady) return undefined;
    const session = randomBytes(32).toString('base64url');
    const now = this.#clock.now();
    this.#sessions.set(digestOf(session), {
      id: randomBytes(6).toString('hex'),
      browser: browserNameOf(userAgent),
      openedAt: now,
      usedAt: now,
      openedSteady: steady,
      usedSteady: steady,
    });
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MAX_SESSIONS && oldest !== undefined) {
      this.#sessions.delete(oldest);
      this.#onEnd();
    }
    return session;
  }

  /** Returns whether the session is open, and marks it as used. */
  use(session: string): boolean {
    const digest = digestOf(session);
    const found = this.#sessions.get(digest);
    if (!found || !this.#isOpen(found)) return false;
    found.usedSteady = this.#clock.steady();
    found.usedAt = this.#clock.now();
    this.#sessions.delete(digest);
    this.#sessions.set(digest, found);
    return true;
  }

  /** Returns whether the session is open, without renewing it. */
  isOpen(session: string): boolean {
    const found = this.#sessions.get(digestOf(session));
    return found !== undefined && this.#isOpen(found);
  }

  list(): readonly WindowSession[] {
    return [...this.#sessions.values()]
      .filter((session) => this.#isOpen(session))
      .toReversed()
      .map(({ id, browser, openedAt, usedAt }) => ({
        id,
        browser,
        opened_at: formatTime(openedAt),
        last_used_at: formatTime(usedAt),
        expires_at: formatTime(openedAt + LIFETIME_MS),
      }));
  }

  end(id: string): boolean {
    const found = [...this.#sessions].find(([, session]) => session.id === id && this.#isOpen(session));
    if (!found) return false;
    this.#sessions.delete(found[0]);
    this.#onEnd();
    return true;
  }

  #isOpen({ openedSteady, usedSteady }: Session): boolean {
    const now = this.#clock.steady();
    return usedSteady + IDLE_MS > now && openedSteady + LIFETIME_MS > now;
  }
}

const digestOf = (secret: string): string => hash('sha256', secret, 'base64url');
