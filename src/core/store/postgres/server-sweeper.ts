import { TOMBSTONE_TTL } from '../../../contract/limits.ts';
import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import { aheadBy, type Clock, MARGIN_MS } from '../../time/clock.ts';
import type { StoredClock } from '../../time/stored-clock.ts';
import { INCLUDE_EXPIRED } from '../connection.ts';
import { correctedEntry, correctFormerKeys } from '../correct-dates.ts';
import type { ChangeNotifier } from '../events.ts';
import { KIND_BY_NUMBER } from '../statements.ts';
import type { Kind, SweepResult } from '../store.ts';
import { REVIEW_MS, SweepSchedule } from '../sweeper.ts';
import type { Database, RunQuery } from './database.ts';
import type { ServerRows } from './rows.ts';
import type { ServerQueue } from './server-queue.ts';
import type { WorkingSet } from './working-set.ts';

interface Deps {
  readonly database: Database;
  readonly set: WorkingSet;
  readonly rows: ServerRows;
  readonly keys: KeyKeeper;
  readonly time: StoredClock;
  readonly clock: Clock;
  readonly queue: ServerQueue;
  readonly changes: ChangeNotifier;
}

interface Changed {
  readonly id: number;
  readonly kind: Kind;
}

/** Milliseconds until the next sweep if another process sweeps now. */
const BUSY_MS = 5000;
/** Rows whose dates are corrected in one transaction. */
const CORRECTED_AT_ONCE = 50;
/** Rows whose dates are read at once. */
const READ_AT_ONCE = 10_000;
const EMPTY_SESSIONS = `SELECT id FROM namespace WHERE session <> '' AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.namespace = namespace.id)`;

/** Deletes entries when they expire. Also corrects dates that were written while the clock was wrong. */
export class ServerSweeper extends SweepSchedule {
  readonly #deps: Deps;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    super({ clock: deps.clock, time: deps.time, sweep: (limit) => this.sweep(limit) });
    this.#deps = deps;
  }

  /** Sweeps run one after another, because two in one transaction would delete the same rows. One process sweeps at a time. */
  sweep(limit: number): Promise<SweepResult> {
    const { database, time } = this.#deps;
    const result = this.#turn.then(async () => {
      const swept = await database.alone('sweep', () => this.#sweep(limit));
      return swept?.value ?? { removed: 0, next: time.now() + BUSY_MS };
    });
    this.#turn = result.catch(() => undefined);
    return result;
  }

  async #sweep(limit: number): Promise<SweepResult> {
    const { time } = this.#deps;
    await time.review();
    time.saveWhenDue();
    await this.#correctDates();
    const now = time.now();
    if (time.inDoubt) return { removed: 0, next: now + (time.reviewIn ?? REVIEW_MS) };
    const removed = await this.#remove(limit, now);
    // The limit was reached, so there may be more expired entries.
    if (removed === limit) return { removed, next: now };
    const next = await this.#finish(now);
    return { removed, ...(next !== undefined && { next }) };
  }

  async #remove(limit: number, now: number): Promise<number> {
    const { set, rows, queue } = this.#deps;
    const changed = new Map<string, Changed>();
    let numbers: number[] = [];
    const load = async (run: RunQuery): Promise<void> => {
      const sql = `SELECT number FROM usage JOIN entry ON entry.namespace = usage.namespace AND entry.kind = usage.kind
        AND expires_at <= $1 LIMIT $2`;
      numbers = (await run<{ number: number }>(sql, [now, limit])).map(({ number }) => number);
      await set.loadRows(run, numbers);
    };
    const remove = (): number => {
      for (const number of numbers) {
        // A version may be gone with its fact.
        const row = set.row(number);
        const kind = row && KIND_BY_NUMBER.get(row.kind);
        if (!row || !kind) continue;
        rows.deleteWithVersions(row.namespace, kind, row);
        changed.set(`${row.namespace} ${kind}`, { id: row.namespace, kind });
      }
      return numbers.length;
    };
    const removed = await queue.run(remove, 'sweep', { load });
    this.#notify(changed.values());
    return removed;
  }

  /** Deletes what only a finished sweep can delete, and returns the time at which the next entry expires. */
  async #finish(now: number): Promise<number | undefined> {
    const { database, set, queue } = this.#deps;
    // Read outside of a transaction, so that no writer waits. The transaction looks at these namespaces again.
    const empty = await database.read<{ id: number }>(EMPTY_SESSIONS);
    await this.deleteEmptySessions(empty.map(({ id }) => id));
    await queue.run(() => {
      set.addStatement('DELETE FROM tombstone WHERE at <= $1', [now - TOMBSTONE_TTL * 1000]);
    }, 'sweep');
    const [row] = await database.read<{ next: number | null }>(
      `SELECT min(soonest) AS next FROM usage CROSS JOIN LATERAL
         (SELECT expires_at FROM entry WHERE namespace = usage.namespace AND kind = usage.kind ORDER BY expires_at LIMIT 1) AS first (soonest)`,
    );
    return row?.next ?? undefined;
  }

  /** Deletes those of the namespaces that belong to sessions and have no entries. */
  async deleteEmptySessions(namespaces: readonly number[]): Promise<void> {
    const { set, queue } = this.#deps;
    const sessions = namespaces.filter((id) => set.namespaceAt(id)?.session !== undefined);
    if (sessions.length === 0) return;
    let empty: number[] = [];
    const load = async (run: RunQuery): Promise<void> => {
      empty = (await run<{ id: number }>(`${EMPTY_SESSIONS} AND id = ANY ($1::bigint[])`, [sessions])).map(({ id }) => id);
    };
    const remove = (): void => {
      // Another write of the same batch may have stored an entry.
      for (const id of empty) if (!set.hasRowsIn(id)) set.deleteNamespace(id);
    };
    await queue.run(remove, 'sweep', { load });
  }

  /** Postponed during a key rotation, because a fact and its versions must stay encrypted with the same key. */
  async #correctDates(): Promise<void> {
    const { keys, time, queue } = this.#deps;
    const { heldKeys } = keys;
    if (!time.hasUntrustedDates || !heldKeys) return;
    if (heldKeys.ring.retiring) return this.scheduleAt(time.now() + REVIEW_MS);
    const broken = new Set<number>();
    for (;;) {
      const startedAt = time.now();
      for (;;) {
        const ahead = (await this.#datedAhead()).filter((number) => !broken.has(number));
        if (ahead.length === 0) break;
        for (let at = 0; at < ahead.length; at += CORRECTED_AT_ONCE) {
          await this.#correct(ahead.slice(at, at + CORRECTED_AT_ONCE), broken);
        }
      }
      const done = await queue.run(() => {
        if (time.now() < startedAt) return false;
        time.clearUntrustedDates();
        return true;
      });
      if (done) return;
    }
  }

  /** Returns the numbers of rows that are dated in the future, earliest date first. No writer waits while all rows are read. */
  async #datedAhead(): Promise<number[]> {
    const { database, time } = this.#deps;
    const found: { number: number; date: number }[] = [];
    for (let after = 0; ;) {
      const [some] = await database.read<{ last: number | null; numbers: string[] | null; dates: string[] | null }>(
        `SELECT max(number) AS last, array_agg(number) FILTER (WHERE updated_at > $2) AS numbers,
             array_agg(updated_at) FILTER (WHERE updated_at > $2) AS dates
           FROM (SELECT number, updated_at FROM entry WHERE number > $1 ORDER BY number LIMIT ${READ_AT_ONCE}) AS part`,
        [after, time.now() + MARGIN_MS],
      );
      const dates = some?.dates ?? [];
      found.push(...(some?.numbers ?? []).map((number, at) => ({ number: Number(number), date: Number(dates[at]) })));
      if (some?.last == null) break;
      after = some.last;
    }
    return found.toSorted((one, other) => one.date - other.date || one.number - other.number).map(({ number }) => number);
  }

  async #correct(numbers: readonly number[], broken: Set<number>): Promise<void> {
    const { set, rows, time, queue } = this.#deps;
    const changed = new Map<string, Changed>();
    const load = (run: RunQuery): Promise<void> => set.loadRows(run, numbers);
    await queue.run(
      () => {
        for (const number of numbers) {
          const row = set.row(number);
          const [namespace, kind] = [row && set.namespaceAt(row.namespace), row && KIND_BY_NUMBER.get(row.kind)];
          const entry = row && namespace && kind && rows.open(namespace, kind, row);
          if (!entry || !row || !namespace || !kind) broken.add(number);
          else if (aheadBy(entry.updatedAt, time.now()) > 0) {
            const versions = rows.versions(row.namespace, row.key_hash, INCLUDE_EXPIRED);
            const earlier = versions.find((version) => version.updated_at < entry.updatedAt);
            const corrected = correctedEntry(entry, time.now(), earlier?.updated_at ?? 0);
            rows.replace(namespace, kind, row, corrected);
            const others = versions.filter((version) => version.row !== number);
            correctFormerKeys({ rows, namespace, versions: others }, { from: entry.updatedAt, to: corrected.updatedAt });
            changed.set(`${row.namespace} ${kind}`, { id: row.namespace, kind });
          }
        }
      },
      'sweep',
      { load },
    );
    this.#notify(changed.values());
  }

  #notify(changed: Iterable<Changed>): void {
    for (const { id, kind } of changed) {
      const namespace = this.#deps.set.namespaceAt(id);
      if (namespace) this.#deps.changes.notify({ namespace, kind: kind === 'history' ? 'fact' : kind });
    }
  }
}
