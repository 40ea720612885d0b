import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { ChangeNotifier, EntryEvents } from '../events.ts';
import { ALL_KINDS, KIND_BY_NUMBER } from '../statements.ts';
import type { SpaceKind } from '../store.ts';
import type { PlacedRow } from './change-set.ts';
import type { Database, RunQuery } from './database.ts';
import { type Mirror, namespaceAt } from './mirror.ts';
import type { ServerRows } from './rows.ts';
import { COLUMNS } from './sql.ts';

interface Deps {
  readonly database: Database;
  readonly mirror: Mirror;
  readonly events: EntryEvents;
  readonly changes: ChangeNotifier;
  readonly rows: ServerRows;
  readonly keys: KeyKeeper;
  /** Called after parts of the mirror were read again, because another process changed them. */
  readonly reread: (topics: ReadonlySet<string>) => void;
  /** Called with the database's clock, in milliseconds since 1970. */
  readonly observeClock: (now: number) => void;
}

interface LoggedChange {
  readonly number: number;
  readonly stored: readonly string[];
  readonly deleted: readonly string[];
  readonly topics: readonly string[];
}

export const EVERYTHING: ReadonlySet<string> = new Set(['meta', 'keys', 'namespaces', 'revocations']);
/** Changes that are read at once. A process that is further behind reads everything again. */
const MOST_BEHIND = 1000;

/**
 * Follows what other processes commit. Every commit has the next change number, and the change log says what it changed. Before a
 * call answers from RAM, it compares the number, so it sees every write that was acknowledged before the call began.
 */
export class ChangeFeed {
  readonly #deps: Deps;
  #known = 0;
  #next: Promise<void> | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get known(): number {
    return this.#known;
  }

  /** Begins with the mirror as it is now. Compares the number first, because the mirror may be newer than the number. */
  async start(): Promise<void> {
    const { database, mirror } = this.#deps;
    this.#known = await this.#currentChange();
    await mirror.read((text, values) => database.read(text, values), EVERYTHING);
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
    const change = await this.#currentChange();
    if (change === this.#known) return;
    await this.exclusively(async () => {
      const { database } = this.#deps;
      if (change > this.#known) await this.catchUp((text, values) => database.read(text, values), change);
    });
  }

  async #currentChange(): Promise<number> {
    const { database, observeClock } = this.#deps;
    const [state] = await database.read<{ change: number; now: number }>(
      'SELECT change, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM state',
    );
    if (!state) throw new Error('The table state is empty.');
    observeClock(state.now);
    return state.change;
  }

  /** Runs one step at a time, so that events are published in the order of the commits. */
  exclusively<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(step);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Says that this process has committed a change itself, and has published its events. */
  committed(change: number): void {
    this.#known = change;
  }

  /** Publishes the changes after the known one. Call it exclusively. */
  async catchUp(run: RunQuery, change: number): Promise<void> {
    const missed = change - this.#known;
    const log =
      missed > MOST_BEHIND
        ? []
        : await run<LoggedChange>(
            'SELECT number, stored::text[] AS stored, deleted::text[] AS deleted, topics FROM change_log WHERE number > $1 AND number <= $2 ORDER BY number',
            [this.#known, change],
          );
    if (log.length === missed) await this.#follow(run, log);
    else await this.#reset(run);
    this.#known = change;
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

  async #follow(run: RunQuery, log: readonly LoggedChange[]): Promise<void> {
    const { mirror, events, rows, keys, reread } = this.#deps;
    const topics = new Set(log.flatMap((change) => change.topics));
    const before = new Map(mirror.namespaces);
    await mirror.read(run, topics);
    reread(topics);
    const deleted = new Set(log.flatMap((change) => change.deleted.map(Number)));
    const stored = [...new Set(log.flatMap((change) => change.stored.map(Number)))].filter((row) => !deleted.has(row));
    const found =
      stored.length === 0 || !keys.heldKeys
        ? []
        : await run<PlacedRow>(`SELECT ${COLUMNS} FROM entry WHERE number = ANY ($1::bigint[]) ORDER BY number`, [stored]);
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

  #notify(topics: ReadonlySet<string>, before: Mirror['namespaces']): void {
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
