import type { Connection } from './connection.ts';
import type { EntryReader } from './entry-reader.ts';
import { writerOf } from './entry.ts';
import type { SealedRows } from './sealed-rows.ts';
import type { Entry, EntryCursor, EntryEvent, Kind, Namespace } from './store.ts';

/**
 * Chooses `count` rows to evict. Evicts from the writer with the most rows, its least valuable row first. A busy writer therefore
 * evicts only its own rows. `writers` are the writers of the rows, oldest row first. Returns
 * positions in this list. Among rows of equal value, the oldest is evicted.
 */
export function fairEviction(
  writers: readonly string[],
  count: number,
  valueOf: (position: number) => number = () => 0,
): number[] {
  const held = Map.groupBy(writers.keys(), (position) => writers[position] ?? '');
  const shares = [...held.values()].map((positions) => {
    const leastValuableFirst = positions.toSorted((one, other) => valueOf(one) - valueOf(other));
    return { size: positions.length, rows: leastValuableFirst.values() };
  });
  return takeFromLargest(shares, count);
}

/** The rows of one writer, in the order in which they are evicted. */
interface Share {
  size: number;
  readonly rows: Iterator<number, undefined>;
}

function takeFromLargest(shares: readonly Share[], count: number): number[] {
  const taken: number[] = [];
  while (taken.length < count) {
    let largest: Share | undefined;
    // On a tie, this takes the first writer in the list.
    for (const share of shares) if (share.size > (largest?.size ?? 0)) largest = share;
    const row = largest?.rows.next().value;
    if (!largest || row === undefined) break;
    largest.size -= 1;
    taken.push(row);
  }
  return taken;
}

/** Rows decrypted per write while the writers of all rows are read for the first time. */
const SCANNED_PER_WRITE = 128;

/** The writers of the rows of one kind in a namespace. */
interface RecordWriters {
  readonly namespace: Namespace;
  readonly kind: Kind;
  readonly writers: Map<number, string>;
  /** The rows of each writer, oldest row first. */
  readonly rows: Map<string, Set<number>>;
  /** Position where the scan continues; undefined when every row was read. */
  next: EntryCursor | undefined;
}

type EvictionConnection = Pick<Connection, 'events' | 'namespaceId'>;
type EvictionRows = Pick<SealedRows, 'deleteRows'>;
type EvictionReader = Pick<EntryReader, 'writersAfter'>;

/**
 * Evicts rows of a kind that several clients write, so that each client keeps its fair share. The writer of a row is encrypted.
 * So the writers of all rows are read once, a few rows per write, and are then updated by entry events.
 */
export class FairEviction {
  readonly #connection: EvictionConnection;
  readonly #rows: EvictionRows;
  readonly #reader: EvictionReader;
  readonly #records = new Map<string, RecordWriters>();
  #subscribed = false;

  constructor(connection: EvictionConnection, rows: EvictionRows, reader: EvictionReader) {
    this.#connection = connection;
    this.#rows = rows;
    this.#reader = reader;
  }

  /** Reads the writers of some more rows. Returns true when the writers of all rows are known. Call it in a transaction. */
  scan(namespace: Namespace, kind: Kind): boolean {
    const record = this.#record(namespace, kind);
    if (!record.next) return true;
    const found = this.#reader.writersAfter(namespace, kind, record.next, SCANNED_PER_WRITE);
    for (const { row, writer } of found) addRow(record, row, writer);
    const last = found.at(-1);
    record.next = found.length < SCANNED_PER_WRITE ? undefined : last && { at: last.at, row: last.row };
    return !record.next;
  }

  /** Evicts `count` rows. Call it in a transaction, after `scan` returned true. */
  evict(namespace: Namespace, kind: Kind, count: number): void {
    const record = this.#record(namespace, kind);
    const chosen = takeFromLargest(this.#sharesOf(record), count);
    const deleted = new Set(this.#rows.deleteRows(namespace, kind, chosen));
    // A row that was not found was read in a transaction that was rolled back, so remove it from the list.
    for (const row of chosen) if (!deleted.has(row)) removeRow(record, row);
  }

  /** Returns the shares of all writers, including the changes of this transaction, whose events are not published yet. */
  #sharesOf(record: RecordWriters): Share[] {
    const sizes = new Map([...record.rows].map(([writer, rows]) => [writer, rows.size]));
    const added = new Map<number, string>();
    const deleted = new Set<number>();
    for (const event of this.#connection.events.pending) {
      if (event.what === 'deleted' && !deleted.has(event.row)) {
        deleted.add(event.row);
        const writer = record.writers.get(event.row) ?? added.get(event.row);
        if (writer !== undefined) sizes.set(writer, (sizes.get(writer) ?? 0) - 1);
      } else if (isStoredIn(record, event) && !record.writers.has(event.row) && !added.has(event.row)) {
        const writer = writerOf(event.entry.author);
        added.set(event.row, writer);
        sizes.set(writer, (sizes.get(writer) ?? 0) + 1);
      }
    }
    const oldestFirst = function* (writer: string): Generator<number, undefined> {
      for (const row of record.rows.get(writer) ?? []) if (!deleted.has(row)) yield row;
      for (const [row, by] of added) if (by === writer && !deleted.has(row)) yield row;
    };
    return [...sizes].map(([writer, size]) => ({ size, rows: oldestFirst(writer) }));
  }

  #record(namespace: Namespace, kind: Kind): RecordWriters {
    const name = JSON.stringify([namespace.subject, namespace.session, kind]);
    const known = this.#records.get(name);
    if (known) return known;
    const record = { namespace, kind, writers: new Map<number, string>(), rows: new Map<string, Set<number>>(), next: FIRST };
    this.#records.set(name, record);
    if (!this.#subscribed) this.#subscribe();
    return record;
  }

  #subscribe(): void {
    this.#subscribed = true;
    this.#connection.events.subscribe((event) => {
      // Client names are encrypted, so they must not stay in RAM after a lock.
      if (event.what === 'reset') this.#records.clear();
      else for (const record of this.#records.values()) follow(record, event);
    });
  }
}

const FIRST: EntryCursor = { at: Number.MIN_SAFE_INTEGER, row: Number.MIN_SAFE_INTEGER };

function follow(record: RecordWriters, event: EntryEvent): void {
  if (event.what === 'deleted') removeRow(record, event.row);
  // Ignore a row that the scan has not reached yet. The scan will read it in the right order.
  else if (isStoredIn(record, event) && (record.writers.has(event.row) || !isAhead(record.next, event)))
    addRow(record, event.row, writerOf(event.entry.author));
}

/** Whether the scan will still read this row. It will not if the clock was set back and the row is older than the last one read. */
const isAhead = (next: EntryCursor | undefined, { row, entry }: { readonly row: number; readonly entry: Entry }): boolean =>
  next !== undefined && (entry.updatedAt > next.at || (entry.updatedAt === next.at && row > next.row));

const isStoredIn = ({ namespace, kind }: RecordWriters, event: EntryEvent): event is Extract<EntryEvent, { what: 'stored' }> =>
  event.what === 'stored' &&
  event.kind === kind &&
  event.namespace.subject === namespace.subject &&
  event.namespace.session === namespace.session;

function addRow(record: RecordWriters, row: number, writer: string): void {
  if (record.writers.get(row) === writer) return;
  removeRow(record, row);
  record.writers.set(row, writer);
  const rows = record.rows.get(writer);
  if (rows) rows.add(row);
  else record.rows.set(writer, new Set([row]));
}

function removeRow(record: RecordWriters, row: number): void {
  const writer = record.writers.get(row);
  if (writer === undefined) return;
  record.writers.delete(row);
  const rows = record.rows.get(writer);
  rows?.delete(row);
  if (rows?.size === 0) record.rows.delete(writer);
}
