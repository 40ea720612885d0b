import { createHmac } from 'node:crypto';
import { encodeFrame, isOfSupersededFact } from '../crypto/cipher.ts';
import { INCLUDE_EXPIRED, type NamespaceRow, type EntryRow } from './connection.ts';
import { isUncountedCategory, storedCategory } from './entry.ts';
import { KIND_NUMBERS } from './statements.ts';
import type { StoreContext } from './store-context.ts';
import { type Kind, type Namespace, type Selection, STEP_BYTES } from './store.ts';

/**
 * Kinds that get tombstones, so that restoring a backup does not bring forgotten entries back. The kind `history` is not
 * included, because versions are deleted with their fact.
 */
export const TOMBSTONED: ReadonlySet<Kind> = new Set(['fact', 'audit', 'cache', 'pack', 'activity']);
export const UNCOUNTED: ReadonlySet<Kind> = new Set(['history', 'activity']);
/**
 * The order in which kinds are deleted. Activity rows come first, so that the forget cannot delete its own activity row, which
 * is written later and can reuse a listed row number. Versions come last, because by then only versions without a fact are left.
 */
export const DELETE_ORDER: readonly Kind[] = ['activity', 'fact', 'audit', 'cache', 'pack', 'history'];

/**
 * Limits of one slice, which is one commit: milliseconds, rows and sealed bytes. Other requests wait for a whole slice, and on a
 * full disk the reserve must have space for the log of a slice. A slice always handles at least one row.
 */
const SLICE = { ms: 0.3, rows: 12, bytes: STEP_BYTES };
/** Maximum row numbers read at once. Reading many is cheap, because an index contains them. */
const LISTED = 1000;

type Deps = Pick<StoreContext, 'connection' | 'keys' | 'rows' | 'time'>;

export class Forgetting {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  begin(subject: string, selection: Selection): ForgetJob {
    return new ForgetJob(this.#deps, subject, selection);
  }

  /** Like `begin`, but for counting only: skips the kinds that are never counted. */
  beginCount(subject: string, selection: Selection): ForgetJob {
    return new ForgetJob(this.#deps, subject, { ...selection, kinds: selection.kinds.filter((kind) => !UNCOUNTED.has(kind)) });
  }

  /** Runs a whole forget in one step, for a selection of a single key. Call it in a transaction. */
  run(subject: string, selection: Selection): number {
    const job = this.begin(subject, selection);
    let progress = FORGET_START;
    while (!progress.done) progress = job.delete(progress);
    return progress.entries;
  }
}

/** The progress of a forget. A slice that is rolled back runs again from the same progress. */
export interface ForgetProgress {
  readonly done: boolean;
  /** Number of deleted or counted entries that were visible to callers. */
  readonly entries: number;
  /** Number of deleted rows, including versions. */
  readonly rows: number;
  readonly group: number;
  readonly row: number;
  /** The fact whose versions are being deleted, as it was when it matched the selection and its tombstone was written. */
  readonly partlyDeleted: EntryRow | undefined;
  /** Whether the tombstones of the whole scope have been written. */
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

interface Group {
  readonly namespace: NamespaceRow;
  readonly kind: Kind;
  /** The `rowid` of each row that existed when this group was listed. */
  readonly listed: number[];
  /** Position where listing continues; undefined when the list is complete. */
  next: { at: number; row: number } | undefined;
}

interface Matching {
  readonly row: EntryRow;
  /** Undefined if the row did not have to be decrypted, or if its seal is broken. */
  readonly key: string | undefined;
}

/** Whether to record a forget: true if the forget deleted entries or cleared the whole activity record. */
export const isRecordDue = ({ entries, done }: Pick<ForgetProgress, 'entries' | 'done'>, clearsRecord: boolean): boolean =>
  entries > 0 || (clearsRecord && done);

/** Whether entries must be decrypted to decide if they match the selection. */
export const needsKey = (selection: Selection): boolean => selection.key !== undefined || selection.matches !== undefined;

/**
 * Deletes or counts the entries of a selection, one slice at a time. Writes tombstones, so that restoring a backup does not
 * bring the entries back. The job first lists row numbers, and then checks each row when it reaches that row. So the job ends
 * even if other clients keep writing, and it misses no row that exists during the whole job.
 */
export class ForgetJob {
  readonly #deps: Deps;
  readonly #subject: string;
  readonly #selection: Selection;
  readonly #groups: readonly Group[];
  /** The authors to delete, because every entry of their namespaces is deleted. */
  readonly #retiredAuthors: readonly number[];
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
    const forgetsAuthors =
      DELETE_ORDER.every((kind) => selection.kinds.includes(kind)) && selection.category === undefined && !needsKey(selection);
    // Entries that are written during the forget get new author rows, because the present ones are deleted at its end.
    this.#retiredAuthors = forgetsAuthors ? namespaces.flatMap(({ id }) => deps.rows.authors.retire(id)) : [];
    this.#groups = DELETE_ORDER.filter((kind) => selection.kinds.includes(kind)).flatMap((kind) =>
      namespaces.map((namespace) => ({ namespace, kind, listed: [], next: FIRST })),
    );
  }

  count(from: ForgetProgress): ForgetProgress {
    return this.#slice(from, ({ namespace, kind }, { row }, budget) => {
      const { sql } = this.#deps.connection;
      if (kind === 'fact')
        budget.supersededFacts += sql.countSuperseded.get(namespace.id, row.key_hash, this.#deps.time.now()) as number;
      return true;
    });
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
    if (!to.done) return to;
    const authors = this.#deps.rows.authors.deleteRetired(this.#retiredAuthors);
    this.#deps.connection.deleteEmptySessions();
    return { ...to, rows: to.rows + authors };
  }

  /**
   * Calls `visit` for matching rows until the budget of the slice is spent. `visit` returns false if it needs the row again in
   * the next slice.
   */
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
      entries: entries + budget.supersededFacts,
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
      const isSameMatch = row !== undefined && partlyDeleted !== undefined && isUnchanged(row, partlyDeleted);
      if (partlyDeleted && !isSameMatch) {
        // After the previous slice, the fact was rewritten or deleted. Its versions that existed when the fact matched must
        // still be deleted.
        if (!this.#deleteVersions(group, partlyDeleted, partlyDeleted.updated_at, budget)) continue;
        partlyDeleted = undefined;
      }
      const matching = isSameMatch ? { row, key: this.#selection.key } : row && this.#match(group, row);
      if (matching) {
        if (!visit(group, matching, budget, isSameMatch)) {
          partlyDeleted = matching.row;
          continue;
        }
        const { category, expires_at: end } = matching.row;
        if (!UNCOUNTED.has(group.kind) && !isUncountedCategory(category) && end > this.#deps.time.now()) entries += 1;
      }
      partlyDeleted = undefined;
      place += 1;
      const isLast = !group.next && place === group.listed.length && index === this.#groups.length - 1;
      if (isLast) return progress(true);
    }
    return progress(false);
  }

  /**
   * Lists the row numbers of a group. Includes expired rows, because they would become visible again if the clock is set back.
   */
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
      category === undefined
        ? rowsInOrder.all(namespace.id, ...place)
        : rowsOfCategory.all(namespace.id, storedCategory(category), ...place)
    ) as { at: number; row: number }[];
    for (const { row } of found) listed.push(row);
    group.next = found.length < LISTED ? undefined : found.at(-1);
    return found.length;
  }

  /**
   * Reads a listed row. Returns undefined if the row is no longer in this group: the row or its namespace may have been deleted
   * meanwhile, and another subject's entry may have reused the number.
   */
  #read({ namespace, kind }: Group, number: number, budget: Budget): EntryRow | undefined {
    const { connection } = this.#deps;
    const row = connection.sql.rowById.get(number) as (EntryRow & { kind: number; namespace: number }) | undefined;
    budget.read(row ? sizeOf(row) : 0);
    const isHere = row?.kind === KIND_NUMBERS[kind] && row.namespace === connection.namespaceId(namespaceOf(namespace));
    return isHere ? row : undefined;
  }

  #match({ namespace, kind }: Group, row: EntryRow): Matching | undefined {
    const { rows } = this.#deps;
    const { key, category, matches } = this.#selection;
    if (category !== undefined && row.category !== category) return undefined;
    if (key !== undefined) return rows.find(namespaceOf(namespace), kind, key)?.row === row.row ? { row, key } : undefined;
    if (!matches) return { row, key: undefined };
    const entry = rows.open(namespaceOf(namespace), kind, row);
    return entry && matches(entry, kind) ? { row, key: entry.key } : undefined;
  }

  /**
   * Deletes a row. The versions of a fact are deleted before the fact, so that an interrupted forget finds the fact again.
   * Returns false if rows are left for the next slice.
   */
  #deleteRow(group: Group, row: EntryRow, budget: Budget): boolean {
    if (group.kind === 'fact') {
      if (!this.#deleteVersions(group, row, Number.MAX_SAFE_INTEGER, budget) || !budget.allowsDelete) return false;
    }
    this.#deps.rows.deleteRow(row);
    budget.deleted(0);
    return true;
  }

  /**
   * Deletes the versions of a fact that were written at or before `until`. Returns false if versions are left for the next slice.
   */
  #deleteVersions({ namespace, kind }: Group, { key_hash: hash }: EntryRow, until: number, budget: Budget): boolean {
    const { connection, rows } = this.#deps;
    if (kind !== 'fact' || connection.namespaceId(namespaceOf(namespace)) !== namespace.id) return true;
    const versions = connection.sql.versionSizes.all(this.#deps.time.now(), namespace.id, hash, until) as VersionSize[];
    for (const version of versions) {
      if (!budget.allowsDelete) return false;
      rows.deleteRow(version);
      budget.deleted(version.bytes);
      budget.supersededFacts += version.isVisible;
    }
    return true;
  }

  /**
   * Whether one tombstone is written for a whole kind or category. For a category, only if no master key is held to hash each
   * entry's key.
   */
  get #coversScope(): boolean {
    return !needsKey(this.#selection) && (this.#selection.category === undefined || !this.#deps.keys.heldKeys);
  }

  /**
   * Writes the tombstones of the whole scope. Called before the first row is deleted, so that an interrupted forget is also
   * applied to older backups when they are restored. These tombstones cover only entries written before the forget began,
   * because entries written later can survive the forget.
   */
  #writeScopeTombstones(): void {
    const { kinds, session, category } = this.#selection;
    const { at, trusted } = this.#began;
    for (const kind of kinds.filter((one) => TOMBSTONED.has(one))) {
      this.#insertScopeTombstone(at, trusted, session ?? null, KIND_NUMBERS[kind], category ?? null);
    }
  }

  #writeTombstone({ namespace, kind }: Group, { row, key = this.#selection.key }: Matching): void {
    if (!TOMBSTONED.has(kind)) return;
    if (kind === 'fact') this.#writeTombstonesOfSuperseded(namespace, row);
    if (this.#coversScope && row.updated_at <= this.#began.at) return;
    const { connection, keys, rows } = this.#deps;
    const { at, trusted } = this.#times();
    const name = key ?? (keys.heldKeys && rows.open(namespaceOf(namespace), kind, row)?.key);
    const secret = keys.heldKeys && keys.tombstoneKey();
    if (secret && name !== undefined) {
      connection.sql.insertHashTombstone.run(at, trusted, tombstoneHash(secret, namespaceOf(namespace), kind, name));
    } else {
      // The key cannot be decrypted or hashed, but the row may be intact in a backup. So write a tombstone for its category.
      this.#insertScopeTombstone(at, trusted, namespace.session, KIND_NUMBERS[kind], row.category);
    }
  }

  /**
   * Writes the tombstones of the facts that a fact has superseded. They cover only the time in which those were facts of their own, so
   * a fact that was stored later under the same key is not forgotten.
   */
  #writeTombstonesOfSuperseded(namespace: NamespaceRow, fact: EntryRow): void {
    const { connection, keys, rows, time } = this.#deps;
    // A tombstone of the whole scope covers superseded facts too, but one of a category covers only facts of this category.
    if (this.#coversScope && this.#selection.category === undefined) return;
    const versions = connection.sql.versions.all(namespace.id, fact.key_hash, INCLUDE_EXPIRED) as EntryRow[];
    const secret = keys.heldKeys && keys.tombstoneKey();
    const written = new Set<string>();
    for (const version of versions.filter(({ sealed }) => isOfSupersededFact(sealed))) {
      const entry = secret && rows.open(namespaceOf(namespace), 'history', version);
      if (!secret || !entry) {
        const { at, trusted } = this.#times();
        this.#insertScopeTombstone(at, trusted, namespace.session, KIND_NUMBERS.fact, version.category);
      }
      for (const { key, until } of entry?.formerKeys ?? []) {
        const name = JSON.stringify([key, until]);
        if (!secret || written.has(name)) continue;
        written.add(name);
        const hash = tombstoneHash(secret, namespaceOf(namespace), 'fact', key);
        connection.sql.insertHashTombstone.run(until, Math.min(until, time.trusted()), hash);
      }
    }
  }

  #insertScopeTombstone(at: number, trusted: number, session: string | null, kind: number, category: string | null): void {
    this.#deps.connection.sql.insertScopeTombstone.run(at, trusted, this.#subject, session, kind, category);
  }

  /** Throws if the selection needs the master key and the memory is locked. */
  #requireKey(): void {
    if (needsKey(this.#selection)) this.#deps.keys.requireKeys();
  }

  #times(): { at: number; trusted: number } {
    const at = this.#deps.time.now();
    return { at, trusted: Math.min(at, this.#deps.time.trusted()) };
  }
}

const FIRST = { at: Number.MIN_SAFE_INTEGER, row: Number.MIN_SAFE_INTEGER };

interface VersionSize {
  readonly row: number;
  readonly bytes: number;
  /** 1 if the version is a superseded fact that has not expired, otherwise 0. */
  readonly isVisible: number;
}

class Budget {
  /** Number of visited versions that callers saw as facts of their own, before these were superseded. */
  supersededFacts = 0;
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

  /** Whether another row can be deleted. The first row of a slice is always allowed, so that every slice makes progress. */
  get allowsDelete(): boolean {
    return this.#rows === 0 || !this.spent;
  }

  /** Applies the time limit to listing only after many rows, because listing is cheap and most groups are empty. */
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

/** Compares two readings of a row by their seals, because every write makes a new seal even if the content is the same. */
const isUnchanged = (row: EntryRow, matched: EntryRow): boolean =>
  row.row === matched.row && row.key_hash.equals(matched.key_hash) && sameSeal(row.sealed, matched.sealed);

/**
 * Compares two seals. The check is needed because on a damaged page the columns may not contain blobs, whatever their declared
 * type.
 */
const sameSeal = (one: unknown, other: unknown): boolean =>
  Buffer.isBuffer(one) && Buffer.isBuffer(other) ? one.equals(other) : one === other;

/** Returns the sealed bytes of a row. On a damaged page the column may not contain a blob, whatever its declared type. */
const sizeOf = ({ sealed }: EntryRow): number => (Buffer.isBuffer(sealed) ? sealed.length : 0);

export const tombstoneHash = (secret: Buffer, { subject, session }: Namespace, kind: Kind, key: string): Buffer =>
  createHmac('sha256', secret)
    .update(encodeFrame([kind, subject, session ?? '', key]))
    .digest();

export const namespaceOf = ({ subject, session }: NamespaceRow): Namespace =>
  session === '' ? { subject } : { subject, session };
