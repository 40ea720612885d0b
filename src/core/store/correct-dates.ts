import { isOfSupersededFact } from '../crypto/cipher.ts';
import { aheadBy } from '../time/clock.ts';
import { type Connection, INCLUDE_EXPIRED, type EntryRow } from './connection.ts';
import { namespaceOf } from './forgetting.ts';
import type { SealedRows } from './sealed-rows.ts';
import { KIND_BY_NUMBER } from './statements.ts';
import type { SpaceChange, Entry, Kind, Namespace } from './store.ts';

const ROWS_READ_AT_ONCE = 1000;
const ROWS_WRITTEN_AT_ONCE = 50;

interface Deps {
  readonly connection: Connection;
  readonly rows: SealedRows;
  readonly now: () => number;
  readonly commit: <T>(job: () => T) => Promise<T>;
  /** Runs a query and converts disk errors to failures. */
  readonly read: <T>(query: () => T) => Promise<T>;
}

/**
 * Corrects the dates of entries that were written while the clock was ahead. Call it when the clock is right again. Each entry
 * keeps its lifetime and its position among the versions of its key (R-TIME-05, R-TIME-07). An entry with a broken seal is not
 * changed.
 */
export async function correctDates(deps: Deps): Promise<readonly SpaceChange[]> {
  const changed = new Map<string, SpaceChange>();
  const broken = new Set<number>();
  for (;;) {
    const found = (await datedAhead(deps)).filter((row) => !broken.has(row));
    if (found.length === 0) return [...changed.values()];
    for (let at = 0; at < found.length; at += ROWS_WRITTEN_AT_ONCE) {
      const slice = found.slice(at, at + ROWS_WRITTEN_AT_ONCE);
      const corrected = await deps.commit(() => slice.map((row) => correct(deps, row) ?? void broken.add(row)));
      for (const one of corrected) if (one) changed.set(`${one.kind} ${JSON.stringify(one.namespace)}`, one);
    }
  }
}

/** Returns the row numbers of entries dated in the future, earliest date first. */
async function datedAhead({ connection, now, read }: Deps): Promise<number[]> {
  const found: { row: number; updated_at: number }[] = [];
  for (let last = 0; ;) {
    const dates = await read(() => connection.sql.datesAfter.all(last, ROWS_READ_AT_ONCE) as typeof found);
    found.push(...dates.filter(({ updated_at }) => aheadBy(updated_at, now()) > 0));
    const end = dates.at(-1)?.row;
    if (end === undefined) break;
    last = end;
  }
  return found.toSorted((one, other) => one.updated_at - other.updated_at || one.row - other.row).map(({ row }) => row);
}

/** Corrects the dates of one row. Returns the change to announce, or undefined if the row is gone or cannot be decrypted. */
function correct({ connection, rows, now }: Deps, number: number): SpaceChange | undefined {
  const row = connection.sql.rowById.get(number) as (EntryRow & { kind: number; namespace: number }) | undefined;
  const namespaceRow = row && connection.namespaces().find(({ id }) => id === row.namespace);
  const kind = row && KIND_BY_NUMBER.get(row.kind);
  if (!row || !namespaceRow || !kind) return undefined;
  const namespace = namespaceOf(namespaceRow);
  const entry = rows.open(namespace, kind, row);
  if (!entry) return undefined;
  const change: SpaceChange = { namespace, kind: kind === 'history' ? 'fact' : kind };
  if (aheadBy(entry.updatedAt, now()) === 0) return change;
  const before = connection.sql.lastVersionBefore.get(row.namespace, row.key_hash, entry.updatedAt) as number | null;
  const corrected = correctedEntry(entry, now(), before ?? 0);
  rows.replace(namespace, kind, row, corrected);
  const versions = rows.versions(row.namespace, row.key_hash, INCLUDE_EXPIRED);
  correctFormerKeys({ rows, namespace, versions }, { from: entry.updatedAt, to: corrected.updatedAt });
  return change;
}

/** Corrects the time at which a write superseded other facts, because the date of that write was corrected. */
export function correctFormerKeys<Row extends EntryRow>(
  {
    rows,
    namespace,
    versions,
  }: {
    readonly rows: {
      open(namespace: Namespace, kind: Kind, row: Row): Entry | undefined;
      replace(namespace: Namespace, kind: Kind, row: Row, entry: Entry): void;
    };
    readonly namespace: Namespace;
    readonly versions: readonly Row[];
  },
  { from, to }: { readonly from: number; readonly to: number },
): void {
  for (const row of versions.filter(({ sealed }) => isOfSupersededFact(sealed))) {
    const entry = rows.open(namespace, 'history', row);
    const [last, ...others] = entry?.formerKeys ?? [];
    if (!entry || last?.until !== from) continue;
    rows.replace(namespace, 'history', row, { ...entry, formerKeys: [{ ...last, until: to }, ...others] });
  }
}

/** Moves the dates of an entry back to the present. `before` is the update time of the previous version of its key, or 0. */
export function correctedEntry(entry: Entry, now: number, before: number): Entry {
  const updatedAt = Math.max(now, before + 1);
  const ahead = entry.updatedAt - updatedAt;
  return { ...entry, createdAt: Math.min(entry.createdAt, updatedAt), updatedAt, expiresAt: entry.expiresAt - ahead };
}
