import { Failure } from '../../contract/failure.ts';
import { HISTORY_VERSIONS, SUPERSEDED_VERSIONS, VALUE_BYTES } from '../../contract/limits.ts';
import { isOfSupersededFact, isSupersededFact } from '../crypto/cipher.ts';
import { lowDiskSpace } from '../file/disk-space.ts';
import { aheadBy } from '../time/clock.ts';
import { type Connection, INCLUDE_EXPIRED, type EntryRow } from './connection.ts';
import type { EntryReader } from './entry-reader.ts';
import { activityEntryOf, outcomeOf, expiryOf, entryOf, sameContent, writerOf, shortens } from './entry.ts';
import { type FairEviction, fairEviction } from './fair-eviction.ts';
import { type Forgetting, tombstoneHash } from './forgetting.ts';
import { type QuotaKind, type UsageCounters, isQuotaKind, isSharedKind, rowLimit, quotaExceeded, quotaOf } from './quota.ts';
import type { SealedRows } from './sealed-rows.ts';
import type { StoreContext } from './store-context.ts';
import {
  type Author,
  EntryChanged,
  type EntryUpdate,
  type EntryDraft,
  type ExpectedValue,
  type Entry,
  type Kind,
  type Namespace,
  type ActivityNote,
  type PutResult,
  type Quota,
  type RevertResult,
  type UndoRange,
  type FactWithHistory,
  type WriteOutcome,
} from './store.ts';
import { Superseding } from './superseding.ts';
import { expiryWithGrace, type Grace, planRevert, restoredVersion, type Supersession } from './undo.ts';

type Dates = Pick<Entry, 'updatedAt' | 'expiresAt'>;

interface FoundEntry {
  readonly row: EntryRow;
  readonly entry: Entry;
}

const NO_BYTES = Buffer.alloc(0);
/** Minimum rows evicted at once, so that not every write must evict a row. */
const ROWS_EVICTED_AT_ONCE = 100;
/** Maximum namespaces and kinds whose next inserts are known to need no check. */
const MAX_UNCHECKED_PLACES = 1000;
/**
 * Maximum bytes that one write of a fact can add: the longest value with all its tags, the earlier version that the write moves to
 * the history, and the former key of each version that it supersedes.
 */
const MAX_ADDED_BYTES = 4 * VALUE_BYTES;

/** What a write needs of a store. The SQLite store and the PostgreSQL store provide it, so both decide alike. */
export interface WriterContext extends Pick<StoreContext, 'keys' | 'sweeper' | 'quota' | 'freeSpace'> {
  readonly connection: Pick<Connection, 'ensureNamespace' | 'namespaceId' | 'countUsage'> &
    Partial<Pick<Connection, 'generation'>> & {
      readonly usageCounters: Pick<UsageCounters, 'rows' | 'usage' | 'expired'>;
    };
  readonly rows: Pick<
    SealedRows,
    | 'find'
    | 'open'
    | 'insert'
    | 'replace'
    | 'deleteRow'
    | 'deleteOldest'
    | 'deleteWithVersions'
    | 'versions'
    | 'countVersions'
    | 'deleteTombstonesAfter'
  >;
  readonly time: Pick<StoreContext['time'], 'now' | 'trusted' | 'inDoubt'>;
  readonly disk: Pick<StoreContext['disk'], 'purgeSoon' | 'purgeLater'>;
  /** True if other processes write too. Then nothing that was read in an earlier transaction is certain. */
  readonly sharesDatabase?: boolean;
}

interface PutTerms {
  readonly note?: ActivityNote | undefined;
  readonly expected?: ExpectedValue | undefined;
}

interface WriterParts {
  readonly reader: Pick<EntryReader, 'findLiving' | 'versions' | 'writersOf'>;
  readonly forgetting: Pick<Forgetting, 'run'>;
  readonly fairEviction: Pick<FairEviction, 'scan' | 'evict'>;
}

/** Writes entries. Call the methods in a transaction. */
export class EntryWriter {
  readonly #context: WriterContext;
  readonly #reader: WriterParts['reader'];
  readonly #forgetting: WriterParts['forgetting'];
  readonly #fairEviction: WriterParts['fairEviction'];
  readonly #superseding: Superseding;
  /**
   * The subject of the last checked write, and how many more writes of this subject certainly fit into the quota without a
   * check.
   */
  #fitting = { subject: '', writes: 0 };
  /** By namespace and kind, how many more inserts certainly make no surplus that must be evicted. Such inserts are not checked. */
  readonly #uncheckedInserts = new Map<string, number>();
  /** The generation of the connection in which the two fields above are certain. */
  #generation: number | undefined;

  constructor(context: WriterContext, parts: WriterParts) {
    this.#context = context;
    this.#reader = parts.reader;
    this.#forgetting = parts.forgetting;
    this.#fairEviction = parts.fairEviction;
    this.#superseding = new Superseding(context);
    if (context.quota) context.connection.countUsage();
  }

  put(namespace: Namespace, kind: Kind, draft: EntryDraft, terms: PutTerms = {}): PutResult {
    return this.#withinQuota(namespace, kind, () => this.#put(namespace, kind, draft, terms));
  }

  change(namespace: Namespace, kind: Kind, key: string, change: EntryUpdate, note?: ActivityNote): Entry | undefined {
    return this.#withinQuota(namespace, kind, () => this.#change(namespace, kind, key, change, note));
  }

  #put(namespace: Namespace, kind: Kind, draft: EntryDraft, { note, expected }: PutTerms): PutResult {
    const { rows, disk } = this.#context;
    const found = rows.find(namespace, kind, draft.key);
    const before = found && found.expires_at > this.#now() ? rows.open(namespace, kind, found) : undefined;
    if (expected && expected.value !== before?.value) throw new EntryChanged();
    const outdated = this.#outdatedBy(namespace, kind, draft);
    const fresh = this.#freshEntry(namespace, draft, outdated);
    if (!found || !before) {
      // An expired entry, or an entry that cannot be decrypted, is replaced together with its versions.
      if (found) this.#deleteReplaced(namespace, kind, found);
      rows.insert(namespace, kind, fresh);
      if (outdated) this.#supersedeOther(namespace, outdated, fresh);
      if (found) disk.purgeSoon();
      this.#evictSurplus(namespace, kind);
      const outcome = outdated && outcomeOf([outdated.entry], fresh, this.#now());
      if (note) this.recordActivity(namespace, note, { outcome });
      return { status: 'created', entry: this.#scheduleExpiry(fresh) };
    }
    const expiresAt = this.#expiryOf(namespace, { row: found, entry: before }, fresh, draft);
    const shortened = kind === 'fact' && shortens(before, { ...fresh, expiresAt });
    if (sameContent(before, fresh) && !shortened && !outdated) {
      const renewed = { ...before, ...this.#renewedDates(before, expiresAt) };
      rows.replace(namespace, kind, found, renewed);
      return { status: 'unchanged', entry: this.#scheduleExpiry(renewed) };
    }
    const last = Math.max(before.updatedAt, outdated?.entry.updatedAt ?? 0);
    const dates = this.#datesAfter({ ...before, updatedAt: last }, expiresAt);
    const updated = { ...fresh, createdAt: before.createdAt, ...dates };
    this.#supersede(namespace, kind, found, before, updated);
    if (outdated) this.#supersedeOther(namespace, outdated, updated);
    const replaced = outdated ? [before, outdated.entry] : [before];
    if (note) this.recordActivity(namespace, note, { outcome: outcomeOf(replaced, updated, this.#now()) });
    return { status: 'updated', entry: this.#scheduleExpiry(updated) };
  }

  /** Finds the fact that a write supersedes. */
  #outdatedBy(namespace: Namespace, kind: Kind, { key, supersedes }: EntryDraft): FoundEntry | undefined {
    if (supersedes === undefined || kind !== 'fact') return undefined;
    if (supersedes === key)
      throw new Failure(
        'invalid_input',
        '`supersedes` is the key of the fact itself; leave it out, because storing a fact replaces its own earlier version.',
      );
    const found = this.#reader.findLiving(namespace, kind, supersedes);
    if (found) return found;
    throw new Failure(
      'not_found',
      'No fact is stored under the key in `supersedes`, so nothing was stored; look up the key, or leave `supersedes` out.',
    );
  }

  /** Returns the entry that a draft makes. It is newer than the fact that it supersedes, and expires no sooner than a write over it. */
  #freshEntry(namespace: Namespace, draft: EntryDraft, outdated: FoundEntry | undefined): Entry {
    const fresh = entryOf(draft, this.#now());
    if (!outdated) return fresh;
    const dates = this.#datesAfter(outdated.entry, this.#expiryOf(namespace, outdated, fresh, draft));
    return { ...fresh, ...dates, createdAt: dates.updatedAt };
  }

  #supersedeOther(namespace: Namespace, outdated: FoundEntry, by: Entry): void {
    this.#superseding.supersede(namespace, outdated, by);
    this.#evictVersions(namespace, by);
    // The bytes of the moved rows stay in the file until it is purged.
    this.#context.disk.purgeSoon();
  }

  #change(namespace: Namespace, kind: Kind, key: string, change: EntryUpdate, note?: ActivityNote): Entry | undefined {
    const found = this.#reader.findLiving(namespace, kind, key);
    if (!found) return undefined;
    const { row, entry: before } = found;
    const { author, lifetime } = change;
    const requested = lifetime === undefined ? before.expiresAt : expiryOf(lifetime, this.#now());
    const expiresAt = this.#expiryOf(namespace, found, { author, expiresAt: requested }, change);
    const changed = { ...before, category: change.category ?? before.category, tags: change.tags ?? before.tags, expiresAt };
    if (sameContent(before, changed) && !(kind === 'fact' && shortens(before, { author, expiresAt }))) {
      const renewed = { ...changed, ...this.#renewedDates(before, expiresAt) };
      this.#context.rows.replace(namespace, kind, row, renewed);
      if (note && lifetime !== undefined) this.recordActivity(namespace, note);
      return this.#scheduleExpiry(renewed);
    }
    const updated = { ...changed, author, ...this.#datesAfter(before, expiresAt) };
    this.#supersede(namespace, kind, row, before, updated);
    if (note) this.recordActivity(namespace, note, { outcome: outcomeOf([before], updated, this.#now()) });
    return this.#scheduleExpiry(updated);
  }

  restoreForgotten(namespace: Namespace, { entry, versions, row, lastTombstone }: FactWithHistory, note: ActivityNote): boolean {
    return this.#withinQuota(namespace, 'fact', () => {
      const { keys, rows } = this.#context;
      if (entry.expiresAt <= this.#now() || rows.find(namespace, 'fact', entry.key)) return false;
      rows.insert(namespace, 'fact', this.#scheduleExpiry(entry), row);
      for (const version of versions.toReversed()) rows.insert(namespace, 'history', this.#scheduleExpiry(version));
      const secret = keys.tombstoneKey();
      const names = new Set([entry.key, ...versions.flatMap(({ formerKeys = [] }) => formerKeys.map(({ key }) => key))]);
      // Select tombstones by row number and not by time, because an older tombstone can have a later time if the clock was
      // wrong.
      for (const key of secret ? names : []) {
        if (secret) rows.deleteTombstonesAfter(tombstoneHash(secret, namespace, 'fact', key), lastTombstone);
      }
      this.recordActivity(namespace, note);
      return true;
    });
  }

  revert(namespace: Namespace, kind: Kind, key: string, range: UndoRange, note?: ActivityNote): RevertResult {
    const found = this.#reader.findLiving(namespace, kind, key);
    if (!found) return { what: 'untouched', returned: [] };
    const { row, entry } = found;
    const plan = planRevert(entry, kind === 'fact' ? this.#reader.versions(namespace, row) : [], range);
    if (plan.what === 'untouched') return { what: plan.what, returned: [] };
    const returned = kind === 'fact' ? this.#returnSuperseded(namespace, row, plan.returns, note !== undefined) : [];
    const result = { what: plan.what, returned };
    if (!note) return result;
    if (plan.what === 'removed') {
      const { subject, session = '' } = namespace;
      // These versions cannot be returned. Otherwise the forget would also forget their fact in older backups.
      if (kind === 'fact') for (const rest of this.#superseding.supersededBy(namespace, row)) this.#superseding.delete(rest);
      this.#forgetting.run(subject, { kinds: [kind], key, session });
      this.#context.disk.purgeSoon();
      this.recordActivity(namespace, note);
    } else if (plan.what === 'restored') {
      const restored = this.#restored(entry, plan.to);
      const before = this.#used(namespace, 'fact');
      this.#fitting.writes = 0;
      this.#supersede(namespace, kind, row, entry, restored);
      // An undo must work even if the quota is used up, so delete versions until the write needs no more storage than before.
      for (const version of plan.expendable) {
        if (this.#exceededQuota(namespace, 'fact', before)) this.#deleteVersion(namespace, version);
      }
      this.#scheduleExpiry(restored);
      this.recordActivity(namespace, note, { outcome: outcomeOf([], restored, this.#now()) });
    } else if (returned.length > 0) this.recordActivity(namespace, note);
    return result;
  }

  /** Makes superseded facts facts of their own again, and returns their keys. Without `isReal`, only returns the keys. */
  #returnSuperseded(namespace: Namespace, row: EntryRow, returns: Supersession, isReal: boolean): string[] {
    const returned: string[] = [];
    for (const fact of this.#superseding.supersededBy(namespace, row)) {
      if (!fact.current || !returns(fact.until)) continue;
      const present = this.#reader.findLiving(namespace, 'fact', fact.key);
      if (!present) returned.push(fact.key);
      if (!isReal) continue;
      const gone = present ? undefined : this.#context.rows.find(namespace, 'fact', fact.key);
      if (gone) this.#deleteReplaced(namespace, 'fact', gone);
      this.#superseding.return(namespace, fact);
      if (present) this.#evictVersions(namespace, present.entry);
      this.#scheduleExpiry(fact.current.entry);
      this.#fitting.writes = 0;
      this.#context.disk.purgeSoon();
    }
    return returned;
  }

  /** Adds an activity entry. `at` is the time of the action, if the action was earlier. */
  recordActivity(
    namespace: Namespace,
    note: ActivityNote,
    { outcome, at = this.#now() }: { outcome?: WriteOutcome | undefined; at?: number } = {},
  ): void {
    this.#context.rows.insert(namespace, 'activity', this.#scheduleExpiry(activityEntryOf(note, outcome, at)));
    this.#evictSurplus(namespace, 'activity');
  }

  /**
   * Returns the dates of a changed entry. A future update time marks an expiry that was set by a clock in doubt: `correctDates`
   * later moves both back by the same amount. An unchanged expiry therefore gets no future update time. If the earlier version
   * has a future update time, the new version gets an even later one. The new expiry is then moved ahead equally, because
   * otherwise the correction would move the expiry into the past.
   */
  #datesAfter(before: Entry, expiresAt: number): Dates {
    if (expiresAt === before.expiresAt) return { expiresAt, updatedAt: Math.max(this.#trustedNow(), before.updatedAt + 1) };
    const now = this.#now();
    const updatedAt = Math.max(now, before.updatedAt + 1);
    return { updatedAt, expiresAt: expiresAt + aheadBy(updatedAt, now) };
  }

  #renewedDates(before: Entry, expiresAt: number): Partial<Dates> {
    const dated = this.#context.time.inDoubt || aheadBy(before.updatedAt, this.#now()) > 0;
    return dated && expiresAt !== before.expiresAt ? this.#datesAfter(before, expiresAt) : { expiresAt };
  }

  /**
   * Returns the version that an undo writes. If the undone version has a future date, `correctDates` will later move the dates
   * of the restored version back too, so its expiry is moved ahead here.
   */
  #restored(entry: Entry, to: Entry): Entry {
    const now = this.#trustedNow();
    const back = restoredVersion(entry, to, now);
    const ahead = aheadBy(to.updatedAt, now) > 0 ? 0 : aheadBy(back.updatedAt, now);
    return { ...back, expiresAt: back.expiresAt + ahead };
  }

  #now(): number {
    return this.#context.time.now();
  }

  #trustedNow(): number {
    return Math.min(this.#now(), this.#context.time.trusted());
  }

  #expiryOf(
    namespace: Namespace,
    { row, entry }: { readonly row: EntryRow; readonly entry: Entry },
    { author, expiresAt }: Pick<Entry, 'author' | 'expiresAt'>,
    { grace, graceOwn }: Grace,
  ): number {
    if (grace === undefined) return expiresAt;
    const versions = (): Entry[] => this.#reader.versions(namespace, row);
    return expiryWithGrace(entry, versions, { author, expiresAt, grace, ...(graceOwn && { graceOwn }) }, this.#now());
  }

  #scheduleExpiry(entry: Entry): Entry {
    this.#context.sweeper.scheduleAt(entry.expiresAt);
    return entry;
  }

  #evictSurplus(namespace: Namespace, kind: Kind): void {
    const { connection, rows, quota, disk } = this.#context;
    const most = rowLimit(kind);
    if (!quota || most === Infinity) return;
    this.#discardOutdated();
    const id = connection.ensureNamespace(namespace);
    const place = `${id} ${kind}`;
    const unchecked = this.#uncheckedInserts.get(place) ?? 0;
    if (unchecked > 0 && !this.#context.sharesDatabase) {
      this.#uncheckedInserts.set(place, unchecked - 1);
      return;
    }
    const surplus = connection.usageCounters.rows(id, kind) - most;
    const isShared = isSharedKind(kind);
    if (surplus > 0 && isShared && !this.#fairEviction.scan(namespace, kind)) return;
    if (surplus < ROWS_EVICTED_AT_ONCE) {
      const left = surplus > 0 ? ROWS_EVICTED_AT_ONCE - surplus : -surplus;
      if (this.#uncheckedInserts.size >= MAX_UNCHECKED_PLACES) this.#uncheckedInserts.clear();
      this.#uncheckedInserts.set(place, Math.min(ROWS_EVICTED_AT_ONCE, left) - 1);
      return;
    }
    if (isShared) this.#fairEviction.evict(namespace, kind, surplus);
    else rows.deleteOldest(id, kind, surplus);
    disk.purgeLater();
  }

  /**
   * Deletes an expired or unreadable entry that a write replaces. While the clock is in doubt, a fact may not really have
   * expired, so it becomes an earlier version, which is visible again when the clock is right.
   */
  #deleteReplaced(namespace: Namespace, kind: Kind, found: EntryRow): void {
    const { connection, rows, time } = this.#context;
    const doubtful = kind === 'fact' && time.inDoubt ? rows.open(namespace, kind, found) : undefined;
    if (!doubtful) return rows.deleteWithVersions(connection.ensureNamespace(namespace), kind, found);
    rows.deleteRow(found);
    rows.insert(namespace, 'history', doubtful);
  }

  /** Replaces an entry. If the entry is a fact, its earlier version moves to the history. */
  #supersede(namespace: Namespace, kind: Kind, row: EntryRow, before: Entry, after: Entry): void {
    const { rows, disk } = this.#context;
    rows.replace(namespace, kind, row, after);
    if (kind === 'fact') {
      rows.insert(namespace, 'history', before);
      if (!this.#evictVersions(namespace, after)) return;
    }
    disk.purgeSoon();
  }

  /**
   * Evicts surplus versions, and returns true if there were any. The current version is never evicted, but counts as a version
   * of its author. Of the versions of one writer, the version that was current for the shortest time is evicted first. So a loop
   * of writes evicts its own versions and not earlier versions. The versions of superseded facts have a limit of their own. Of
   * these, those that were current are evicted last, because their facts cannot be returned without them.
   */
  #evictVersions(namespace: Namespace, { key, author, updatedAt }: Entry): boolean {
    const { connection, keys, rows } = this.#context;
    const id = connection.ensureNamespace(namespace);
    const hash = keys.ring.current.hash(namespace, key);
    if (rows.countVersions(id, hash) <= HISTORY_VERSIONS) return false;
    const found = rows.versions(id, hash, INCLUDE_EXPIRED).toReversed();
    const { own = [], superseded = [] } = Object.groupBy(found, ({ sealed }) =>
      isOfSupersededFact(sealed) ? 'superseded' : 'own',
    );
    const times = [...own.map((version) => version.updated_at), updatedAt, Infinity];
    const timeAsCurrent = (position: number): number => (times[position + 1] ?? 0) - (times[position] ?? 0);
    const wasCurrent = (position: number): number => (isSupersededFact(superseded[position]?.sealed ?? NO_BYTES) ? 1 : 0);
    const evictsOwn = this.#evictFairly(namespace, own, { most: HISTORY_VERSIONS, valueOf: timeAsCurrent, author });
    return this.#evictFairly(namespace, superseded, { most: SUPERSEDED_VERSIONS, valueOf: wasCurrent }) || evictsOwn;
  }

  #evictFairly(
    namespace: Namespace,
    found: readonly EntryRow[],
    { most, valueOf, author }: { most: number; valueOf: (position: number) => number; author?: Author },
  ): boolean {
    if (found.length <= most) return false;
    const oldestFirst = this.#reader.writersOf(namespace, 'history', found);
    const writers = [...oldestFirst.map(({ writer }) => writer), ...(author ? [writerOf(author)] : [])];
    for (const position of fairEviction(writers, found.length - most, valueOf)) {
      const version = oldestFirst[position];
      if (version) this.#context.rows.deleteRow(version);
    }
    return true;
  }

  #deleteVersion(namespace: Namespace, { key, updatedAt }: Entry): void {
    const { connection, keys, rows, disk } = this.#context;
    const hash = keys.ring.current.hash(namespace, key);
    const versions = rows.versions(connection.ensureNamespace(namespace), hash, INCLUDE_EXPIRED);
    const isSame = (each: EntryRow): boolean => each.updated_at === updatedAt && !isOfSupersededFact(each.sealed);
    for (const version of versions.filter(isSame)) rows.deleteRow(version);
    disk.purgeSoon();
  }

  /**
   * Runs a write and then checks the quota. If the quota is exceeded, the failure rolls back the whole write with its activity
   * note. A write that needs no more storage than before is never rejected, even if the memory already exceeds the quota.
   */
  #withinQuota<T>(namespace: Namespace, kind: Kind, write: () => T): T {
    const { quota, freeSpace } = this.#context;
    if (!quota || !isQuotaKind(kind)) return write();
    this.#discardOutdated();
    if (kind === 'fact' && !freeSpace?.isLow && this.#surelyFits(namespace)) return write();
    const before = this.#used(namespace, kind);
    const result = write();
    if (freeSpace?.isLow && this.#used(namespace, kind).bytes > before.bytes) throw lowDiskSpace();
    const limit = quotaOf(kind, quota);
    // Number of facts that certainly fit into the quota. Used only for facts, because an entry of a pack or a pipeline can be
    // longer than any fact.
    const fitting = Math.min(limit.facts - before.facts, Math.floor((limit.bytes - before.bytes) / MAX_ADDED_BYTES));
    if (kind === 'fact' && fitting > 0) {
      this.#fitting = { subject: namespace.subject, writes: fitting - 1 };
      return result;
    }
    const exceeded = this.#exceededQuota(namespace, kind, before);
    if (exceeded) throw quotaExceeded(kind, exceeded, limit);
    return result;
  }

  #surelyFits({ subject }: Namespace): boolean {
    if (this.#context.sharesDatabase || this.#fitting.subject !== subject || this.#fitting.writes <= 0) return false;
    this.#fitting.writes -= 1;
    return true;
  }

  /** Counts again after a rollback, because the rolled back transaction can have deleted the rows that made room. */
  #discardOutdated(): void {
    const { generation } = this.#context.connection;
    if (this.#generation === generation) return;
    this.#generation = generation;
    this.#fitting.writes = 0;
    this.#uncheckedInserts.clear();
  }

  usage(subject: string): Quota {
    return this.#withoutExpired(subject, 'fact', this.#context.connection.usageCounters.usage(subject, 'fact'));
  }

  /** Returns which limit is exceeded. Undefined if the storage is within the quota, or if it has not grown. */
  #exceededQuota(namespace: Namespace, kind: QuotaKind, before: Quota): keyof Quota | undefined {
    const { quota } = this.#context;
    if (!quota) return undefined;
    const limit = quotaOf(kind, quota);
    const after = this.#used(namespace, kind);
    return (['facts', 'bytes'] as const).find((what) => after[what] > limit[what] && after[what] > before[what]);
  }

  /** Returns the used storage. Expired entries are subtracted only if the quota seems exceeded, because finding them is slow. */
  #used({ subject }: Namespace, kind: QuotaKind): Quota {
    const { connection, quota } = this.#context;
    const used = connection.usageCounters.usage(subject, kind);
    const limit = quota && quotaOf(kind, quota);
    const exceeds = limit !== undefined && (used.facts > limit.facts || used.bytes > limit.bytes);
    return exceeds ? this.#withoutExpired(subject, kind, used) : used;
  }

  #withoutExpired(subject: string, kind: QuotaKind, used: Quota): Quota {
    const expired = this.#context.connection.usageCounters.expired(subject, kind, this.#now());
    return { facts: used.facts - expired.facts, bytes: used.bytes - expired.bytes };
  }
}
