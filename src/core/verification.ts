import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Connection, Row } from './connection.ts';
import { named } from './forgetting.ts';
import type { KeyKeeper } from './key-keeper.ts';
import { migrations } from './migrations/index.ts';
import { schemaDifferences } from './schema.ts';
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

/** SQLite's own check sees structure only, so every seal is opened and the schema compared as well. */
export async function verify(connection: Connection, rows: SealedRows, keys: KeyKeeper): Promise<Verification> {
  let entries = 0;
  let broken = keys.brokenSecretsIn(connection);
  for await (const slice of walk(connection, rows)) {
    const whole = slice.filter(({ entry }) => entry).length;
    entries += whole;
    broken += slice.length - whole;
  }
  return { entries, broken, structure: [...schemaDifferences(connection.db, migrations), ...damageIn(connection)] };
}

/** What SQLite finds wrong with the pages, indexes included. */
export function damageIn({ db }: Connection): string[] {
  const lines = db.pragma('integrity_check') as { integrity_check: string }[];
  return lines.map((line) => line.integrity_check).filter((line) => line !== 'ok');
}
