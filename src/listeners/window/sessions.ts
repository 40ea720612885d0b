import { hash, randomBytes } from 'node:crypto';
import type { WindowSession } from '../../contract/window-session.ts';
import type { WindowSessionPort as ListedSessions } from '../../core/operations/memory.ts';
import type { Clock } from '../../core/time/clock.ts';
import { formatTime } from '../../core/time/format-time.ts';
import { browserNameOf } from './browser-name.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** A link that nobody followed is worth nothing to whoever finds it later in a log. */
const LINK_MS = 5 * MINUTE;
/** A window that nobody uses for so long asks for a new link. */
const REST_MS = 12 * HOUR;
/** A session ends then however much it is used: one that was stolen does not stay good. */
const LIFETIME_MS = 7 * 24 * HOUR;
/** Windows at once; the one used least recently makes room. */
const MOST = 16;

interface Session {
  /** Names it in the list. It is drawn apart from the session, so it says nothing about that. */
  readonly id: string;
  readonly browser: string;
  /** Wall clock, for the list alone. */
  readonly openedAt: number;
  usedAt: number;
  /** Steady milliseconds, which decide. */
  readonly opened: number;
  used: number;
}

/**
 * Who may use the window in a browser. A link is followed once and within minutes; what it is exchanged for lives in the
 * page's own storage, because cookies go to every port of this machine. Both are held as digests: comparing those takes the
 * same time whatever was sent. They live in RAM alone, so a restart ends them all.
 */
export class WindowSessionStore implements ListedSessions {
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  /** Digest of the link, and when it ends, in steady milliseconds. */
  readonly #links = new Map<string, number>();
  /** By digest; the one used last stands last. */
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

  /** The session that a link is good for, once. */
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
      opened: steady,
      used: steady,
    });
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MOST && oldest !== undefined) this.#sessions.delete(oldest);
    return session;
  }

  /** Whether it may still be used, which it is hereby. */
  use(session: string): boolean {
    const digest = digestOf(session);
    const found = this.#sessions.get(digest);
    if (!found || !this.#isOpen(found)) return false;
    found.used = this.#clock.steady();
    found.usedAt = this.#clock.now();
    this.#sessions.delete(digest);
    this.#sessions.set(digest, found);
    return true;
  }

  /** The same, of one that only listens. */
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

  #isOpen({ opened, used }: Session): boolean {
    const now = this.#clock.steady();
    return used + REST_MS > now && opened + LIFETIME_MS > now;
  }
}

const digestOf = (secret: string): string => hash('sha256', secret, 'base64url');
