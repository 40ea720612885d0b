import type { Connection } from './connection.ts';
import type { EntryReader } from './entry-reader.ts';
import { writerOf } from './entry.ts';
import type { SealedRows } from './sealed-rows.ts';
import type { EntryCursor, EntryEvent, Kind, Namespace } from './store.ts';

/**
 * Chooses `count` rows to evict. Each step takes the least valuable row of the writer with the most rows, so that a writer with
 * many rows evicts its own rows and not those of others. `writers` are the writers of the rows, oldest row first. Returns
 * positions in this list. Among rows of equal value, the oldest is evicted.
 */
export function fairEviction(
  writers: readonly string[],
  count: number,
  valueOf: (position: number) => number = () => 0,
): number[] {
  const held = new Map<string, number[]>();
  for (const [position, writer] of writers.entries()) {
    const positions = held.get(writer);
    if (positions) positions.push(position);
    else held.set(writer, [position]);
  }
  const evicted: number[] = [];
  while (evicted.length < Math.min(count, writers.length)) {
    // On a tie, this takes the first writer in the map, who has the oldest row.
    const largest = [...held.values()].reduce((most, one) => (one.length > most.length ? one : most));
    const least = largest.reduce((lowest, one) => (valueOf(one) < valueOf(lowest) ? one : lowest));
    largest.splice(largest.indexOf(least), 1);
    evicted.push(least);
  }
  return evicted;
}

/** Rows decrypted per write while the writers of all rows are read for the first time. */
const SCANNED_PER_WRITE = 128;

/** The writer of each row of one kind in a namespace, oldest row first. */
interface RecordWriters {
  readonly namespace: Namespace;
  readonly kind: Kind;
  readonly writers: Map<number, string>;
  /** Position where the scan continues; undefined when every row was read. */
  next: EntryCursor | undefined;
}

type EvictionConnection = Pick<Connection, 'events' | 'namespaceId'>;
type EvictionRows = Pick<SealedRows, 'isAt' | 'deleteRow'>;
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
    for (const { row, writer } of found) record.writers.set(row, writer);
    const last = found.at(-1);
    record.next = found.length < SCANNED_PER_WRITE ? undefined : last && { at: last.at, row: last.row };
    return !record.next;
  }

  /** Evicts `count` rows. Call it in a transaction, after `scan` returned true. */
  evict(namespace: Namespace, kind: Kind, count: number): void {
    const record = this.#record(namespace, kind);
    const writers = new Map(record.writers);
    // Include the changes of this transaction, whose events are not published yet.
    for (const event of this.#connection.events.pending) follow({ ...record, writers }, event);
    const numbers = [...writers.keys()];
    const id = this.#connection.namespaceId(namespace);
    for (const position of fairEviction([...writers.values()], count)) {
      const row = numbers[position] ?? NaN;
      // A row outside this namespace and kind was read in a transaction that was rolled back, so remove it from the list.
      if (id === undefined || !this.#rows.isAt(row, id, kind)) record.writers.delete(row);
      else this.#rows.deleteRow({ row });
    }
  }

  #record(namespace: Namespace, kind: Kind): RecordWriters {
    const name = JSON.stringify([namespace.subject, namespace.session, kind]);
    const known = this.#records.get(name);
    if (known) return known;
    const record = { namespace, kind, writers: new Map<number, string>(), next: FIRST };
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

function follow({ namespace, kind, writers, next }: RecordWriters, event: EntryEvent): void {
  if (event.what === 'deleted') writers.delete(event.row);
  if (event.what !== 'stored' || event.kind !== kind) return;
  if (event.namespace.subject !== namespace.subject || event.namespace.session !== namespace.session) return;
  // Ignore a new row that the scan has not reached yet. The scan will read it in the right order.
  if (!next || writers.has(event.row)) writers.set(event.row, writerOf(event.entry.author));
}
