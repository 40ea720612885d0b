import { createHmac } from 'node:crypto';
import { encodeFrame } from '../crypto/cipher.ts';
import type { NamespaceRow, EntryRow } from './connection.ts';
import { isVersionCategory } from './entry.ts';
import { KIND_NUMBERS } from './statements.ts';
import type { StoreContext } from './store-context.ts';
import { type Kind, type Namespace, type Selection, STEP_BYTES } from './store.ts';

/** Kinds with tombstones, because a restored backup could bring them back. Versions are deleted with their fact. */
const TOMBSTONED: ReadonlySet<Kind> = new Set(['fact', 'audit', 'cache', 'pack', 'activity']);
/** Kinds that do not count as deleted entries. */
const UNCOUNTED: ReadonlySet<Kind> = new Set(['history', 'activity']);
/**
 * Activity rows are deleted first: the row of this forget is written later and may get the number of a deleted row. Versions are
 * deleted last: by then only versions without a fact are left.
 */
const ORDER: readonly Kind[] = ['activity', 'fact', 'audit', 'cache', 'pack', 'history'];

/**
 * The work of one slice, which is one commit. Other requests wait for a whole slice, and on a full disk the reserve must
 * hold its log. A slice handles at least one row.
 */
const SLICE = { ms: 0.3, rows: 12, bytes: STEP_BYTES };
/** Row numbers read at once: an index holds them, so they cost little. */
const LISTED = 1000;

type Deps = Pick<StoreContext, 'connection' | 'keys' | 'rows' | 'time'>;

/** Starts forgets. */
export class Forgetting {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  begin(subject: string, selection: Selection): ForgetJob {
    return new ForgetJob(this.#deps, subject, selection);
  }

  /** Counting skips the kinds that are never counted. */
  beginCount(subject: string, selection: Selection): ForgetJob {
    return new ForgetJob(this.#deps, subject, { ...selection, kinds: selection.kinds.filter((kind) => !UNCOUNTED.has(kind)) });
  }

  /** Deletes everything in one step, for a single key. Call it in a transaction. */
  run(subject: string, selection: Selection): number {
    const job = this.begin(subject, selection);
    let progress = FORGET_START;
    while (!progress.done) progress = job.delete(progress);
    return progress.entries;
  }
}

/** The progress of a forget. A slice that is rolled back starts again from the progress it was given. */
export interface ForgetProgress {
  readonly done: boolean;
  /** Entries deleted, or counted, that a caller could have seen. */
  readonly entries: number;
  /** Rows deleted, versions included. */
  readonly rows: number;
  readonly group: number;
  readonly row: number;
  /** The fact whose versions are being deleted, as it was when it matched and its tombstone was written. */
  readonly partlyDeleted: EntryRow | undefined;
  /** Whether the tombstone of the whole scope is written. */
  readonly tombstoned: boolean;
  /** Whether the activity record has a row for this forget. */
  readonly recorded: boolean;
}

export const FORGET_START: ForgetProgress = {
  done: false,
  entries: 0,
  rows: 0,
  group: 0,
  row: 0,
  partlyDeleted: undefined,
  tombstoned: false,
  recorded: false,
};

/** One kind of entry in one namespace. */
interface Group {
  readonly namespace: NamespaceRow;
  readonly kind: Kind;
  /** The rows that existed when this group was listed. */
  readonly listed: number[];
  /** Where listing continues; undefined when it is complete. */
  next: { at: number; row: number } | undefined;
}

interface Matching {
  readonly row: EntryRow;
  /** Absent when the row did not have to be opened, or its seal is broken. */
  readonly key: string | undefined;
}

/** Whether entries must be opened to know if they match. */
export const needsKey = (selection: Selection): boolean => selection.key !== undefined || selection.matches !== undefined;

/**
 * Deletes, or counts, the entries of a selection, one slice at a time. Writes tombstones, so that a restored backup does not bring
 * them back. It lists row numbers first and checks each row when it reaches it. So it ends even if
 * other clients keep writing, and misses no row that stays in place.
 */
export class ForgetJob {
  readonly #deps: Deps;
  readonly #subject: string;
  readonly #selection: Selection;
  readonly #groups: readonly Group[];
  readonly #began: { readonly at: number; readonly trusted: number };

  constructor(deps: Deps, subject: string, selection: Selection) {
    this.#deps = deps;
    this.#subject = subject;
    this.#selection = selection;
    this.#began = this.#times();
    this.#requireKey();
    const namespaces = deps.connection
      .namespaces()
      .filter((namespace) => namespace.subject === subject)
      .filter(({ session }) => selection.session === undefined || selection.session === session);
    this.#groups = ORDER.filter((kind) => selection.kinds.includes(kind)).flatMap((kind) =>
      namespaces.map((namespace) => ({ namespace, kind, listed: [], next: FIRST })),
    );
  }

  /** Counts the entries of one slice. */
  count(from: ForgetProgress): ForgetProgress {
    return this.#slice(from, () => true);
  }

  /** Deletes one slice. Call it in a transaction. */
  delete(from: ForgetProgress): ForgetProgress {
    let { tombstoned } = from;
    if (this.#coversScope && !tombstoned) {
      this.#writeScopeTombstones();
      tombstoned = true;
    }
    const to = this.#slice({ ...from, tombstoned }, (group, matching, budget, partlyDeleted) => {
      if (!partlyDeleted) this.#writeTombstone(group, matching);
      return this.#deleteRow(group, matching.row, budget);
    });
    if (to.done) this.#deps.connection.deleteEmptySessions();
    return to;
  }

  /** Visits rows until the slice is used up. The visitor returns false if it needs the row again in the next slice. */
  #slice(
    from: ForgetProgress,
    visit: (group: Group, matching: Matching, budget: Budget, partlyDeleted: boolean) => boolean,
  ): ForgetProgress {
    this.#requireKey();
    const budget = new Budget();
    let { group: index, row: place, entries, partlyDeleted } = from;
    const progress = (done: boolean): ForgetProgress => ({
      ...from,
      done,
      entries,
      rows: from.rows + budget.deletedRows,
      group: index,
      row: place,
      partlyDeleted,
    });
    while (!budget.spent) {
      const group = this.#groups[index];
      if (!group) return progress(true);
      if (group.next) {
        budget.listed(this.#list(group));
        continue;
      }
      const number = group.listed[place];
      if (number === undefined) {
        index += 1;
        place = 0;
        continue;
      }
      const row = this.#read(group, number, budget);
      const isJudged = row !== undefined && partlyDeleted !== undefined && isUnchanged(row, partlyDeleted);
      if (partlyDeleted && !isJudged) {
        // The fact was written again or deleted. The versions that matched with it are still deleted.
        if (!this.#deleteVersions(group, partlyDeleted, partlyDeleted.updated_at, budget)) continue;
        partlyDeleted = undefined;
      }
      const matching = isJudged ? { row, key: this.#selection.key } : row && this.#judge(group, row);
      if (matching) {
        if (!visit(group, matching, budget, isJudged)) {
          partlyDeleted = matching.row;
          continue;
        }
        const { category, expires_at: end } = matching.row;
        if (!UNCOUNTED.has(group.kind) && !isVersionCategory(category) && end > this.#deps.time.now()) entries += 1;
      }
      partlyDeleted = undefined;
      place += 1;
      const isLast = !group.next && place === group.listed.length && index === this.#groups.length - 1;
      if (isLast) return progress(true);
    }
    return progress(false);
  }

  /** Lists expired rows too. After a correction of the clock they could otherwise return. */
  #list(group: Group): number {
    const { connection, rows } = this.#deps;
    const { key, category } = this.#selection;
    const { namespace, kind, listed, next = FIRST } = group;
    if (key !== undefined) {
      const row = rows.find(namespaceOf(namespace), kind, key);
      if (row) listed.push(row.row);
      group.next = undefined;
      return listed.length;
    }
    const place = [next.at, next.at, next.row, LISTED];
    const { rowsInOrder, rowsOfCategory } = connection.statementsOf(kind);
    const found = (
      category === undefined ? rowsInOrder.all(namespace.id, ...place) : rowsOfCategory.all(namespace.id, category, ...place)
    ) as { at: number; row: number }[];
    for (const { row } of found) listed.push(row);
    group.next = found.length < LISTED ? undefined : found.at(-1);
    return found.length;
  }

  /**
   * The row, if it is still in this group. Since it was listed it may have been deleted, and its number, or that of its
   * namespace, may belong to something else now, even of another subject.
   */
  #read({ namespace, kind }: Group, number: number, budget: Budget): EntryRow | undefined {
    const { connection } = this.#deps;
    const row = connection.sql.rowById.get(number) as (EntryRow & { kind: number; namespace: number }) | undefined;
    budget.read(row ? sizeOf(row) : 0);
    const isHere = row?.kind === KIND_NUMBERS[kind] && row.namespace === connection.namespaceId(namespaceOf(namespace));
    return isHere ? row : undefined;
  }

  /** The row, if it matches at this moment. */
  #judge({ namespace, kind }: Group, row: EntryRow): Matching | undefined {
    const { rows } = this.#deps;
    const { key, category, matches } = this.#selection;
    if (category !== undefined && row.category !== category) return undefined;
    if (key !== undefined) return rows.find(namespaceOf(namespace), kind, key)?.row === row.row ? { row, key } : undefined;
    if (!matches) return { row, key: undefined };
    const entry = rows.open(namespaceOf(namespace), kind, row);
    return entry && matches(entry, kind) ? { row, key: entry.key } : undefined;
  }

  /** Deletes the versions of a fact before the fact, so that an interrupted forget finds the fact again. False if versions are left. */
  #deleteRow(group: Group, row: EntryRow, budget: Budget): boolean {
    if (group.kind === 'fact') {
      if (!this.#deleteVersions(group, row, Number.MAX_SAFE_INTEGER, budget) || !budget.allowsDelete) return false;
    }
    this.#deps.rows.deleteRow(row);
    budget.deleted(0);
    return true;
  }

  /** Deletes the versions of a fact that were written until a time. False if some are left. */
  #deleteVersions({ namespace, kind }: Group, { key_hash: hash }: EntryRow, until: number, budget: Budget): boolean {
    const { connection, rows } = this.#deps;
    if (kind !== 'fact' || connection.namespaceId(namespaceOf(namespace)) !== namespace.id) return true;
    for (const version of connection.sql.versionSizes.all(namespace.id, hash, until) as { row: number; bytes: number }[]) {
      if (!budget.allowsDelete) return false;
      rows.deleteRow(version);
      budget.deleted(version.bytes);
    }
    return true;
  }

  /** Whether one tombstone covers the whole scope: a kind, or a category if there is no key to hash names with. */
  get #coversScope(): boolean {
    return !needsKey(this.#selection) && (this.#selection.category === undefined || !this.#deps.keys.heldKeys);
  }

  /**
   * Written before the first row is deleted, so that an interrupted forget also holds for older backups. It covers entries written
   * before the forget began, because those written meanwhile may stay.
   */
  #writeScopeTombstones(): void {
    const { kinds, session, category } = this.#selection;
    const { at, trusted } = this.#began;
    for (const kind of kinds.filter((one) => TOMBSTONED.has(one))) {
      this.#insertScopeTombstone(at, trusted, session ?? null, KIND_NUMBERS[kind], category ?? null);
    }
  }

  #writeTombstone({ namespace, kind }: Group, { row, key = this.#selection.key }: Matching): void {
    if (!TOMBSTONED.has(kind) || (this.#coversScope && row.updated_at <= this.#began.at)) return;
    const { connection, keys, rows } = this.#deps;
    const { at, trusted } = this.#times();
    const name = key ?? (keys.heldKeys && rows.open(namespaceOf(namespace), kind, row)?.key);
    const secret = keys.heldKeys && keys.tombstoneKey();
    if (secret && name !== undefined) {
      connection.sql.insertHashTombstone.run(at, trusted, tombstoneHash(secret, namespaceOf(namespace), kind, name));
    } else {
      // The name cannot be read or hashed here, but the copy in a backup may be intact.
      this.#insertScopeTombstone(at, trusted, namespace.session, KIND_NUMBERS[kind], row.category);
    }
  }

  #insertScopeTombstone(at: number, trusted: number, session: string | null, kind: number, category: string | null): void {
    this.#deps.connection.sql.insertScopeTombstone.run(at, trusted, this.#subject, session, kind, category);
  }

  /** Throws if the memory was locked since the last slice. */
  #requireKey(): void {
    if (needsKey(this.#selection)) this.#deps.keys.requireKeys();
  }

  #times(): { at: number; trusted: number } {
    const at = this.#deps.time.now();
    return { at, trusted: Math.min(at, this.#deps.time.trusted()) };
  }
}

const FIRST = { at: Number.MIN_SAFE_INTEGER, row: Number.MIN_SAFE_INTEGER };

/** The remaining work of a slice. */
class Budget {
  readonly #until = performance.now() + SLICE.ms;
  #begun = false;
  #listed = 0;
  #rows = 0;
  #bytes = 0;

  get spent(): boolean {
    if (this.#rows >= SLICE.rows || this.#bytes >= SLICE.bytes) return true;
    return this.#begun && performance.now() >= this.#until;
  }

  get deletedRows(): number {
    return this.#rows;
  }

  /** Every slice deletes at least one row, however long it took to read it. */
  get allowsDelete(): boolean {
    return this.#rows === 0 || !this.spent;
  }

  /** Most groups are empty, and listing them costs little. */
  listed(rows: number): void {
    this.#listed += 10 + rows;
    this.#begun ||= this.#listed > LISTED / 2;
  }

  read(bytes: number): void {
    this.#begun = true;
    this.#bytes += bytes;
  }

  deleted(bytes: number): void {
    this.#rows += 1;
    this.#bytes += bytes;
  }
}

/** Every write makes a new seal, even one with the same content. */
const isUnchanged = (row: EntryRow, judged: EntryRow): boolean =>
  row.row === judged.row && row.key_hash.equals(judged.key_hash) && sameSeal(row.sealed, judged.sealed);

/** On a damaged page the blobs may be missing, whatever their type says. */
const sameSeal = (one: unknown, other: unknown): boolean =>
  Buffer.isBuffer(one) && Buffer.isBuffer(other) ? one.equals(other) : one === other;

/** On a damaged page the blob may be missing, whatever its type says. */
const sizeOf = ({ sealed }: EntryRow): number => (Buffer.isBuffer(sealed) ? sealed.length : 0);

export const tombstoneHash = (secret: Buffer, { subject, session }: Namespace, kind: Kind, key: string): Buffer =>
  createHmac('sha256', secret)
    .update(encodeFrame([kind, subject, session ?? '', key]))
    .digest();

export const namespaceOf = ({ subject, session }: NamespaceRow): Namespace =>
  session === '' ? { subject } : { subject, session };
