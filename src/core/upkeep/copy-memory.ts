import { setImmediate as nextTurn } from 'node:timers/promises';
import { BrokenSeal, type KeyRing, openEntry } from '../crypto/cipher.ts';
import type { KeyRecord } from '../crypto/find-keys.ts';
import { KIND_BY_NUMBER } from '../store/statements.ts';
import type { Entry, Namespace } from '../store/store.ts';
import { MOVED, MOVING } from './moved.ts';
import type { Tombstone } from './newer-state.ts';
import type { RowWithPlace } from './rotation.ts';

/** Rows that are compared and copied in one commit. An entry can have 64 KiB. */
const ROWS_AT_ONCE = 200;
/** A copy does not contain these names of the table `meta`. */
const MARKS: ReadonlySet<string> = new Set([MOVING, MOVED]);

export interface NumberedTombstone extends Tombstone {
  readonly number: number;
}

/** Everything of a memory except its entries. */
export interface SmallTables {
  readonly meta: ReadonlyMap<string, Buffer | string>;
  readonly keys: readonly (KeyRecord & { readonly segment: number })[];
  readonly namespaces: readonly { readonly id: number; readonly subject: string; readonly session: string }[];
  readonly tombstones: readonly NumberedTombstone[];
  readonly revocations: readonly { readonly id: string; readonly expires_at: number }[];
}

export interface CopySource {
  readSmall(): Promise<SmallTables>;
  /** Returns the first rows whose numbers are above `place`. */
  rowsAfter(place: number, limit: number): Promise<readonly RowWithPlace[]>;
  /** Decrypts a row. Undefined if its seal is broken. */
  open(namespace: Namespace, row: RowWithPlace): Entry | undefined;
}

export interface CopiedRow {
  readonly row: RowWithPlace;
  readonly namespace: Namespace;
  /** Undefined if the seal is broken. The sealed bytes are then copied unchanged. */
  readonly entry: Entry | undefined;
}

export interface CopyTarget extends CopySource {
  /** Replaces everything except entries, in one commit. Keeps marks, and segments that are already open. */
  writeSmall(tables: SmallTables): Promise<void>;
  /**
   * Deletes and stores rows, in one commit. Also deletes other rows with the keys of the stored rows: a key that expired and was stored
   * again has another row number, and the earlier copy can still have it under the old number.
   */
  writeRows(deleted: readonly number[], stored: readonly CopiedRow[]): Promise<void>;
}

export interface CopyResult {
  readonly entries: number;
  readonly broken: number;
  /** Rows and tables that were different, and are equal now. */
  readonly changes: number;
}

/**
 * Makes the target equal to the source. Compares every row, and writes only what differs, so an interrupted copy resumes. If nothing
 * differed, the target is verified.
 */
export async function copyMemory(
  source: CopySource,
  target: CopyTarget,
  progress: (rows: number) => void = () => undefined,
): Promise<CopyResult> {
  const small = withoutMarks(await source.readSmall());
  let changes = 0;
  if (textOf(small) !== textOf(withoutMarks(await target.readSmall()))) {
    await target.writeSmall(small);
    changes += 1;
  }
  const namespaces = namespacesOf(small);
  let [entries, broken, place] = [0, 0, 0];
  for (;;) {
    const read = await source.rowsAfter(place, ROWS_AT_ONCE);
    const copies = await target.rowsAfter(place, ROWS_AT_ONCE);
    // The step covers the numbers that both pages cover, so that neither memory is ever loaded as a whole.
    const last = Math.min(lastOf(read), lastOf(copies));
    const rows = read.filter(({ row }) => row <= last);
    const present = new Map(copies.filter(({ row }) => row <= last).map((copy) => [copy.row, copy]));
    const stored: CopiedRow[] = [];
    for (const row of rows) {
      const namespace = namespaces.get(row.namespace) ?? { subject: '' };
      const entry = source.open(namespace, row);
      if (entry) entries += 1;
      else broken += 1;
      const copy = present.get(row.row);
      present.delete(row.row);
      if (!copy || !isSame({ row, entry }, { row: copy, entry: target.open(namespace, copy) }))
        stored.push({ row, namespace, entry });
    }
    const replaced = stored.map(({ row }) => row.row);
    if (present.size + stored.length > 0) await target.writeRows([...present.keys(), ...replaced], stored);
    changes += present.size + stored.length;
    progress(entries + broken);
    if (last === Infinity) return { entries, broken, changes };
    place = last;
    await nextTurn();
  }
}

/** Counts the entries of a memory by their seals. */
export async function countRows(source: CopySource): Promise<Pick<CopyResult, 'entries' | 'broken'>> {
  const namespaces = namespacesOf(await source.readSmall());
  let [entries, broken, place] = [0, 0, 0];
  for (;;) {
    const rows = await source.rowsAfter(place, ROWS_AT_ONCE);
    const opened = rows.filter((row) => source.open(namespaces.get(row.namespace) ?? { subject: '' }, row)).length;
    entries += opened;
    broken += rows.length - opened;
    place = lastOf(rows);
    if (place === Infinity) return { entries, broken };
    await nextTurn();
  }
}

const namespacesOf = ({ namespaces }: SmallTables): Map<number, Namespace> =>
  new Map(namespaces.map(({ id, subject, session }) => [id, { subject, ...(session !== '' && { session }) }]));

/** Returns the last number that a page covers. A page that is not full covers all numbers. */
const lastOf = (page: readonly RowWithPlace[]): number =>
  page.length < ROWS_AT_ONCE ? Infinity : (page.at(-1)?.row ?? Infinity);

const withoutMarks = (tables: SmallTables): SmallTables => ({
  ...tables,
  meta: new Map([...tables.meta].filter(([name]) => !MARKS.has(name))),
});

/** Returns a text that is equal for equal tables. Segments are left out, because a target opens segments of its own. */
function textOf({ meta, keys, namespaces, tombstones, revocations }: SmallTables): string {
  const sorted = (rows: readonly unknown[]): string[] =>
    rows
      .map((row) => JSON.stringify(row, (_name, value: unknown) => (Buffer.isBuffer(value) ? value.toString('hex') : value)))
      .toSorted();
  const hex = (value: Buffer | string): string => (Buffer.isBuffer(value) ? `x${value.toString('hex')}` : value);
  return JSON.stringify([
    sorted([...meta].map(([name, value]) => [name, hex(value)])),
    sorted(keys.map(({ id, role, proof, source }) => [id.toString('hex'), role, proof.toString('hex'), source])),
    sorted(namespaces.map(({ id, subject, session }) => [id, subject, session])),
    sorted(
      tombstones.map((one) => [
        one.number,
        one.at,
        one.trusted,
        one.hash?.toString('hex'),
        one.subject,
        one.session,
        one.kind,
        one.category,
      ]),
    ),
    sorted(revocations.map(({ id, expires_at: end }) => [id, end])),
  ]);
}

type OpenedRow = Pick<CopiedRow, 'row' | 'entry'>;

/** Whether two rows contain the same entry. Two broken rows must have the same bytes. */
function isSame({ row: one, entry }: OpenedRow, { row: other, entry: copy }: OpenedRow): boolean {
  if (one.namespace !== other.namespace || one.kind !== other.kind) return false;
  if (!entry || !copy) return !entry && !copy && one.sealed.equals(other.sealed) && one.key_hash.equals(other.key_hash);
  return JSON.stringify(fieldsOf(entry)) === JSON.stringify(fieldsOf(copy));
}

const fieldsOf = ({ key, value, category, tags, author, createdAt, updatedAt, expiresAt, formerKeys = [] }: Entry): unknown[] => {
  const { client, origin, token, definedBy = null } = author;
  return [key, value, category, tags, client, origin, token, definedBy, createdAt, updatedAt, expiresAt, formerKeys];
};

/** Decrypts a row whose author is inside its seal. */
export function openRow(ring: KeyRing, namespace: Namespace, row: RowWithPlace): Entry | undefined {
  const { category, created_at: createdAt, updated_at: updatedAt, expires_at: expiresAt } = row;
  const kind = KIND_BY_NUMBER.get(row.kind) ?? 'fact';
  try {
    const place = { namespace, kind, keyHash: row.key_hash, category, createdAt, updatedAt, expiresAt };
    return { ...openEntry(ring, place, row.sealed), category, createdAt, updatedAt, expiresAt };
  } catch (error) {
    if (error instanceof BrokenSeal) return undefined;
    throw error;
  }
}
