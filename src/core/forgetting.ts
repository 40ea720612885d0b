import { createHmac } from 'node:crypto';
import { type Connection, EVER, type NamespaceRow, type Row } from './connection.ts';
import type { Reserve } from './folder.ts';
import { frame } from './frame.ts';
import type { Journal } from './journal.ts';
import type { KeyKeeper } from './key-keeper.ts';
import type { SealedRows } from './sealed-rows.ts';
import { KINDS } from './statements.ts';
import type { Kind, Namespace, Selection } from './store.ts';

/** Kinds that live long enough to stand in a backup and be missed there. */
const LASTING: ReadonlySet<Kind> = new Set(['fact', 'audit', 'pack']);
/** Kinds no caller can list: they go with what they belong to. */
const UNSEEN: ReadonlySet<Kind> = new Set(['history', 'activity']);
/** What is deleted in one commit when the disk is full, so that the reserve holds its log. */
const HANDFUL = { rows: 16, bytes: 256 * 1024 };

interface Doomed {
  readonly namespace: NamespaceRow;
  readonly kind: Kind;
  readonly row: Row;
}

interface Deps {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly rows: SealedRows;
  readonly journal: Journal;
  now(): number;
  /** The latest moment that is not in doubt. */
  trusted(): number;
}

/** Whether the selection asks about what only the key opens. */
export const needsKey = (selection: Selection): boolean => selection.key !== undefined || selection.matches !== undefined;

/** Deletes what a selection names, and remembers by keyed hashes what a restored backup must not bring back. */
export class Forgetting {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  count(subject: string, selection: Selection): number {
    return this.#seen(this.#doomed(subject, selection));
  }

  /** Inside a transaction. */
  run(subject: string, selection: Selection): number {
    const doomed = this.#doomed(subject, selection);
    if (this.#isWhole(selection)) this.#buryWhole(subject, selection);
    else this.#bury(subject, selection, doomed);
    this.#delete(doomed);
    this.#deps.connection.dropEmptySessions();
    return this.#seen(doomed);
  }

  /**
   * The same on a full disk: a handful of rows at a time, versions before their fact, and each handful out of the log
   * before the next. The reserve gives the room that the first one needs. Interrupted, it has forgotten some, and asked
   * again forgets the rest.
   */
  runInLittleSpace(subject: string, selection: Selection, reserve: Reserve): number {
    const { connection, keys, journal } = this.#deps;
    reserve.release();
    let deleted = 0;
    try {
      const doomed = this.#doomed(subject, selection);
      const rest = doomed.flatMap((one) => [...this.#versionsOf(one, selection.kinds), one]);
      const whole = this.#isWhole(selection);
      for (let first = true; first || rest.length > 0; first = false) {
        makeRoom(connection);
        const handful = takeHandful(rest);
        connection.begin();
        if (!whole) this.#bury(subject, selection, handful);
        else if (first) this.#buryWhole(subject, selection);
        this.#delete(handful);
        if (rest.length === 0) connection.dropEmptySessions();
        connection.commit();
        journal.tell();
        deleted += this.#seen(handful);
      }
      makeRoom(connection);
      return deleted;
    } catch (error) {
      keys.abandonSegment();
      journal.takeBack();
      connection.rollback();
      throw error;
    } finally {
      reserve.refill();
    }
  }

  #versionsOf({ namespace, kind, row }: Doomed, listed: readonly Kind[]): Doomed[] {
    if (kind !== 'fact' || listed.includes('history')) return [];
    const versions = this.#deps.connection.sql.versions.all(namespace.id, row.key_hash, EVER) as Row[];
    return versions.map((version) => ({ namespace, kind: 'history', row: version }));
  }

  /** Expired rows are doomed too: after a clock was wrong they might otherwise come back. */
  #doomed(subject: string, selection: Selection): Doomed[] {
    const { connection, keys, rows } = this.#deps;
    if (needsKey(selection)) void keys.ring;
    const doomed: Doomed[] = [];
    for (const namespace of connection.namespaces()) {
      if (namespace.subject !== subject) continue;
      if (selection.session !== undefined && namespace.session !== selection.session) continue;
      for (const kind of selection.kinds) {
        for (const row of this.#candidates(namespace, kind, selection)) {
          const { matches } = selection;
          if (matches) {
            const entry = rows.open(named(namespace), kind, row);
            if (!entry || !matches(entry, kind)) continue;
          }
          doomed.push({ namespace, kind, row });
        }
      }
    }
    return doomed;
  }

  #candidates(namespace: NamespaceRow, kind: Kind, { category, key }: Selection): Row[] {
    const { connection, rows } = this.#deps;
    if (key !== undefined) {
      const row = rows.find(named(namespace), kind, key);
      return row && (category === undefined || row.category === category) ? [row] : [];
    }
    const all = connection.of(kind).all.all(namespace.id) as Row[];
    return category === undefined ? all : all.filter((row) => row.category === category);
  }

  #delete(doomed: readonly Doomed[]): void {
    for (const { namespace, kind, row } of doomed) this.#deps.rows.delete(namespace.id, kind, row);
  }

  #seen(doomed: readonly Doomed[]): number {
    const now = this.#deps.now();
    return doomed.filter(({ kind, row }) => !UNSEEN.has(kind) && row.expires_at > now).length;
  }

  #moment(): { at: number; trusted: number } {
    const at = this.#deps.now();
    return { at, trusted: Math.min(at, this.#deps.trusted()) };
  }

  /** A whole kind, or a category when there is no key to hash names with, is remembered as what it is. */
  #isWhole(selection: Selection): boolean {
    return !needsKey(selection) && (selection.category === undefined || !this.#deps.keys.custody);
  }

  #buryWhole(subject: string, { kinds, session, category }: Selection): void {
    const { connection } = this.#deps;
    const { at, trusted } = this.#moment();
    for (const kind of kinds.filter((one) => LASTING.has(one))) {
      connection.sql.keepScopeTombstone.run(at, trusted, subject, session ?? null, KINDS[kind], category ?? null);
    }
  }

  #bury(subject: string, selection: Selection, doomed: readonly Doomed[]): void {
    const { connection, keys, rows } = this.#deps;
    const { at, trusted } = this.#moment();
    const secret = keys.tombstoneKey();
    for (const { namespace, kind, row } of doomed) {
      if (!LASTING.has(kind)) continue;
      const key = selection.key ?? rows.open(named(namespace), kind, row)?.key;
      if (secret && key !== undefined) {
        connection.sql.keepHashTombstone.run(at, trusted, tombstoneHash(secret, named(namespace), kind, key));
      } else {
        // Its name is lost with its seal, or what hashes names is; but a copy in a backup may be whole.
        connection.sql.keepScopeTombstone.run(at, trusted, subject, namespace.session, KINDS[kind], row.category);
      }
    }
  }
}

/** Takes from the front what may go in one commit; one row at least. */
function takeHandful(rest: Doomed[]): Doomed[] {
  let bytes = 0;
  let rows = 0;
  for (const { row } of rest) {
    bytes += row.sealed.length;
    if (rows > 0 && (rows === HANDFUL.rows || bytes > HANDFUL.bytes)) break;
    rows += 1;
  }
  return rest.splice(0, rows);
}

/** What the log holds may need room in the file itself; then it stays, and the reserve has to do. */
function makeRoom(connection: Connection): void {
  try {
    connection.emptyLog();
  } catch {
    // The commit that follows tells whether there is room.
  }
}

export const tombstoneHash = (secret: Buffer, { subject, session }: Namespace, kind: Kind, key: string): Buffer =>
  createHmac('sha256', secret)
    .update(frame([kind, subject, session ?? '', key]))
    .digest();

export const named = ({ subject, session }: NamespaceRow): Namespace => (session === '' ? { subject } : { subject, session });
