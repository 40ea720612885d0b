import { type KeyKeeper, NewKeyNeeded } from '../../crypto/key-keeper.ts';
import type { ChangeNotifier, EntryEvents } from '../events.ts';
import { ALL_KINDS, KIND_BY_NUMBER } from '../statements.ts';
import type { SpaceKind } from '../store.ts';
import type { PlacedRow } from './change-set.ts';
import type { Database, RunQuery } from './database.ts';
import { ALL_NAMESPACES, type Mirror, type NamespaceRow, namespaceAt } from './mirror.ts';
import type { ServerRows } from './rows.ts';
import { COLUMNS, NEWEST } from './sql.ts';

interface Deps {
  readonly database: Database;
  readonly mirror: Mirror;
  readonly events: EntryEvents;
  readonly changes: ChangeNotifier;
  readonly rows: ServerRows;
  readonly keys: KeyKeeper;
  /** Called after parts of the mirror were read again, because another process changed them. May throw `NewKeyNeeded`. */
  readonly reread: (topics: ReadonlySet<string>) => void;
  /** Called with the database's clock, in milliseconds since 1970. */
  readonly observeClock: (now: number) => void;
}

/** A row of a statement that also selects `NEWEST`. */
type WithNewest<T> = T & { readonly newest: string | null };

/** Rows that were read with the newest change. `isNewest` is false if this process knows of a change that they lack. */
export interface Found<T> {
  readonly rows: readonly T[];
  readonly isNewest: boolean;
}

interface LoggedChange {
  readonly number: number;
  readonly mark: Buffer;
  readonly stored: readonly string[];
  readonly deleted: readonly string[];
  readonly topics: readonly string[];
}

export const EVERYTHING: ReadonlySet<string> = new Set(['meta', 'keys', ALL_NAMESPACES, 'revocations']);
const KEYS: ReadonlySet<string> = new Set(['keys']);
/** Changes that are read at once. A process that is further behind reads everything again. */
const MOST_BEHIND = 1000;

/**
 * Follows what other processes commit. Every commit has the next change number, and the change log says what it changed. Before a
 * call answers from RAM, it compares the number, so it sees every write that was acknowledged before the call began.
 */
export class ChangeFeed {
  readonly #deps: Deps;
  #known = 0;
  /** The mark of the known change. After a failover, another change can have its number. */
  #mark: Buffer = Buffer.alloc(0);
  #next: Promise<void> | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Begins with the mirror as it is now. Compares the number first, because the mirror may be newer than the number. */
  async start(): Promise<void> {
    const { database, mirror } = this.#deps;
    // A notification can begin a refresh meanwhile, and its newer mirror must not be overwritten.
    await this.exclusively(async () => {
      const { change, mark } = this.#parse((await this.#current()).newest);
      this.committed(change, mark);
      await mirror.read((text, values) => database.read(text, values), EVERYTHING);
    });
  }

  /**
   * Brings this process up to date. Calls of one turn share a query, because a query that is sent after a call began sees
   * everything that was acknowledged before the call.
   */
  refresh(): Promise<void> {
    this.#next ??= Promise.resolve().then(() => {
      this.#next = undefined;
      return this.#refresh();
    });
    return this.#next;
  }

  async #refresh(): Promise<void> {
    const before = this.#known;
    await this.#follow(await this.#current(), before);
  }

  /**
   * Reads rows with a statement that also selects `NEWEST`, and brings this process up to date with them before it returns. Without rows,
   * asks for the newest change afterwards.
   */
  async read<T>(text: string, values: readonly unknown[]): Promise<Found<T>> {
    const before = this.#known;
    const rows = await this.#deps.database.read<WithNewest<T>>(text, values);
    const [first] = rows;
    if (first !== undefined) return { rows, isNewest: await this.#follow(first, before) };
    await this.refresh();
    return { rows, isNewest: false };
  }

  /**
   * Publishes the changes up to the newest one. `before` is the change that was known when the newest one was asked for. Returns whether
   * it still is the newest that this process knows.
   */
  async #follow({ newest }: WithNewest<object>, before: number): Promise<boolean> {
    const { change, mark } = this.#parse(newest);
    const isNewest = (): boolean => change === this.#known && mark.equals(this.#mark);
    if (isNewest()) return true;
    try {
      await this.exclusively(async () => {
        const { database } = this.#deps;
        const run: RunQuery = (text, values) => database.read(text, values);
        // This process may have committed in the meantime. Then the change that was read is only old.
        if (change > this.#known || this.#known === before) await this.catchUp(run, change, mark);
      });
    } catch (error) {
      if (!(error instanceof NewKeyNeeded)) throw error;
      await this.readNewKey();
      await this.#refresh();
    }
    return isNewest();
  }

  async #current(): Promise<WithNewest<object>> {
    const [row] = await this.#deps.database.read<WithNewest<object>>(`SELECT ${NEWEST}`);
    return row ?? { newest: null };
  }

  #parse(newest: string | null): { readonly change: number; readonly mark: Buffer } {
    if (newest === null) throw new Error('The change log is empty.');
    const [change = '', mark = '', now = ''] = newest.split(' ');
    this.#deps.observeClock(Number(now));
    return { change: Number(change), mark: Buffer.from(mark, 'hex') };
  }

  /** Runs one step at a time, so that events are published in the order of the commits. */
  exclusively<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(step);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Says that this process has committed a change itself, and has published its events. */
  committed(change: number, mark: Buffer): void {
    this.#known = change;
    this.#mark = mark;
  }

  /** Reads the new key of a rotation. Not exclusively, because a writer that holds the lock of all processes may wait for its turn. */
  readNewKey(): Promise<void> {
    const { database, keys, mirror } = this.#deps;
    return keys.readNewKey(() => this.exclusively(() => mirror.read((text, values) => database.read(text, values), KEYS)));
  }

  /** Publishes what the process has not seen before it writes. Call it exclusively, with the newest change. */
  async requireCurrent(run: RunQuery, change: number, mark: Buffer): Promise<void> {
    if (change !== this.#known || !mark.equals(this.#mark)) await this.catchUp(run, change, mark);
  }

  /**
   * Publishes the changes after the known one. Call it exclusively. Reads everything again if the known change is not in the log any
   * more, or if another change has its number: after a failover to a standby that lacked commits, the numbers are used again.
   */
  async catchUp(run: RunQuery, change: number, mark: Buffer): Promise<void> {
    const missed = change - this.#known;
    const log =
      missed < 0 || missed > MOST_BEHIND
        ? []
        : await run<LoggedChange>(
            `SELECT number, mark, stored::text[] AS stored, deleted::text[] AS deleted, topics
               FROM change_log WHERE number >= $1 AND number <= $2 ORDER BY number`,
            [this.#known, change],
          );
    const known = log[0]?.number === this.#known ? log.shift() : undefined;
    if (log.length === missed && known?.mark.equals(this.#mark)) await this.#publish(run, log);
    else await this.#reset(run);
    this.committed(change, mark);
  }

  /** Reads everything again, because entries of the log are missing. */
  async #reset(run: RunQuery): Promise<void> {
    const { mirror, events, changes, reread } = this.#deps;
    await mirror.read(run, EVERYTHING);
    reread(EVERYTHING);
    events.publishReset();
    for (const row of mirror.namespaces.values()) {
      for (const kind of ALL_KINDS) if (kind !== 'history') changes.notify({ namespace: namespaceAt(row), kind });
    }
  }

  async #publish(run: RunQuery, log: readonly LoggedChange[]): Promise<void> {
    const { mirror, events, rows, keys, reread } = this.#deps;
    const topics = new Set(log.flatMap((change) => change.topics));
    // The namespaces of changed rows, because the same changes may have deleted them.
    const before = placesOf(topics, mirror.namespaces);
    await mirror.read(run, topics);
    reread(topics);
    const deleted = new Set(log.flatMap((change) => change.deleted.map(Number)));
    const stored = [...new Set(log.flatMap((change) => change.stored.map(Number)))].filter((row) => !deleted.has(row));
    const found =
      stored.length === 0 || !keys.heldKeys
        ? []
        : await run<PlacedRow>(`SELECT ${COLUMNS} FROM entry WHERE number = ANY ($1::bigint[]) ORDER BY number`, [stored]);
    if (keys.heldKeys && found.some((row) => !rows.isKeyHeld(row))) {
      // The rows are newer than the log, and another process has begun a rotation since.
      await mirror.read(run, KEYS);
      reread(KEYS);
    }
    for (const row of deleted) events.record({ what: 'deleted', row });
    for (const row of found) {
      const [place, kind] = [mirror.namespaces.get(row.namespace), KIND_BY_NUMBER.get(row.kind)];
      if (!place || !kind) continue;
      const namespace = namespaceAt(place);
      const entry = keys.heldKeys && rows.open(namespace, kind, row);
      events.record(entry ? { what: 'stored', namespace, kind, row: row.row, entry } : { what: 'deleted', row: row.row });
    }
    events.publish();
    this.#notify(topics, before);
  }

  #notify(topics: ReadonlySet<string>, before: ReadonlyMap<number, NamespaceRow>): void {
    const { mirror, changes } = this.#deps;
    for (const topic of topics) {
      const [what, id, number] = topic.split(' ');
      const kind = KIND_BY_NUMBER.get(Number(number));
      const place = mirror.namespaces.get(Number(id)) ?? before.get(Number(id));
      if (what !== 'space' || !place || !kind) continue;
      const changed: SpaceKind = kind === 'history' ? 'fact' : kind;
      changes.notify({ namespace: namespaceAt(place), kind: changed });
    }
  }
}

/** Returns the known namespaces whose rows were changed. */
function placesOf(topics: ReadonlySet<string>, namespaces: Mirror['namespaces']): Map<number, NamespaceRow> {
  const found = new Map<number, NamespaceRow>();
  for (const topic of topics) {
    const [what, id] = topic.split(' ');
    const place = what === 'space' ? namespaces.get(Number(id)) : undefined;
    if (place) found.set(place.id, place);
  }
  return found;
}
