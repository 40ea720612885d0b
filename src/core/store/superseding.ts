import { isOfSupersededFact, isSupersededFact } from '../crypto/cipher.ts';
import { type Connection, INCLUDE_EXPIRED, type EntryRow } from './connection.ts';
import type { SealedRows } from './sealed-rows.ts';
import type { Entry, FormerKey, Namespace } from './store.ts';

export interface SupersedingContext {
  readonly connection: Pick<Connection, 'ensureNamespace'>;
  readonly rows: Pick<SealedRows, 'find' | 'open' | 'insert' | 'replace' | 'deleteRow' | 'versions'>;
}

interface FoundEntry {
  readonly row: EntryRow;
  readonly entry: Entry;
}

/** A fact that another one superseded, with the versions from its history. */
interface SupersededFact {
  readonly key: string;
  readonly until: number;
  /** Undefined if the version that was current has been evicted or has a broken seal. The fact cannot be returned then. */
  readonly current: FoundEntry | undefined;
  readonly versions: readonly FoundEntry[];
}

/**
 * Moves a fact that is outdated by another one to the history of that one, and returns it when the write is undone. Both work on
 * expired rows too, which are visible again if the clock is set back. Call the methods in a transaction.
 */
export class Superseding {
  readonly #context: SupersedingContext;

  constructor(context: SupersedingContext) {
    this.#context = context;
  }

  /** Moves a fact with its history to the history of the fact `into`. `until` is the update time of that fact. */
  supersede(namespace: Namespace, { row, entry }: FoundEntry, { key: into, updatedAt: until }: Entry): void {
    const { rows } = this.#context;
    const { key } = entry;
    const moved = (version: Entry, number?: number): Entry => {
      const last: FormerKey = { key, until, ...(number !== undefined && { row: number }) };
      return { ...version, key: into, formerKeys: [last, ...(version.formerKeys ?? [])] };
    };
    const versions = this.#versions(namespace, row);
    rows.deleteRow(row);
    // A version with a broken seal stays where it is, because it cannot be sealed again.
    for (const version of versions) rows.replace(namespace, 'history', version.row, moved(version.entry));
    rows.insert(namespace, 'history', moved(entry, row.row));
  }

  /** Returns the facts that a fact has superseded, whose history it holds. */
  supersededBy(namespace: Namespace, fact: Pick<EntryRow, 'key_hash'>): readonly SupersededFact[] {
    const versions = this.#versions(namespace, fact, isOfSupersededFact);
    const facts = Map.groupBy(versions, ({ entry }) =>
      JSON.stringify([entry.formerKeys?.[0]?.key, entry.formerKeys?.[0]?.until]),
    );
    return [...facts.values()].flatMap((ofFact) => {
      const [last] = ofFact[0]?.entry.formerKeys ?? [];
      if (!last) return [];
      const isCurrent = ({ row, entry }: FoundEntry): boolean => entry.formerKeys?.length === 1 && isSupersededFact(row.sealed);
      const current = ofFact.find(isCurrent);
      return [{ key: last.key, until: last.until, current, versions: ofFact.filter((version) => version !== current) }];
    });
  }

  /**
   * Makes a superseded fact a fact of its own again, exactly as it was. If another fact was stored under its key meanwhile, that fact
   * stays, and the versions become part of its history.
   */
  return(namespace: Namespace, { key, current, versions }: SupersededFact): void {
    const { rows } = this.#context;
    if (!current) return;
    const isTaken = rows.find(namespace, 'fact', key) !== undefined;
    for (const { row, entry } of versions) rows.replace(namespace, 'history', row, withoutLast(entry, key));
    if (isTaken) {
      rows.replace(namespace, 'history', current.row, withoutLast(current.entry, key));
      return;
    }
    rows.deleteRow(current.row);
    rows.insert(namespace, 'fact', withoutLast(current.entry, key), current.entry.formerKeys?.[0]?.row);
  }

  delete({ current, versions }: SupersededFact): void {
    for (const { row } of current ? [current, ...versions] : versions) this.#context.rows.deleteRow(row);
  }

  #versions(
    namespace: Namespace,
    { key_hash: hash }: Pick<EntryRow, 'key_hash'>,
    wanted = (_sealed: Buffer) => true,
  ): FoundEntry[] {
    const { connection, rows } = this.#context;
    const found = rows.versions(connection.ensureNamespace(namespace), hash, INCLUDE_EXPIRED);
    return found
      .filter(({ sealed }) => wanted(sealed))
      .flatMap((row) => {
        const entry = rows.open(namespace, 'history', row);
        return entry ? [{ row, entry }] : [];
      });
  }
}

/** Returns the version under the key that it had before the last write that superseded it. */
function withoutLast({ formerKeys = [], ...version }: Entry, key: string): Entry {
  const others = formerKeys.slice(1);
  return { ...version, key, ...(others.length > 0 && { formerKeys: others }) };
}
