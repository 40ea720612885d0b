import { TOMBSTONE_TTL } from '../../contract/limits.ts';
import type { Clock } from '../time/clock.ts';
import type { EntryRow } from './connection.ts';
import { correctDates } from './correct-dates.ts';
import { namespaceOf } from './forgetting.ts';
import { KIND_BY_NUMBER } from './statements.ts';
import type { StoreContext } from './store-context.ts';
import type { SpaceChange, SweepResult } from './store.ts';

/** Maximum entries deleted in one commit. */
const SLICE = 200;
/** Maximum entries deleted in one commit that also contains other writes. */
const SHARED_SLICE = 8;
/** Milliseconds until the next sweep after a failed sweep, for example on a full disk. */
const RETRY_MS = 60_000;
/** Milliseconds between two sweeps while the clock is in doubt. */
export const REVIEW_MS = 3_600_000;

type Deps = Omit<StoreContext, 'sweeper' | 'quota' | 'freeSpace'> & { readonly clock: Clock };

interface ScheduleDeps {
  readonly clock: Clock;
  readonly time: { now(): number };
  readonly sweep: (limit: number) => Promise<SweepResult>;
}

/** Starts a sweep when the next entry expires. */
export class SweepSchedule {
  readonly #deps: ScheduleDeps;
  #next: { at: number; timer: Disposable } | undefined;
  #sweeping: Promise<void> | undefined;
  /**
   * Whether another sweep became due during the running sweep. The running sweep then starts again, because it may already have
   * passed the newly expired entries.
   */
  #again = false;
  #stopped = false;

  constructor(deps: ScheduleDeps) {
    this.#deps = deps;
  }

  scheduleAt(time: number): void {
    if (this.#stopped || (this.#next && this.#next.at <= time)) return;
    this.#next?.timer[Symbol.dispose]();
    const timer = this.#deps.clock.after(Math.max(0, time - this.#deps.time.now()), () => this.#start());
    this.#next = { at: time, timer };
  }

  /**
   * Starts a sweep that is overdue. Sweeps can be late, because timers stop while the machine sleeps and ignore changes of the
   * wall clock.
   */
  catchUp(): void {
    if (this.#next && this.#next.at < this.#deps.time.now()) this.#start();
  }

  stop(): void {
    this.#stopped = true;
    this.#next?.timer[Symbol.dispose]();
  }

  /** Resolves when no sweep is running. */
  async whenIdle(): Promise<void> {
    await this.#sweeping;
  }

  #start(): void {
    this.#next?.timer[Symbol.dispose]();
    this.#next = undefined;
    this.#again = this.#sweeping !== undefined;
    this.#sweeping ??= this.#sweepAll().finally(() => (this.#sweeping = undefined));
  }

  async #sweepAll(): Promise<void> {
    const now = (): number => this.#deps.time.now();
    try {
      let swept: SweepResult;
      let more: boolean;
      do {
        this.#again = false;
        swept = await this.#deps.sweep(SLICE);
        more = swept.removed > 0 && swept.next !== undefined && swept.next <= now();
      } while ((more || this.#again) && !this.#stopped);
      if (swept.next !== undefined) this.scheduleAt(swept.next);
    } catch {
      this.scheduleAt(now() + RETRY_MS);
    }
  }
}

/** Deletes entries when they expire, and waits in between. Also corrects dates that were written while the clock was wrong. */
export class Sweeper extends SweepSchedule {
  readonly #deps: Deps;
  /** Whether earlier slices of this sweep deleted entries whose bytes are not purged yet. */
  #unpurged = false;

  constructor(deps: Deps) {
    super({ clock: deps.clock, time: deps.time, sweep: (limit) => this.sweep(limit) });
    this.#deps = deps;
  }

  async sweep(limit: number): Promise<SweepResult> {
    const { time, disk, queue, changes } = this.#deps;
    await time.review();
    time.saveWhenDue();
    try {
      await this.#correctDates();
      const { changed, ...swept } = await queue.runInBackground((isAlone) =>
        this.#remove(isAlone ? limit : Math.min(limit, SHARED_SLICE)),
      );
      for (const each of changed) changes.notify(each);
      this.#unpurged ||= swept.removed > 0;
      const more = swept.removed > 0 && swept.next !== undefined && swept.next <= time.now();
      // Purging is slow, so only the last slice purges, for all slices.
      if (!more) this.#purge();
      disk.refillReserve();
      return swept;
    } catch (error) {
      this.#purge();
      throw error;
    }
  }

  #remove(limit: number): SweepResult & { changed: readonly SpaceChange[] } {
    const { connection, rows, time } = this.#deps;
    const now = time.now();
    if (time.inDoubt) return { removed: 0, next: now + (time.reviewIn || REVIEW_MS), changed: [] };
    const namespaces = new Map(connection.namespaces().map((row) => [row.id, namespaceOf(row)]));
    const changed = new Map<string, SpaceChange>();
    const expired = connection.sql.expired.all({ now, limit }) as (Pick<EntryRow, 'row' | 'key_hash'> & {
      namespace: number;
      kind: number;
    })[];
    for (const row of expired) {
      const [namespace, kind] = [namespaces.get(row.namespace), KIND_BY_NUMBER.get(row.kind)];
      if (!namespace || !kind) continue;
      rows.deleteWithVersions(row.namespace, kind, row);
      if (kind !== 'history') changed.set(`${row.namespace} ${kind}`, { namespace, kind });
    }
    const removed = expired.length;
    // The limit was reached, so there may be more expired entries.
    if (removed === limit) return { removed, next: now, changed: [...changed.values()] };
    connection.deleteEmptySessions();
    if (rows.authors.deleteUnused(now)) this.#unpurged = true;
    connection.sql.deleteOldTombstones.run(now - TOMBSTONE_TTL * 1000);
    const next = connection.sql.nextExpiry.get() as number | null;
    return { removed, changed: [...changed.values()], ...(next !== null && { next }) };
  }

  /**
   * Corrects dates from a wrong clock. Postponed during a key rotation, because a fact and its versions must stay encrypted with
   * the same key.
   */
  async #correctDates(): Promise<void> {
    const { connection, keys, rows, time, disk, queue, changes } = this.#deps;
    const { heldKeys } = keys;
    if (!time.hasUntrustedDates || !heldKeys) return;
    if (heldKeys.ring.retiring) return this.scheduleAt(time.now() + REVIEW_MS);
    let startedAt: number;
    do {
      startedAt = time.now();
      const changed = await correctDates({
        connection,
        rows,
        now: () => time.now(),
        commit: (job) => queue.runInBackground(job),
        read: async (query) => disk.attempt(query),
      });
      for (const each of changed) changes.notify(each);
    } while (!(await queue.run(() => this.#clearUntrustedDates(startedAt))));
  }

  /** Returns false if the clock was set back after `startedAt`, because more dates are then in the future. */
  #clearUntrustedDates(startedAt: number): boolean {
    const { time } = this.#deps;
    if (time.now() < startedAt) return false;
    time.clearUntrustedDates();
    return true;
  }

  #purge(): void {
    if (this.#unpurged) this.#deps.disk.purgeSoon();
    this.#unpurged = false;
  }
}
