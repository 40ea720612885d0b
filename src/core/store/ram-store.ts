import { Failure } from '../../contract/failure.ts';
import { QUOTA } from '../../contract/limits.ts';
import type { KeyState, StoreStatus } from '../../contract/status.ts';
import { clockStateOf } from '../time/clock-state.ts';
import type { Clock } from '../time/clock.ts';
import { Timekeeper } from '../time/timekeeper.ts';
import { activityEntryOf, outcomeOf } from './activity-note.ts';
import { ChangeNotifier } from './change-notifier.ts';
import { EntryEvents } from './entry-events.ts';
import { expiryOf, entryOf, isVersionCategory, sameContent } from './entry.ts';
import { expiryWithGrace, shortens } from './expiry-grace.ts';
import { sizeOf } from './fact-size.ts';
import { fairEviction, versionsAfter } from './fair-eviction.ts';
import { type QuotaKind, isQuotaKind, isSharedKind, rowLimit, quotaExceeded, quotaOf } from './quota.ts';
import {
  type EntryUpdate,
  type SpaceChange,
  type EntryCursor,
  type EntryDraft,
  type Entry,
  type EntryEvent,
  type ForgetResult,
  type Kind,
  type MemoryStore,
  type Namespace,
  type ActivityNote,
  type Overview,
  type EntryPage,
  type PageQuery,
  type PutResult,
  type Quota,
  type RevertOutcome,
  type Selection,
  type Space,
  type SpaceKind,
  STEP_BYTES,
  type SweepResult,
  type UndoRange,
  type FactWithHistory,
  type WriteOutcome,
} from './store.ts';
import { Sweeper } from './sweeper.ts';
import { planRevert, restoredVersion } from './undo.ts';
import { RamVault } from './vault.ts';

/** The oldest rows of a shared kind, among which the client with the most loses one. */
const TRIM_WINDOW = 1000 + 1;

interface Kept {
  /** Stands for the order in which entries came, as a row number does. */
  readonly row: number;
  readonly entry: Entry;
  /** Newest first. */
  readonly versions: readonly Entry[];
}

/** One kind of entry in one namespace. */
interface Shelf {
  readonly namespace: Namespace;
  readonly kind: SpaceKind;
  readonly kept: Map<string, Kept>;
}

/** While the clock is in doubt, it is looked at again this often. */
const REVIEW_MS = 3_600_000;
const AT_ONCE = 0;

const EPHEMERAL: KeyState = {
  at: 'ephemeral',
  remedy:
    'There is no key, so everything is gone when the program ends; make one with helmdeck-memory key init --file, or hand one in with HELMDECK_MEMORY_KEY, and start again.',
};

/** The memory of a program that has no key: it ends with the program, and says so. */
export class RamStore implements MemoryStore {
  readonly upkeep = undefined;
  readonly vault: RamVault;
  readonly #quota: Quota | undefined;
  readonly #clock: Clock;
  readonly #time: Timekeeper;
  readonly #sweeper: Sweeper;
  readonly #changes = new ChangeNotifier();
  readonly #journal = new EntryEvents();
  readonly #shelves = new Map<string, Shelf>();
  /** What each subject holds of what is counted, by kind and subject. */
  readonly #bytes = new Map<string, number>();
  #rows = 0;
  #closed = false;

  constructor(clock: Clock, quota?: Quota) {
    this.#quota = quota;
    this.#clock = clock;
    this.#time = new Timekeeper(clock, undefined, () => this.#sweeper.scheduleAt(AT_ONCE));
    // Finding what has expired costs more here than removing it.
    this.#sweeper = new Sweeper({ sweep: () => this.sweep(Infinity), now: () => this.now(), clock });
    this.vault = new RamVault({ step: (job) => this.#step(job), now: () => Math.min(this.now(), this.#time.trusted()) });
  }

  space(namespace: Namespace, kind: SpaceKind): Space {
    const shelf = (): Shelf => this.#shelf(namespace, kind);
    return {
      kind,
      put: (draft, note) => this.#step(() => this.#put(shelf(), draft, note)),
      change: (key, change, note) => this.#step(() => this.#change(shelf(), key, change, note)),
      get: (key) => this.#step(() => this.#living(shelf(), key)?.entry),
      page: (query) => this.#step(() => this.#page(shelf(), query)),
      count: (category) => this.#step(() => this.#list(shelf(), category).length),
      countExpiringBefore: (before) =>
        this.#step(() => this.#list(shelf()).filter(({ entry }) => entry.expiresAt < before).length),
      history: (key) => this.#step(() => this.#versions(shelf(), key)),
      overview: (most) => this.#step(() => this.#overview(shelf(), most)),
      restoreForgotten: (fact, _forgottenAt, note) => this.#step(() => this.#putBack(shelf(), fact, note)),
      revert: (key, unwanted, note) => this.#step(() => this.#revert(shelf(), key, unwanted, note)),
    };
  }

  namespaces(wanted: SpaceKind = 'fact'): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]> {
    return this.#step(() =>
      [...this.#shelves.values()]
        .filter(({ kind }) => kind === wanted)
        .map((shelf) => ({ namespace: shelf.namespace, count: this.#list(shelf).length }))
        .filter(({ count }) => count > 0),
    );
  }

  forget(subject: string, selection: Selection, note?: ActivityNote): Promise<ForgetResult> {
    return this.#step(() => {
      const doomed = this.#select(subject, selection);
      const deleted = this.#seen(doomed);
      for (const [shelf, { entry }] of doomed) this.#drop(shelf, entry.key);
      if (note && (deleted > 0 || selection.kinds.includes('activity'))) this.#keepNote({ subject }, note);
      return { deleted, purged: true, olderBackups: 0 };
    });
  }

  recordActivity(subject: string, note: ActivityNote): Promise<void> {
    return this.#step(() => this.#keepNote({ subject }, note));
  }

  countMatching(subject: string, selection: Selection): Promise<number> {
    return this.#step(() => this.#seen(this.#select(subject, selection)));
  }

  async sweep(limit: number): Promise<SweepResult> {
    await this.#time.review();
    return this.#step(() => {
      if (this.#time.inDoubt) return { removed: 0, next: this.now() + this.#untilReview() };
      let removed = 0;
      let next = Infinity;
      for (const shelf of this.#shelves.values()) {
        for (const { entry, ...kept } of shelf.kept.values()) {
          const versions = kept.versions.filter(({ expiresAt }) => expiresAt > this.now());
          if (entry.expiresAt > this.now() || removed === limit) {
            if (versions.length < kept.versions.length) this.#set(shelf, entry.key, { ...kept, entry, versions });
            next = [entry, ...versions].reduce((earliest, { expiresAt }) => Math.min(earliest, expiresAt), next);
          } else {
            this.#drop(shelf, entry.key);
            removed += 1;
          }
        }
      }
      return next === Infinity ? { removed } : { removed, next };
    });
  }

  usage(subject: string): Promise<{ readonly used: Quota; readonly most: Quota }> {
    return this.#step(() => {
      const facts = [...this.#shelves.values()].filter(({ kind, namespace }) => kind === 'fact' && namespace.subject === subject);
      const living = facts.flatMap((shelf) => this.#list(shelf));
      const bytes = living.reduce((sum, one) => sum + this.#sizeOf(one), 0);
      return { used: { facts: living.length, bytes }, most: this.#quota ?? QUOTA };
    });
  }

  status(): StoreStatus {
    return {
      kept: 'memory',
      key: EPHEMERAL,
      file: { at: 'open' },
      quarantined: 0,
      clock: clockStateOf(this.#time.read()),
      rotation: { at: 'none' },
    };
  }

  lock(): void {
    throw new Failure('invalid_input', 'This memory has no key that could be taken away; end the program to lose what it holds.');
  }

  unlock(): Promise<KeyState> {
    return this.#step(() => EPHEMERAL);
  }

  now(): number {
    return this.#time.now();
  }

  trustClock(): Promise<void> {
    return this.#step(() => {
      this.#time.trustWall();
      for (const { namespace, kind } of this.#shelves.values()) this.#changes.notify({ namespace, kind });
      this.#sweeper.scheduleAt(AT_ONCE);
    });
  }

  countExpiredFacts(): Promise<number> {
    return this.#step(() => {
      const now = this.#clock.now();
      const facts = [...this.#shelves.values()].filter(({ kind }) => kind === 'fact');
      return facts.flatMap(({ kept }) => [...kept.values()]).filter(({ entry }) => entry.expiresAt <= now).length;
    });
  }

  #untilReview(): number {
    const reading = this.#time.read();
    return (reading.at === 'ahead' && reading.reviewIn) || REVIEW_MS;
  }

  onEntryEvent(hear: (change: EntryEvent) => void): Disposable {
    return this.#journal.subscribe(hear);
  }

  /** Its key state never changes. */
  onKeyChange(): Disposable {
    return { [Symbol.dispose]: () => undefined };
  }

  onChange(hear: (changed: SpaceChange) => void): Disposable {
    return this.#changes.subscribe(hear);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#sweeper.stop();
    this.#shelves.clear();
    return Promise.resolve();
  }

  #put(shelf: Shelf, draft: EntryDraft, note: ActivityNote | undefined): PutResult {
    const before = this.#living(shelf, draft.key);
    const fresh = entryOf(draft, this.now());
    if (!before) {
      // A fact that only seems expired becomes a version, and shows when the clock is corrected.
      const hidden = this.#time.inDoubt && shelf.kind === 'fact' ? shelf.kept.get(draft.key) : undefined;
      const versions = hidden ? versionsAfter(hidden, fresh) : [];
      this.#requireRoom(shelf, fresh, versions);
      // What had expired goes with its place in the order.
      this.#set(shelf, draft.key, undefined);
      this.#keep(shelf, fresh, versions);
      this.#trim(shelf);
      if (note) this.#keepNote(shelf.namespace, note);
      return { status: 'created', entry: fresh };
    }
    const { entry, versions } = before;
    const expiresAt = this.#endOf(before, fresh, draft.grace);
    const shortened = shelf.kind === 'fact' && shortens(entry, { ...fresh, expiresAt });
    if (sameContent(entry, fresh) && !shortened) {
      const renewed = { ...entry, expiresAt };
      this.#keep(shelf, renewed, versions);
      return { status: 'unchanged', entry: renewed };
    }
    const updated = { ...fresh, expiresAt, createdAt: entry.createdAt, updatedAt: Math.max(this.now(), entry.updatedAt + 1) };
    this.#requireRoom(shelf, updated, versionsAfter(before, updated));
    this.#supersede(shelf, before, updated);
    if (note) this.#keepNote(shelf.namespace, note, outcomeOf(entry, updated, this.now()));
    return { status: 'updated', entry: updated };
  }

  #change(shelf: Shelf, key: string, change: EntryUpdate, note: ActivityNote | undefined): Entry | undefined {
    const before = this.#living(shelf, key);
    if (!before) return undefined;
    const { entry, versions } = before;
    const { author, lifetime, grace } = change;
    const asked = lifetime === undefined ? entry.expiresAt : expiryOf(lifetime, this.now());
    const expiresAt = this.#endOf(before, { author, expiresAt: asked }, grace);
    const changed = { ...entry, category: change.category ?? entry.category, tags: change.tags ?? entry.tags, expiresAt };
    if (sameContent(entry, changed) && !(shelf.kind === 'fact' && shortens(entry, { author, expiresAt }))) {
      this.#keep(shelf, changed, versions);
      if (note && lifetime !== undefined) this.#keepNote(shelf.namespace, note);
      return changed;
    }
    const updated = { ...changed, author, updatedAt: Math.max(this.now(), entry.updatedAt + 1) };
    this.#requireRoom(shelf, updated, versionsAfter(before, updated));
    this.#supersede(shelf, before, updated);
    if (note) this.#keepNote(shelf.namespace, note, outcomeOf(entry, updated, this.now()));
    return updated;
  }

  #endOf({ entry, versions }: Kept, ending: Pick<Entry, 'author' | 'expiresAt'>, grace: number | undefined): number {
    return expiryWithGrace(entry, () => versions, { ...ending, grace }, this.now());
  }

  #putBack(shelf: Shelf, { entry, versions }: FactWithHistory, note: ActivityNote): boolean {
    if (entry.expiresAt <= this.now() || shelf.kept.has(entry.key)) return false;
    this.#requireRoom(shelf, entry, versions);
    this.#keep(shelf, entry, versions);
    this.#keepNote(shelf.namespace, note);
    return true;
  }

  #revert(shelf: Shelf, key: string, unwanted: UndoRange, note: ActivityNote | undefined): RevertOutcome {
    const before = this.#living(shelf, key);
    if (!before) return 'untouched';
    const reversal = planRevert(before.entry, this.#versions(shelf, key), unwanted);
    if (note && reversal.what === 'removed') {
      this.#drop(shelf, key);
      this.#keepNote(shelf.namespace, note);
    }
    if (note && reversal.what === 'restored') {
      const { to, expendable: spare } = reversal;
      const size = this.#sizeOf(before);
      const tooBig = (): boolean => {
        const after = this.#living(shelf, key);
        return after !== undefined && this.#sizeOf(after) > size && !this.#fits(shelf.namespace.subject, 'fact', 'bytes', 0);
      };
      const back = restoredVersion(before.entry, to, this.now());
      this.#supersede(shelf, before, back);
      // What filled a memory can be taken back in it, and takes no more room for that.
      for (const version of spare) if (tooBig()) this.#dropVersion(shelf, version);
      this.#keepNote(shelf.namespace, note, outcomeOf(undefined, back, this.now()));
    }
    return reversal.what;
  }

  #supersede(shelf: Shelf, before: Kept, after: Entry): void {
    this.#keep(shelf, after, shelf.kind === 'fact' ? versionsAfter(before, after) : []);
  }

  #dropVersion(shelf: Shelf, { key, updatedAt }: Entry): void {
    const kept = shelf.kept.get(key);
    if (kept) this.#set(shelf, key, { ...kept, versions: kept.versions.filter((version) => version.updatedAt !== updatedAt) });
  }

  #keepNote(namespace: Namespace, note: ActivityNote, outcome?: WriteOutcome): void {
    const shelf = this.#shelf(namespace, 'activity');
    this.#keep(shelf, activityEntryOf(note, outcome, this.now()), []);
    this.#trim(shelf);
  }

  #trim(shelf: Shelf): void {
    if (shelf.kept.size <= rowLimit(shelf.kind)) return;
    const oldest = [...shelf.kept.values().take(TRIM_WINDOW)].map(({ entry }) => entry);
    const [evicted = 0] = isSharedKind(shelf.kind)
      ? fairEviction(
          oldest.map(({ author }) => author.client),
          1,
        )
      : [];
    const entry = oldest[evicted];
    if (entry) this.#drop(shelf, entry.key);
  }

  #keep(shelf: Shelf, entry: Entry, versions: readonly Entry[]): void {
    const row = shelf.kept.get(entry.key)?.row ?? (this.#rows += 1);
    this.#set(shelf, entry.key, { row, entry, versions });
    this.#sweeper.scheduleAt([entry, ...versions].reduce((earliest, { expiresAt }) => Math.min(earliest, expiresAt), Infinity));
    this.#changes.notify(shelf);
  }

  #drop(shelf: Shelf, key: string): void {
    this.#set(shelf, key, undefined);
    this.#changes.notify(shelf);
  }

  #set(shelf: Shelf, key: string, kept: Kept | undefined): void {
    if (isQuotaKind(shelf.kind)) {
      const name = `${shelf.kind} ${shelf.namespace.subject}`;
      this.#bytes.set(name, (this.#bytes.get(name) ?? 0) + sizeOf(kept) - sizeOf(shelf.kept.get(key)));
    }
    const before = shelf.kept.get(key);
    if (kept) {
      const { namespace, kind } = shelf;
      shelf.kept.set(key, kept);
      this.#journal.record({ what: 'kept', namespace, kind, row: kept.row, entry: kept.entry });
    } else if (before) {
      shelf.kept.delete(key);
      this.#journal.record({ what: 'gone', row: before.row });
    }
    this.#journal.publish();
  }

  /** What takes no more than there was before is never refused, also to a subject that has too much. */
  #requireRoom(shelf: Shelf, entry: Entry, versions: readonly Entry[]): void {
    const { kind, namespace } = shelf;
    if (!this.#quota || !isQuotaKind(kind)) return;
    const share = quotaOf(kind, this.#quota);
    const { subject } = namespace;
    const before = this.#living(shelf, entry.key);
    const more = this.#sizeOf({ entry, versions }) - (before ? this.#sizeOf(before) : 0);
    if (!before && !this.#fits(subject, kind, 'facts', 1)) throw quotaExceeded(kind, 'facts', share);
    if (more > 0 && !this.#fits(subject, kind, 'bytes', more)) throw quotaExceeded(kind, 'bytes', share);
  }

  /** What has expired takes no place, swept or not; but it is looked for only where there may be too much. */
  #fits(subject: string, counted: QuotaKind, what: keyof Quota, more: number): boolean {
    const most = this.#quota ? quotaOf(counted, this.#quota)[what] : Infinity;
    const shelves = [...this.#shelves.values()].filter(
      ({ kind, namespace }) => kind === counted && namespace.subject === subject,
    );
    const kept =
      what === 'bytes'
        ? (this.#bytes.get(`${counted} ${subject}`) ?? 0)
        : shelves.reduce((sum, shelf) => sum + shelf.kept.size, 0);
    if (kept + more <= most) return true;
    const living = shelves.flatMap((shelf) => this.#list(shelf));
    const taken = what === 'bytes' ? living.reduce((sum, one) => sum + this.#sizeOf(one), 0) : living.length;
    return taken + more <= most;
  }

  /** Of what has not expired of it. */
  #sizeOf({ entry, versions }: FactWithHistory): number {
    return sizeOf({ entry, versions: versions.filter(({ expiresAt }) => expiresAt > this.now()) });
  }

  #shelf(namespace: Namespace, kind: SpaceKind): Shelf {
    const name = JSON.stringify([kind, namespace.subject, namespace.session ?? '']);
    const known = this.#shelves.get(name);
    if (known) return known;
    const made = { namespace, kind, kept: new Map<string, Kept>() };
    this.#shelves.set(name, made);
    return made;
  }

  #living(shelf: Shelf, key: string): Kept | undefined {
    const kept = shelf.kept.get(key);
    return kept && kept.entry.expiresAt > this.now() ? kept : undefined;
  }

  #versions(shelf: Shelf, key: string): readonly Entry[] {
    return this.#living(shelf, key)?.versions.filter(({ expiresAt }) => expiresAt > this.now()) ?? [];
  }

  #list({ kept }: Shelf, category?: string): Kept[] {
    return [...kept.values()].filter(
      ({ entry }) => entry.expiresAt > this.now() && (category === undefined || entry.category === category),
    );
  }

  #page(shelf: Shelf, { sort, limit, category, expiresBefore, matches, bytes = STEP_BYTES, after }: PageQuery): EntryPage {
    const placeOf = ({ entry, row }: Kept): EntryCursor => ({ at: sort === 'expires' ? entry.expiresAt : entry.updatedAt, row });
    // Newest first runs down, the others run up.
    const direction = sort === 'updated' ? -1 : 1;
    const compare = (one: EntryCursor, other: EntryCursor): number => direction * (one.at - other.at || one.row - other.row);
    const rest = this.#list(shelf, category)
      .filter(({ entry }) => expiresBefore === undefined || entry.expiresAt < expiresBefore)
      .filter(({ entry }) => matches === undefined || matches(entry))
      .filter((kept) => after === undefined || compare(placeOf(kept), after) > 0)
      .toSorted((one, other) => compare(placeOf(one), placeOf(other)));
    let held = 0;
    const tooLong = rest.findIndex(({ entry }) => (held += entry.value.length) >= bytes);
    const shown = rest.slice(0, tooLong === -1 ? limit : Math.min(limit, tooLong + 1));
    const last = shown.at(-1);
    const entries = shown.map(({ entry }) => entry);
    const rows = shown.map(({ row }) => row);
    return last && rest.length > shown.length ? { entries, rows, next: placeOf(last) } : { entries, rows };
  }

  #overview(shelf: Shelf, most: { readonly categories: number; readonly keys: number }): Overview {
    const newest = this.#page(shelf, { sort: 'updated', limit: Infinity, bytes: Infinity }).entries;
    const groups = [...Map.groupBy(newest, ({ category }) => category)].toSorted(([one], [other]) => (one < other ? -1 : 1));
    return {
      categories: groups.slice(0, most.categories).map(([name, entries]) => ({
        name,
        count: entries.length,
        recent: entries.slice(0, most.keys).map(({ key }) => key),
      })),
      more: Math.max(0, groups.length - most.categories),
    };
  }

  #select(subject: string, { kinds, category, key, matches, session }: Selection): [Shelf, Kept][] {
    return [...this.#shelves.values()]
      .filter(({ namespace }) => namespace.subject === subject)
      .filter(({ namespace }) => session === undefined || (namespace.session ?? '') === session)
      .filter(({ kind }) => kinds.includes(kind))
      .flatMap((shelf) => [...shelf.kept.values()].map((kept): [Shelf, Kept] => [shelf, kept]))
      .filter(
        ([{ kind }, { entry }]) =>
          (category === undefined || entry.category === category) &&
          (key === undefined || entry.key === key) &&
          (matches === undefined || matches(entry, kind)),
      );
  }

  #seen(selected: readonly [Shelf, Kept][]): number {
    const unseen: Kind = 'activity';
    return selected.filter(
      ([{ kind }, { entry }]) => kind !== unseen && !isVersionCategory(entry.category) && entry.expiresAt > this.now(),
    ).length;
  }

  async #step<T>(run: () => T): Promise<T> {
    this.#requireOpen();
    return run();
  }

  #requireOpen(): void {
    if (this.#closed) throw new Failure('store_unavailable', 'The memory has been closed; start Helmdeck Memory again.');
  }
}
