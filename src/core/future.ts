import { TTL } from '../contract/limits.ts';
import type { Connection, Row } from './connection.ts';
import { named } from './forgetting.ts';
import type { SealedRows } from './sealed-rows.ts';
import { ALL_KINDS } from './statements.ts';

/** Writes in quick succession may be stamped a little ahead of the clock; only more than this is a clock that was wrong. */
const TOLERANCE = 3_600_000;

/**
 * Brings back what was written while the clock was ahead: its moments lie in the future, so it would outlive every limit,
 * and a restore would take what was stored again later for something forgotten since (R-TIME-02, R-TIME-05). What it had
 * left to live it keeps, from now. Inside a transaction; true if anything was changed.
 */
export function bringBackFromFuture({ connection, rows }: { connection: Connection; rows: SealedRows }, now: number): boolean {
  let changed = connection.sql.pullTombstones.run(now, now + TOLERANCE).changes > 0;
  for (const namespace of connection.namespaces()) {
    for (const kind of ALL_KINDS) {
      const future = connection.of(kind).future.all(namespace.id, now + TOLERANCE) as Row[];
      for (const [index, row] of future.entries()) {
        const entry = rows.open(named(namespace), kind, row);
        if (!entry) continue;
        // The last of them was written now, those before it just before: their order stays.
        const updatedAt = now - (future.length - 1 - index);
        const left = Math.min(entry.expiresAt - entry.updatedAt, TTL.max * 1000);
        rows.replace(named(namespace), kind, row, {
          ...entry,
          createdAt: Math.min(entry.createdAt, updatedAt),
          updatedAt,
          expiresAt: updatedAt + left,
        });
        changed = true;
      }
    }
  }
  return changed;
}
