import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Connection, Row } from './connection.ts';
import { named } from './forgetting.ts';
import type { SealedRows } from './sealed-rows.ts';
import { KIND_OF } from './statements.ts';
import type { Entry, Kind, Namespace, Verification } from './store.ts';

const ROWS_AT_ONCE = 200;

export interface WalkedEntry {
  readonly row: Row;
  readonly namespace: Namespace;
  readonly kind: Kind;
  /** Absent when the seal is broken. */
  readonly entry: Entry | undefined;
}

/** Every row of the file in slices, opened. */
export async function* walk(connection: Connection, rows: SealedRows): AsyncGenerator<readonly WalkedEntry[]> {
  for (let place = 0; ;) {
    const namespaces = new Map(connection.namespaces().map((row) => [row.id, named(row)]));
    const walked = connection.sql.walk.all(place, ROWS_AT_ONCE) as (Row & { kind: number; namespace: number })[];
    const last = walked.at(-1);
    if (!last) return;
    place = last.row;
    yield walked.map((row) => {
      const namespace = namespaces.get(row.namespace) ?? { subject: '' };
      const kind = KIND_OF.get(row.kind) ?? 'fact';
      return { row, namespace, kind, entry: rows.open(namespace, kind, row) };
    });
    await nextTurn();
  }
}

/** SQLite's own check sees structure only, so every seal is opened as well. */
export async function verify(connection: Connection, rows: SealedRows): Promise<Verification> {
  let entries = 0;
  let broken = 0;
  for await (const slice of walk(connection, rows)) {
    entries += slice.length;
    broken += slice.filter(({ entry }) => !entry).length;
  }
  const said = connection.db.pragma('integrity_check') as { integrity_check: string }[];
  return { entries, broken, structure: said.map((line) => line.integrity_check).filter((line) => line !== 'ok') };
}
