import { HISTORY_VERSIONS, VALUE_BYTES } from '../../contract/limits.ts';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import { type FreeSpace, lowDiskSpace } from '../file/disk-space.ts';
import { type Connection, INCLUDE_EXPIRED, type EntryRow } from './connection.ts';
import type { EntryReader } from './entry-reader.ts';
import { activityEntryOf, outcomeOf, expiryOf, entryOf, sameContent, writerOf, shortens } from './entry.ts';
import type { EntryEvents } from './events.ts';
import { FairEviction, fairEviction } from './fair-eviction.ts';
import { type Forgetting, tombstoneHash } from './forgetting.ts';
import { type QuotaKind, isQuotaKind, isSharedKind, rowLimit, quotaExceeded, quotaOf } from './quota.ts';
import type { SealedRows } from './sealed-rows.ts';
import type {
  EntryUpdate,
  EntryDraft,
  Entry,
  Kind,
  Namespace,
  ActivityNote,
  PutResult,
  Quota,
  RevertOutcome,
  UndoRange,
  FactWithHistory,
  WriteOutcome,
} from './store.ts';
import { expiryWithGrace, type Grace, planRevert, restoredVersion } from './undo.ts';

interface Deps {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly rows: SealedRows;
  readonly events: EntryEvents;
  readonly reader: EntryReader;
  readonly forgetting: Forgetting;
  readonly quota: Quota | undefined;
  readonly room: Pick<FreeSpace, 'isLow'> | undefined;
  readonly now: () => number;
  /** Whether the clock has jumped, so that what seems expired may not be. */
  readonly inDoubt: () => boolean;
  /** The latest time that is not in doubt. */
  readonly trusted: () => number;
  /** Deleted or overwritten bytes wait to be cleared. */
  readonly purgeSoon: () => void;
  /** Something goes at this moment. */
  readonly ends: (moment: number) => void;
}

/** Rows evicted at once, so that not every write has to clear one. */
const TRIM = 100;
/** No write of a fact takes so many bytes more: the longest value with all its tags, and the version that it supersedes. */
const MOST_ADDED = 4 * VALUE_BYTES;

/** What is written in one transaction. Everything here is one synchronous step of it. */
export class EntryWriter {
  readonly #deps: Deps;
  /** Who wrote last, and how many more writes of theirs fit for certain: so often nobody has to look. */
  #room = { subject: '', writes: 0 };
  readonly #fairEviction: FairEviction;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#fairEviction = new FairEviction(deps);
    if (deps.quota) deps.connection.startCounting();
  }

  put(namespace: Namespace, kind: Kind, draft: EntryDraft, note?: ActivityNote): PutResult {
    return this.#inRoom(namespace, kind, () => this.#put(namespace, kind, draft, note));
  }

  change(namespace: Namespace, kind: Kind, key: string, change: EntryUpdate, note?: ActivityNote): Entry | undefined {
    return this.#inRoom(namespace, kind, () => this.#change(namespace, kind, key, change, note));
  }

  #put(namespace: Namespace, kind: Kind, draft: EntryDraft, note?: ActivityNote): PutResult {
    const { rows, now, purgeSoon } = this.#deps;
    const found = rows.find(namespace, kind, draft.key);
    const before = found && found.expires_at > now() ? rows.open(namespace, kind, found) : undefined;
    const fresh = entryOf(draft, now());
    if (!found || !before) {
      // What has expired or cannot be opened is not an earlier version: it makes room, with its own versions.
      if (found) this.#makeWay(namespace, kind, found);
      rows.insert(namespace, kind, fresh);
      if (found) purgeSoon();
      this.#trim(namespace, kind);
      if (note) this.recordActivity(namespace, note);
      return { status: 'created', entry: this.#ends(fresh) };
    }
    const expiresAt = this.#endOf(namespace, { row: found, entry: before }, fresh, draft);
    const shortened = kind === 'fact' && shortens(before, { ...fresh, expiresAt });
    if (sameContent(before, fresh) && !shortened) {
      const renewed = { ...before, expiresAt, ...this.#renewedInDoubt(before, expiresAt) };
      rows.replace(namespace, kind, found, renewed);
      return { status: 'unchanged', entry: this.#ends(renewed) };
    }
    const updatedAt = this.#dateOf(before, expiresAt);
    const updated = { ...fresh, expiresAt, createdAt: before.createdAt, updatedAt };
    this.#supersede(namespace, kind, found, before, updated);
    if (note) this.recordActivity(namespace, note, { outcome: outcomeOf(before, updated, now()) });
    return { status: 'updated', entry: this.#ends(updated) };
  }

  #change(namespace: Namespace, kind: Kind, key: string, change: EntryUpdate, note?: ActivityNote): Entry | undefined {
    const { reader, rows, now } = this.#deps;
    const found = reader.findLiving(namespace, kind, key);
    if (!found) return undefined;
    const { row, entry: before } = found;
    const { author, lifetime } = change;
    const asked = lifetime === undefined ? before.expiresAt : expiryOf(lifetime, now());
    const expiresAt = this.#endOf(namespace, found, { author, expiresAt: asked }, change);
    const changed = { ...before, category: change.category ?? before.category, tags: change.tags ?? before.tags, expiresAt };
    if (sameContent(before, changed) && !(kind === 'fact' && shortens(before, { author, expiresAt }))) {
      const renewed = { ...changed, ...this.#renewedInDoubt(before, expiresAt) };
      rows.replace(namespace, kind, row, renewed);
      if (note && lifetime !== undefined) this.recordActivity(namespace, note);
      return this.#ends(renewed);
    }
    const updated = { ...changed, author, updatedAt: this.#dateOf(before, expiresAt) };
    this.#supersede(namespace, kind, row, before, updated);
    if (note) this.recordActivity(namespace, note, { outcome: outcomeOf(before, updated, now()) });
    return this.#ends(updated);
  }

  restoreForgotten(namespace: Namespace, { entry, versions, lastTombstone }: FactWithHistory, note: ActivityNote): boolean {
    return this.#inRoom(namespace, 'fact', () => {
      const { connection, keys, rows, now } = this.#deps;
      if (entry.expiresAt <= now() || rows.find(namespace, 'fact', entry.key)) return false;
      rows.insert(namespace, 'fact', this.#ends(entry));
      for (const version of versions.toReversed()) rows.insert(namespace, 'history', this.#ends(version));
      const secret = keys.tombstoneKey();
      // By row and not by time: an older tombstone can bear a later time, from when the clock was wrong.
      if (secret) connection.sql.deleteTombstonesAfter.run(tombstoneHash(secret, namespace, 'fact', entry.key), lastTombstone);
      this.recordActivity(namespace, note);
      return true;
    });
  }

  revert(namespace: Namespace, kind: Kind, key: string, unwanted: UndoRange, note?: ActivityNote): RevertOutcome {
    const { reader, forgetting, purgeSoon } = this.#deps;
    const found = reader.findLiving(namespace, kind, key);
    if (!found) return 'untouched';
    const { row, entry } = found;
    const reversal = planRevert(entry, kind === 'fact' ? reader.versions(namespace, row) : [], unwanted);
    if (!note) return reversal.what;
    if (reversal.what === 'removed') {
      const { subject, session = '' } = namespace;
      forgetting.run(subject, { kinds: [kind], key, session });
      purgeSoon();
      this.recordActivity(namespace, note);
    } else if (reversal.what === 'restored') {
      const back = restoredVersion(entry, reversal.to, this.#trustedNow());
      const before = this.#used(namespace, 'fact');
      this.#room.writes = 0;
      this.#supersede(namespace, kind, row, entry, back);
      // What filled a memory can be taken back in it, and takes no more room for that.
      for (const version of reversal.expendable) {
        if (this.#hasGrownTooMuch(namespace, 'fact', before)) this.#dropVersion(namespace, version);
      }
      this.#ends(back);
      this.recordActivity(namespace, note, { outcome: outcomeOf(undefined, back, this.#deps.now()) });
    }
    return reversal.what;
  }

  /** `at` is when it happened, if that was before now. */
  recordActivity(
    namespace: Namespace,
    note: ActivityNote,
    { outcome, at = this.#deps.now() }: { outcome?: WriteOutcome | undefined; at?: number } = {},
  ): void {
    this.#deps.rows.insert(namespace, 'activity', this.#ends(activityEntryOf(note, outcome, at)));
    this.#trim(namespace, 'activity');
  }

  /**
   * A date ahead of time marks an end of life that a clock in doubt has set; both are corrected when the clock is. Where the end
   * stays as it was, the date must not be ahead, or a correction would move that end too.
   */
  #dateOf({ updatedAt, expiresAt }: Entry, ends: number): number {
    return Math.max(ends === expiresAt ? this.#trustedNow() : this.#deps.now(), updatedAt + 1);
  }

  #renewedInDoubt(before: Entry, ends: number): { updatedAt: number } | undefined {
    const renewed = this.#deps.inDoubt() && ends !== before.expiresAt;
    return renewed ? { updatedAt: this.#dateOf(before, ends) } : undefined;
  }

  #trustedNow(): number {
    return Math.min(this.#deps.now(), this.#deps.trusted());
  }

  #endOf(
    namespace: Namespace,
    { row, entry }: { readonly row: EntryRow; readonly entry: Entry },
    ending: Pick<Entry, 'author' | 'expiresAt'>,
    { grace, graceOwn }: Grace,
  ): number {
    const { reader, now } = this.#deps;
    return expiryWithGrace(
      entry,
      () => reader.versions(namespace, row),
      { ...ending, ...(grace !== undefined && { grace }), ...(graceOwn && { graceOwn }) },
      now(),
    );
  }

  #trim(namespace: Namespace, kind: Kind): void {
    const { connection, rows, quota, purgeSoon } = this.#deps;
    const most = rowLimit(kind);
    if (!quota || most === Infinity) return;
    const id = connection.ensureNamespace(namespace);
    const surplus = connection.usageCounters.rows(id, kind) - most;
    if (surplus <= 0) return;
    const isShared = isSharedKind(kind);
    if (isShared && !this.#fairEviction.scan(namespace, kind)) return;
    if (surplus < TRIM) return;
    if (isShared) this.#fairEviction.evict(namespace, kind, surplus);
    else rows.deleteOldest(id, kind, surplus);
    purgeSoon();
  }

  /** While the clock is in doubt it may not have expired at all, and becomes a version that shows when the clock is put right. */
  #makeWay(namespace: Namespace, kind: Kind, found: EntryRow): void {
    const { connection, rows, inDoubt } = this.#deps;
    const doubtful = kind === 'fact' && inDoubt() ? rows.open(namespace, kind, found) : undefined;
    if (!doubtful) return rows.deleteWithVersions(connection.ensureNamespace(namespace), kind, found);
    rows.deleteRow(found);
    rows.insert(namespace, 'history', doubtful);
  }

  /** For a fact, what was said before goes to its history, which then may be too long. */
  #supersede(namespace: Namespace, kind: Kind, row: EntryRow, before: Entry, after: Entry): void {
    const { keys, rows, purgeSoon } = this.#deps;
    rows.replace(namespace, kind, row, after);
    let left = 1;
    if (kind === 'fact') {
      rows.insert(namespace, 'history', before);
      const [hash] = keys.ring.hashes(namespace, after.key);
      left = this.#evictVersions(namespace, hash, writerOf(after.author));
    }
    if (left > 0) purgeSoon();
  }

  /** `writer` wrote the present version, which counts as one it holds and is the last to go. */
  #evictVersions(namespace: Namespace, hash: Buffer | undefined, writer: string): number {
    const { connection, reader, rows } = this.#deps;
    const id = connection.ensureNamespace(namespace);
    const surplus = (connection.sql.countVersions.get(id, hash) as number) - HISTORY_VERSIONS;
    if (surplus <= 0) return 0;
    const oldestFirst = reader
      .writersOf(namespace, 'history', connection.sql.versions.all(id, hash, INCLUDE_EXPIRED) as EntryRow[])
      .toReversed();
    const evicted = fairEviction([...oldestFirst.map(({ writer: one }) => one), writer], surplus);
    for (const position of evicted) {
      const version = oldestFirst[position];
      if (version) rows.deleteRow(version);
    }
    return surplus;
  }

  #dropVersion(namespace: Namespace, { key, updatedAt }: Entry): void {
    const { connection, keys, rows, purgeSoon } = this.#deps;
    const [hash] = keys.ring.hashes(namespace, key);
    const versions = connection.sql.versions.all(connection.namespaceId(namespace), hash, INCLUDE_EXPIRED) as EntryRow[];
    for (const version of versions.filter((each) => each.updated_at === updatedAt)) rows.deleteRow(version);
    purgeSoon();
  }

  /**
   * Compared when all is written: a refusal takes everything of this caller back, the note too. What takes no more than
   * there was before is never refused, also to a subject that has too much. Far from its end nobody has to look again.
   */
  #inRoom<T>(namespace: Namespace, kind: Kind, write: () => T): T {
    const { quota, room } = this.#deps;
    if (!quota || !isQuotaKind(kind)) return write();
    if (kind === 'fact' && !room?.isLow && this.#fitsForCertain(namespace)) return write();
    const before = this.#used(namespace, kind);
    const result = write();
    if (room?.isLow && this.#used(namespace, kind).bytes > before.bytes) throw lowDiskSpace();
    const share = quotaOf(kind, quota);
    // What packs and pipelines keep may be longer than any fact.
    const fit = Math.min(share.facts - before.facts, Math.floor((share.bytes - before.bytes) / MOST_ADDED));
    if (kind === 'fact' && fit > 0) {
      this.#room = { subject: namespace.subject, writes: fit - 1 };
      return result;
    }
    const what = this.#hasGrownTooMuch(namespace, kind, before);
    if (what) throw quotaExceeded(kind, what, share);
    return result;
  }

  #fitsForCertain({ subject }: Namespace): boolean {
    if (this.#room.subject !== subject || this.#room.writes <= 0) return false;
    this.#room.writes -= 1;
    return true;
  }

  /** What a subject's facts take, without what has expired. */
  usage(subject: string): Quota {
    return this.#living(subject, 'fact', this.#deps.connection.usageCounters.usage(subject, 'fact'));
  }

  /** Undefined where there is room enough, or as much is taken as before. */
  #hasGrownTooMuch(namespace: Namespace, kind: QuotaKind, before: Quota): keyof Quota | undefined {
    const { quota } = this.#deps;
    if (!quota) return undefined;
    const share = quotaOf(kind, quota);
    const after = this.#used(namespace, kind);
    return (['facts', 'bytes'] as const).find((what) => after[what] > share[what] && after[what] > before[what]);
  }

  /** What has expired takes no place, swept or not; but it is looked for only where there may be too much. */
  #used({ subject }: Namespace, kind: QuotaKind): Quota {
    const { connection } = this.#deps;
    const used = connection.usageCounters.usage(subject, kind);
    return this.#exceeds(kind, used) ? this.#living(subject, kind, used) : used;
  }

  #living(subject: string, kind: QuotaKind, used: Quota): Quota {
    const { connection, now } = this.#deps;
    const gone = connection.usageCounters.expired(subject, kind, now());
    return { facts: used.facts - gone.facts, bytes: used.bytes - gone.bytes };
  }

  #exceeds(kind: QuotaKind, { facts, bytes }: Quota): boolean {
    const { quota } = this.#deps;
    const share = quota && quotaOf(kind, quota);
    return share !== undefined && (facts > share.facts || bytes > share.bytes);
  }

  /** Tells the sweeper when the entry goes. */
  #ends(entry: Entry): Entry {
    this.#deps.ends(entry.expiresAt);
    return entry;
  }
}
