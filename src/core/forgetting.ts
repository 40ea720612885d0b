import { createHmac } from 'node:crypto';
import type { Connection, NamespaceRow, Row } from './connection.ts';
import type { Reserve } from './folder.ts';
import { frame } from './frame.ts';
import type { KeyKeeper } from './key-keeper.ts';
import type { SealedRows } from './sealed-rows.ts';
import { KINDS } from './statements.ts';
import type { Kind, Namespace, Selection } from './store.ts';

/** Kinds that live long enough to stand in a backup and be missed there. */
const LASTING: ReadonlySet<Kind> = new Set(['fact', 'audit', 'pack']);
/** Kinds no caller can list: they go with what they belong to. */
const UNSEEN: ReadonlySet<Kind> = new Set(['history', 'activity']);
/** Rows deleted in one commit when the disk is full; the reserve holds their log. */
const FEW = 32;

interface Doomed {
  readonly namespace: NamespaceRow;
  readonly kind: Kind;
  readonly row: Row;
}

interface Deps {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly rows: SealedRows;
  now(): number;
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
    this.#bury(subject, selection, doomed);
    this.#delete(doomed);
    this.#deps.connection.dropEmptySessions();
    return this.#seen(doomed);
  }

  /**
   * The same on a full disk: a few rows at a time, each handful out of the log before the next. The reserve gives the
   * room that the first one needs. Interrupted, it has forgotten some, and asked again forgets the rest.
   */
  runInLittleSpace(subject: string, selection: Selection, reserve: Reserve): number {
    const { connection, keys } = this.#deps;
    reserve.release();
    let deleted = 0;
    try {
      makeRoom(connection);
      for (;;) {
        const doomed = this.#doomed(subject, selection).slice(0, FEW);
        connection.begin();
        this.#bury(subject, selection, doomed);
        this.#delete(doomed);
        if (doomed.length < FEW) connection.dropEmptySessions();
        connection.commit();
        makeRoom(connection);
        deleted += this.#seen(doomed);
        if (doomed.length < FEW) return deleted;
      }
    } catch (error) {
      keys.abandonSegment();
      connection.rollback();
      throw error;
    } finally {
      reserve.refill();
    }
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
            if (!entry || !matches(entry)) continue;
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

  #bury(subject: string, selection: Selection, doomed: readonly Doomed[]): void {
    const { connection, keys, rows } = this.#deps;
    const now = this.#deps.now();
    const whole = !needsKey(selection) && (selection.category === undefined || !keys.custody);
    if (whole) {
      for (const kind of selection.kinds.filter((one) => LASTING.has(one))) {
        connection.sql.keepScopeTombstone.run(now, subject, selection.session ?? null, KINDS[kind], selection.category ?? null);
      }
      return;
    }
    const secret = keys.tombstoneKey();
    for (const { namespace, kind, row } of doomed) {
      if (!LASTING.has(kind)) continue;
      const key = selection.key ?? rows.open(named(namespace), kind, row)?.key;
      if (key !== undefined) connection.sql.keepHashTombstone.run(now, tombstoneHash(secret, named(namespace), kind, key));
      // Its name is lost with its seal, but a copy in a backup may be whole.
      else connection.sql.keepScopeTombstone.run(now, subject, namespace.session, KINDS[kind], row.category);
    }
  }
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
