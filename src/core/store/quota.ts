import type { Database, Statement } from 'better-sqlite3';
import { Failure } from '../../contract/failure.ts';
import { PACK, RECORD_ROWS } from '../../contract/limits.ts';
import { KIND_NUMBERS } from './statements.ts';
import type { Kind, Quota } from './store.ts';

const MOST: Partial<Record<Kind, number>> = RECORD_ROWS;

/** Rows of a kind that one namespace keeps; the oldest make room. */
export const rowLimit = (kind: Kind): number => MOST[kind] ?? Infinity;

/**
 * Kinds that the clients of a memory share: one of them must not evict what the others left. Answers of packs are not among
 * them: they are long, and whoever needs one that was evicted runs the pack again.
 */
export const isSharedKind = (kind: Kind): boolean => kind === 'activity' || kind === 'audit';

/** What takes a place that somebody has to make. */
export type QuotaKind = 'fact' | 'pack';

export const isQuotaKind = (kind: Kind): kind is QuotaKind => kind === 'fact' || kind === 'pack';

/** Packs cannot use up what a person has for facts, nor facts what packs have. */
export const quotaOf = (kind: QuotaKind, quota: Quota): Quota =>
  kind === 'fact' ? quota : { facts: PACK.memory, bytes: quota.bytes };

/** What is said to a subject that has used up its share (R-FACT-16, R-PACK-28). */
export function quotaExceeded(kind: QuotaKind, what: keyof Quota, quota: Quota): Failure {
  if (kind === 'pack') {
    const most = what === 'facts' ? `${quota.facts} entries` : size(quota.bytes);
    return new Failure(
      'quota_exceeded',
      `Packs may remember ${most} of their own for one subject, and do; end sessions, or let the pack forget what it does not need.`,
    );
  }
  const holds = what === 'facts' ? `${quota.facts} facts` : `${size(quota.bytes)}, earlier versions included`;
  return new Failure(
    'quota_exceeded',
    `This memory may hold ${holds}, and has; forget what is no longer needed, or have its owner raise ${SETTING[what]}.`,
  );
}

const MIB = 1024 * 1024;
const size = (bytes: number): string => (bytes < MIB ? `${bytes} bytes` : `${Math.floor(bytes / MIB)} MiB`);

const SETTING: Record<keyof Quota, string> = { facts: 'HELMDECK_QUOTA_FACTS', bytes: 'HELMDECK_QUOTA_BYTES' };

const { fact, history, pack } = KIND_NUMBERS;

/**
 * Counters beside the entries, in memory and gone with the connection. SQLite keeps them by triggers, so they follow every
 * way in which a row may come, go or change, and are taken back with whatever is taken back.
 *
 * They count rows, expired or not: a row that has just expired is still there until the sweep. Whoever asks subtracts those.
 */
const ROWS = `
  CREATE TEMP TABLE tally (
    namespace INTEGER NOT NULL, kind INTEGER NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind)
  ) WITHOUT ROWID;

  INSERT INTO tally SELECT namespace, kind, count(*), sum(length(sealed)) FROM main.entry GROUP BY namespace, kind;

  CREATE TEMP TRIGGER tally_insert AFTER INSERT ON main.entry BEGIN
    INSERT INTO tally VALUES (new.namespace, new.kind, 1, length(new.sealed))
      ON CONFLICT DO UPDATE SET rows = rows + 1, bytes = bytes + excluded.bytes;
  END;
  CREATE TEMP TRIGGER tally_delete AFTER DELETE ON main.entry BEGIN
    UPDATE tally SET rows = rows - 1, bytes = bytes - length(old.sealed)
      WHERE namespace = old.namespace AND kind = old.kind;
  END;
  CREATE TEMP TRIGGER tally_update AFTER UPDATE OF sealed ON main.entry WHEN length(new.sealed) <> length(old.sealed) BEGIN
    UPDATE tally SET bytes = bytes + length(new.sealed) - length(old.sealed)
      WHERE namespace = new.namespace AND kind = new.kind;
  END;
`;

/** How much there is: what the quota asks. */
export class UsageCounters {
  readonly #usage: Readonly<Record<QuotaKind, Statement>>;
  readonly #expired: Readonly<Record<QuotaKind, Statement>>;
  readonly #rows: Statement;

  constructor(db: Database) {
    db.transaction(() => db.exec(ROWS))();
    const subject = 'namespace IN (SELECT id FROM namespace WHERE subject = @subject)';
    const usage = (kind: number, kinds: string): Statement =>
      db.prepare(
        `SELECT coalesce(sum(iif(kind = ${kind}, rows, 0)), 0) AS facts, coalesce(sum(bytes), 0) AS bytes
           FROM temp.tally WHERE kind IN (${kinds}) AND ${subject}`,
      );
    this.#usage = { fact: usage(fact, `${fact}, ${history}`), pack: usage(pack, `${pack}`) };
    // An expired fact takes all of its versions along; a version may also end before its fact.
    const expiredFacts = db.prepare(
      `SELECT count(*) FILTER (WHERE kind = ${fact}) AS facts, coalesce(sum(length(sealed)), 0) AS bytes FROM (
         SELECT kind, sealed FROM entry WHERE ${subject} AND kind IN (${fact}, ${history}) AND expires_at <= @now
         UNION ALL
         SELECT version.kind, version.sealed FROM entry AS gone JOIN entry AS version
             ON version.namespace = gone.namespace AND version.kind = 2 AND version.key_hash = gone.key_hash
           WHERE gone.${subject} AND gone.kind = ${fact} AND gone.expires_at <= @now AND version.expires_at > @now)`,
    );
    const expiredMemory = db.prepare(
      `SELECT count(*) AS facts, coalesce(sum(length(sealed)), 0) AS bytes FROM entry
         WHERE ${subject} AND kind = ${pack} AND expires_at <= @now`,
    );
    this.#expired = { fact: expiredFacts, pack: expiredMemory };
    this.#rows = db.prepare('SELECT rows FROM temp.tally WHERE namespace = ? AND kind = ?').pluck();
  }

  /** What a subject holds of what it may hold, its sessions included. */
  usage(subject: string, kind: QuotaKind): Quota {
    return this.#usage[kind].get({ subject }) as Quota;
  }

  /** How much of that nobody sees any more: it waits for the sweep. */
  expired(subject: string, kind: QuotaKind, now: number): Quota {
    return this.#expired[kind].get({ subject, now }) as Quota;
  }

  rows(namespaceId: number, kind: Kind): number {
    return (this.#rows.get(namespaceId, KIND_NUMBERS[kind]) as number | undefined) ?? 0;
  }
}
