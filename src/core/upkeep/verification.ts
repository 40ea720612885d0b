import { setImmediate as nextTurn } from 'node:timers/promises';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import type { Connection, EntryRow } from '../store/connection.ts';
import { namespaceOf } from '../store/forgetting.ts';
import { migrations } from '../store/migrations/index.ts';
import { schemaDifferences } from '../store/schema.ts';
import type { SealedRows } from '../store/sealed-rows.ts';
import { KIND_BY_NUMBER } from '../store/statements.ts';
import type { Author, Entry, Kind, Namespace, VerificationReport } from '../store/store.ts';

const ROWS_AT_ONCE = 200;

export interface WalkedEntry {
  readonly row: EntryRow;
  readonly namespace: Namespace;
  readonly kind: Kind;
  /** Undefined if the seal is broken. */
  readonly entry: Entry | undefined;
}

export async function* walkEntries(connection: Connection, rows: SealedRows): AsyncGenerator<readonly WalkedEntry[]> {
  for (let place = 0; ;) {
    const namespaces = new Map(connection.namespaces().map((row) => [row.id, namespaceOf(row)]));
    const walked = connection.sql.rowsAfter.all(place, ROWS_AT_ONCE) as (EntryRow & { kind: number; namespace: number })[];
    const last = walked.at(-1);
    if (!last) return;
    place = last.row;
    yield walked.map((row) => {
      const namespace = namespaces.get(row.namespace) ?? { subject: '' };
      const kind = KIND_BY_NUMBER.get(row.kind) ?? 'fact';
      return { row, namespace, kind, entry: rows.open(namespace, kind, row) };
    });
    await nextTurn();
  }
}

/** Counts the entries by their seals, and collects their authors. */
export async function countEntries(
  walk: AsyncIterable<readonly WalkedEntry[]>,
): Promise<{ entries: number; broken: number; authors: Set<Author> }> {
  let [entries, broken] = [0, 0];
  const authors = new Set<Author>();
  for await (const slice of walk) {
    for (const { entry } of slice) {
      if (entry) authors.add(entry.author);
      else broken += 1;
      entries += entry ? 1 : 0;
    }
  }
  return { entries, broken, authors };
}

/** Verifies a memory: every seal, the schema and the structure of the file. SQLite's own check covers only the structure. */
export async function verifyMemory(connection: Connection, rows: SealedRows, keys: KeyKeeper): Promise<VerificationReport> {
  const { entries, broken: brokenEntries, authors } = await countEntries(walkEntries(connection, rows));
  const broken =
    brokenEntries +
    keys.countBrokenSecrets(connection) +
    rows.authors.countBroken(authors) +
    (await countBrokenVectors(connection, rows));
  return { entries, broken, structure: [...schemaDifferences(connection.db, migrations), ...integrityErrors(connection)] };
}

async function countBrokenVectors(connection: Connection, rows: SealedRows): Promise<number> {
  let total = 0;
  for (let place = 0; ;) {
    const namespaces = new Map(connection.namespaces().map((row) => [row.id, namespaceOf(row)]));
    const { broken, last } = rows.vectors.countBroken(place, ROWS_AT_ONCE, namespaces);
    total += broken;
    if (last === undefined) return total;
    place = last;
    await nextTurn();
  }
}

export function integrityErrors({ db }: Connection): string[] {
  const lines = db.pragma('integrity_check') as { integrity_check: string }[];
  return lines.map((line) => line.integrity_check).filter((line) => line !== 'ok');
}
