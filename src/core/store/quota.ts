import type { Database, Statement } from 'better-sqlite3';
import { Failure } from '../../contract/failure.ts';
import { PACK, RECORD_ROWS } from '../../contract/limits.ts';
import { KIND_NUMBERS } from './statements.ts';
import type { Kind, Quota } from './store.ts';

const MOST: Partial<Record<Kind, number>> = RECORD_ROWS;

/** Returns the maximum rows of a kind in one namespace. When there are more, rows are evicted. */
export const rowLimit = (kind: Kind): number => MOST[kind] ?? Infinity;

/**
 * Whether rows of this kind are protected from eviction by other clients. Cached pack results are not protected, because the
 * pack can compute them again.
 */
export const isSharedKind = (kind: Kind): boolean => kind === 'activity' || kind === 'audit';

/** Kinds with a quota. Writes beyond the quota are rejected instead of evicting other entries. */
export type QuotaKind = 'fact' | 'pack';

export const isQuotaKind = (kind: Kind): kind is QuotaKind => kind === 'fact' || kind === 'pack';

export const quotaOf = (kind: QuotaKind, quota: Quota): Quota =>
  kind === 'fact' ? quota : { facts: PACK.memory, bytes: quota.bytes };

/** Builds the failure of a write beyond the quota (R-FACT-16, R-PACK-28). */
export function quotaExceeded(kind: QuotaKind, what: keyof Quota, quota: Quota): Failure {
  if (kind === 'pack') {
    const most = what === 'facts' ? `${quota.facts} entries` : size(quota.bytes);
    return new Failure(
      'quota_exceeded',
      `Packs have reached their limit of ${most} for this subject. End sessions, or let the pack forget entries that it does not need.`,
    );
  }
  const holds = what === 'facts' ? `${quota.facts} facts` : `${size(quota.bytes)}, including earlier versions`;
  return new Failure(
    'quota_exceeded',
    `This memory has reached its limit of ${holds}. Forget facts that are no longer needed, or ask the owner to raise ${SETTING[what]}.`,
  );
}

const MIB = 1024 * 1024;
const size = (bytes: number): string => (bytes < MIB ? `${bytes} bytes` : `${Math.floor(bytes / MIB)} MiB`);

const SETTING: Record<keyof Quota, string> = { facts: 'HELMDECK_QUOTA_FACTS', bytes: 'HELMDECK_QUOTA_BYTES' };

const { fact, history, pack } = KIND_NUMBERS;

/** Returns SQL for the number of a namespace and a kind in the usage counters. Every kind is below 8. */
const placeOf = (namespace: string, kind: string | number): string => `${namespace} * 8 + ${kind}`;
const allKinds = Object.values(KIND_NUMBERS)
  .map((kind) => `(${kind})`)
  .join(', ');

/**
 * SQL that creates usage counters in temporary tables. Triggers update the counters, so the counters include every change and
 * are rolled back with it. Expired rows are counted until a sweep deletes them. Each namespace has a counter for each kind, so
 * that an insert changes one row under one integer key.
 */
const ROWS = `
  CREATE TEMP TABLE tally (place INTEGER PRIMARY KEY, rows INTEGER NOT NULL, bytes INTEGER NOT NULL);

  INSERT INTO tally SELECT ${placeOf('namespace', 'kind')}, count(*), sum(length(sealed)) FROM main.entry GROUP BY namespace, kind;
  INSERT OR IGNORE INTO tally SELECT ${placeOf('id', 'column1')}, 0, 0 FROM main.namespace CROSS JOIN (VALUES ${allKinds});

  CREATE TEMP TRIGGER tally_namespace AFTER INSERT ON main.namespace BEGIN
    INSERT OR IGNORE INTO tally SELECT ${placeOf('new.id', 'column1')}, 0, 0 FROM (VALUES ${allKinds});
  END;
  CREATE TEMP TRIGGER tally_insert AFTER INSERT ON main.entry BEGIN
    UPDATE tally SET rows = rows + 1, bytes = bytes + length(new.sealed) WHERE place = ${placeOf('new.namespace', 'new.kind')};
  END;
  CREATE TEMP TRIGGER tally_delete AFTER DELETE ON main.entry BEGIN
    UPDATE tally SET rows = rows - 1, bytes = bytes - length(old.sealed) WHERE place = ${placeOf('old.namespace', 'old.kind')};
  END;
  CREATE TEMP TRIGGER tally_update AFTER UPDATE OF sealed ON main.entry WHEN length(new.sealed) <> length(old.sealed) BEGIN
    UPDATE tally SET bytes = bytes + length(new.sealed) - length(old.sealed)
      WHERE place = ${placeOf('new.namespace', 'new.kind')};
  END;
`;

export class UsageCounters {
  readonly #usage: Readonly<Record<QuotaKind, Statement>>;
  readonly #expired: Readonly<Record<QuotaKind, Statement>>;
  readonly #rows: Statement;

  constructor(db: Database) {
    db.transaction(() => db.exec(ROWS))();
    const subject = 'namespace IN (SELECT id FROM namespace WHERE subject = @subject)';
    const usage = (kind: number, kinds: string): Statement =>
      db.prepare(
        `SELECT coalesce(sum(iif(place % 8 = ${kind}, rows, 0)), 0) AS facts, coalesce(sum(bytes), 0) AS bytes
           FROM main.namespace JOIN temp.tally ON place BETWEEN ${placeOf('id', 0)} AND ${placeOf('id', 7)}
           WHERE place % 8 IN (${kinds}) AND subject = @subject`,
      );
    this.#usage = { fact: usage(fact, `${fact}, ${history}`), pack: usage(pack, `${pack}`) };
    // The condition `kind <> 6` lets SQLite use the partial index on `expires_at`.
    // Counts expired facts with all their versions, and expired versions of other facts.
    const expiredFacts = db.prepare(
      `SELECT count(*) FILTER (WHERE kind = ${fact}) AS facts, coalesce(sum(length(sealed)), 0) AS bytes FROM (
         SELECT kind, sealed FROM entry WHERE ${subject} AND kind IN (${fact}, ${history}) AND kind <> 6 AND expires_at <= @now
         UNION ALL
         SELECT version.kind, version.sealed FROM entry AS gone JOIN entry AS version
             ON version.namespace = gone.namespace AND version.kind = 2 AND version.key_hash = gone.key_hash
           WHERE gone.${subject} AND gone.kind = ${fact} AND gone.kind <> 6 AND gone.expires_at <= @now AND version.expires_at > @now)`,
    );
    const expiredMemory = db.prepare(
      `SELECT count(*) AS facts, coalesce(sum(length(sealed)), 0) AS bytes FROM entry
         WHERE ${subject} AND kind = ${pack} AND kind <> 6 AND expires_at <= @now`,
    );
    this.#expired = { fact: expiredFacts, pack: expiredMemory };
    this.#rows = db.prepare(`SELECT rows FROM temp.tally WHERE place = ${placeOf('?', '?')}`).pluck();
  }

  /** Returns the storage that a subject uses, including its sessions and expired entries. */
  usage(subject: string, kind: QuotaKind): Quota {
    return this.#usage[kind].get({ subject }) as Quota;
  }

  expired(subject: string, kind: QuotaKind, now: number): Quota {
    return this.#expired[kind].get({ subject, now }) as Quota;
  }

  rows(namespaceId: number, kind: Kind): number {
    return (this.#rows.get(namespaceId, KIND_NUMBERS[kind]) as number | undefined) ?? 0;
  }
}
