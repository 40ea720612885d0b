import type { KeyState, StoreStatus } from '../../contract/status.ts';

/**
 * Kinds of entries. Each kind has its own key space, so an entry of one kind is never read as another kind, even if the keys are
 * equal.
 */
export type Kind = 'fact' | 'history' | 'audit' | 'cache' | 'pack' | 'activity';

/**
 * Kinds that callers can address. History is excluded, because the store itself writes it and callers read it through its fact.
 */
export type SpaceKind = Exclude<Kind, 'history'>;

/** The memory of a subject, or of one of the subject's pack sessions. Both names come from the token, never from a request. */
export interface Namespace {
  readonly subject: string;
  readonly session?: string;
}

/** Who wrote an entry. Helmdeck Memory sets these fields; a request cannot. */
export interface Author {
  readonly client: string;
  /** How the write was made: over an interface, such as `rest` or `mcp`, or by `undo`. */
  readonly origin: string;
  /** Id of the token that the client used, or an empty string. */
  readonly token: string;
  /** The client that wrote the pipeline, if `client` wrote the entry by running another client's pipeline. */
  readonly definedBy?: string;
}

export interface EntryDraft {
  readonly key: string;
  readonly value: string;
  readonly category: string;
  readonly tags: readonly string[];
  readonly author: Author;
  /** Milliseconds from now until the entry expires. */
  readonly lifetime: number;
  /**
   * Minimum milliseconds that a fact with versions of another client must remain stored after the write. If absent, the write can
   * shorten the fact's lifetime to any value.
   */
  readonly grace?: number;
  /** Whether `grace` also applies to a fact that has only versions by the writer. */
  readonly graceOwn?: boolean;
  /**
   * Key of another fact of the same namespace that is outdated by this one. That fact moves to the history of this one, with its own
   * history.
   */
  readonly supersedes?: string;
}

/** A key that a version had, before a fact under another key superseded the fact under this key. */
export interface FormerKey {
  readonly key: string;
  /** Update time of the write that superseded the fact. */
  readonly until: number;
  /** Row number of the fact, if this version was its current version. Absent for a version from its history. */
  readonly row?: number;
}

/** A stored entry. Times are milliseconds since 1970. */
export interface Entry {
  readonly key: string;
  readonly value: string;
  readonly category: string;
  readonly tags: readonly string[];
  readonly author: Author;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number;
  /**
   * Only for an earlier version that belonged to a superseded fact: the keys that it had, last key first. `key` is the key of the fact
   * that has the version in its history now.
   */
  readonly formerKeys?: readonly FormerKey[];
}

type PutStatus = 'created' | 'updated' | 'unchanged';

export interface PutResult {
  readonly status: PutStatus;
  readonly entry: Entry;
}

/** Changes to an entry. Absent fields leave the entry unchanged. */
export interface EntryUpdate {
  readonly category?: string;
  readonly tags?: readonly string[];
  readonly lifetime?: number;
  /** Same meaning as `grace` of `EntryDraft`. */
  readonly grace?: number;
  /** The caller, who becomes the author only if the change makes a new version. */
  readonly author: Author;
}

export interface PageQuery {
  /** `updated`: most recently updated first. `oldest`: least recently updated first. `expires`: first to expire first. */
  readonly sort: 'updated' | 'expires' | 'oldest';
  readonly limit: number;
  readonly category?: string;
  /** Only entries that expire before this time, in milliseconds since 1970. */
  readonly expiresBefore?: number;
  /** Filter, called with each decrypted entry. The page contains only entries for which the filter returns true. */
  readonly matches?: (entry: Entry) => boolean;
  /**
   * Approximate number of sealed bytes to decrypt for one page; at least one entry is always decrypted. `STEP_BYTES` by default.
   */
  readonly bytes?: number;
  readonly uncached?: boolean;
  /** The `next` cursor of the previous page. */
  readonly after?: EntryCursor;
}

/** A position in a sorted list of entries. The position stays valid when entries are added or deleted. */
export interface EntryCursor {
  readonly at: number;
  readonly row: number;
}

/** Maximum sealed bytes that one step decrypts, so that long entries do not delay other requests. */
export const STEP_BYTES = 64 * 1024;

/** One page of entries. A page can have fewer entries than the limit even if another page follows. */
export interface EntryPage {
  readonly entries: readonly Entry[];
  /** Row numbers of `entries`, in the same order. */
  readonly rows: readonly number[];
  /** Absent on the last page. */
  readonly next?: EntryCursor;
}

/**
 * An entry for the activity record, committed in the same transaction as the write or forget that it describes. Each note has a
 * unique key.
 */
export interface ActivityNote extends EntryDraft {
  /** Computes the value to store from the outcome of the write. The computed value replaces `value`. */
  readonly valueFor?: (outcome: WriteOutcome) => string;
}

/** Details of a write, known only to the store, for the activity note. */
export interface WriteOutcome {
  /**
   * Update time of the fact, if later than the time of the note. Several writes within one millisecond get increasing update times.
   */
  readonly written?: number;
  /** The old and new expiry times, if the write shortened the lifetime of another client's fact. */
  readonly shortened?: { readonly from: number; readonly to: number };
}

export interface FactWithHistory {
  readonly entry: Entry;
  /** Newest first. */
  readonly versions: readonly Entry[];
  /** Row number of the fact. Facts written in the same millisecond are listed in the order of their row numbers. */
  readonly row: number;
  /**
   * Row number of the memory's newest tombstone at the time when the fact was read. Restoring the fact deletes only tombstones that
   * were written later.
   */
  readonly lastTombstone: number;
}

/** Categories, counts and keys of the entries of one kind in a namespace. Contains no values. */
export interface Overview {
  /** The first categories in alphabetical order. */
  readonly categories: readonly {
    readonly name: string;
    readonly count: number;
    /** Newest first. */
    readonly recent: readonly string[];
  }[];
  /** Number of further categories, not listed in `categories`. */
  readonly more: number;
}

/** Selects which writes of a client to undo: those between `since` and `until`, both inclusive, in milliseconds since 1970. */
export interface UndoRange {
  readonly client: string;
  readonly since: number;
  /** If absent, the range ends now. */
  readonly until?: number;
}

/**
 * `removed`: the client had created the fact, so the fact was deleted. `restored`: the version before the client's writes is
 * current again. `skipped`: that version no longer exists, so the fact was not changed. `untouched`: another client wrote the
 * last version, so the fact was not changed.
 */
export type RevertOutcome = 'removed' | 'restored' | 'skipped' | 'untouched';

export interface RevertResult {
  readonly what: RevertOutcome;
  /** Keys of the superseded facts that are facts of their own again. */
  readonly returned: readonly string[];
}

/** The value that a write replaces. Undefined if the write must create the entry. */
export interface ExpectedValue {
  readonly value: string | undefined;
}

/** The entry was written by another call after it was read. Read it again. */
export class EntryChanged extends Error {}

/**
 * Accesses the entries of one kind in one namespace, and no other entries. Expired entries are never returned or counted, even
 * before the sweep deletes them. When the promise of a write resolves, the write is durable.
 */
export interface Space {
  readonly kind: SpaceKind;
  /**
   * Stores the draft under its key. The replaced version of a fact moves to its history. If the entry already has the same
   * content, only the expiry changes, and no note is written. Exception: if the write makes another client's fact expire sooner,
   * the earlier version moves to the history, with its later expiry. With `expected`, throws `EntryChanged` and writes nothing if
   * the value under the key is not the expected one.
   */
  put(draft: EntryDraft, note?: ActivityNote, expected?: ExpectedValue): Promise<PutResult>;
  get(key: string): Promise<Entry | undefined>;
  /**
   * Changes the entry with this key. Undefined if the entry does not exist. A new version is made under the same conditions as for
   * `put`.
   */
  change(key: string, change: EntryUpdate, note?: ActivityNote): Promise<Entry | undefined>;
  page(query: PageQuery): Promise<EntryPage>;
  count(category?: string): Promise<number>;
  countExpiringBefore(before: number): Promise<number>;
  /** Returns the earlier versions of a fact, newest first. */
  history(key: string): Promise<readonly Entry[]>;
  /**
   * Lists categories, counts and recent keys. The result is always exact, and repeated calls are cheap, because the result comes
   * from counters and cached keys.
   */
  overview(most: { readonly categories: number; readonly keys: number }): Promise<Overview>;
  /** Reads a fact with its history, for `restoreForgotten`. Call it before forgetting the fact. */
  withHistory(key: string): Promise<FactWithHistory | undefined>;
  /**
   * Restores a forgotten fact exactly as it was. Returns false if another fact is stored under its key, or if the fact has expired.
   * Also deletes the fact's tombstones, so that restoring a backup later does not delete the fact again.
   */
  restoreForgotten(fact: FactWithHistory, note: ActivityNote): Promise<boolean>;
  /** Undoes a client's writes to one entry. If `note` is absent, changes nothing and only returns what would happen. */
  revert(key: string, unwanted: UndoRange, note?: ActivityNote): Promise<RevertResult>;
}

/** Selects the entries to forget, in a subject's own namespace and in the namespaces of its sessions. */
export interface Selection {
  readonly kinds: readonly Kind[];
  /** Only entries of this category. Works without the master key, because categories are not encrypted. */
  readonly category?: string;
  /** Only the entry with this key. Needs the master key. */
  readonly key?: string;
  /** Filter that is called with each decrypted entry. Needs the master key. */
  readonly matches?: (entry: Entry, kind: Kind) => boolean;
  readonly session?: string;
}

/** Called and awaited between two slices of a long task, so that other requests can run. */
export type YieldTurn = () => Promise<unknown>;

export interface ForgetResult {
  /** Number of deleted entries that were visible to callers. Earlier versions of forgotten facts are not counted. */
  readonly deleted: number;
  /** True if no byte of the deleted entries is left in the database file or its log. */
  readonly purged: boolean;
  /** Why `purged` is false, if trying again would not change it: a database server keeps copies that no client can erase. */
  readonly reason?: 'database_copies';
  /**
   * Number of backups, which can still contain sealed copies of the entries. Restoring one of these backups deletes the entries
   * again.
   */
  readonly olderBackups: number;
}

export interface Quota {
  readonly facts: number;
  /** Sealed bytes of the facts and their history. */
  readonly bytes: number;
}

/** Event: entries of this kind were added, changed or deleted in this namespace. */
export interface SpaceChange {
  readonly namespace: Namespace;
  readonly kind: SpaceKind;
}

/**
 * `stored`: an entry was stored or changed. Its row number identifies the entry until the entry is deleted. `deleted`: an entry was
 * deleted. `reset`: the memory was locked or its file was reopened, so listeners must discard all entries and read them again.
 */
export type EntryEvent =
  | { readonly what: 'stored'; readonly namespace: Namespace; readonly kind: Kind; readonly row: number; readonly entry: Entry }
  | { readonly what: 'deleted'; readonly row: number }
  | { readonly what: 'reset' };

/** Named texts that Helmdeck Memory stores for itself, encrypted like entries. */
export interface Vault {
  read(name: string): Promise<string | undefined>;
  write(name: string, text: string): Promise<void>;
  /**
   * Changes a text in one transaction, so that no other write comes in between. `known` is undefined if there is no text that can be
   * read. `change` may be called again, so it must have no effects. Returns the stored text.
   */
  update(name: string, change: (known: string | undefined) => string): Promise<string>;
  delete(name: string): Promise<void>;
  /** Lists all names, which are not encrypted. */
  names(): Promise<readonly string[]>;
  /**
   * Revokes a token permanently. Works without the master key, and restoring a backup does not undo the revocation. `until` is the
   * token's expiry time.
   */
  revokeToken(id: string, until: number): Promise<void>;
  revokedTokens(): Promise<readonly string[]>;
  /**
   * Returns a number that is different after another process has changed the vault. Absent if only this process can change it. A
   * caller that keeps texts in RAM must compare the number before it uses them.
   */
  readonly revision?: () => Promise<number>;
  /** Calls `listener` soon after another process has changed the vault. Absent if only this process can change it. */
  readonly onForeignChange?: (listener: () => void) => Disposable;
}

/** A fact that has no vector of the model in use. */
export interface UnembeddedFact {
  readonly row: number;
  readonly entry: Entry;
}

export interface FactVector {
  /** Row number of the fact. */
  readonly row: number;
  /** Update time of the fact when the vector was made. */
  readonly version: number;
  /** The encoded vectors of the fact's windows. */
  readonly vector: Uint8Array;
}

/**
 * Stores one encoded vector for each fact, encrypted like the fact and bound to its row, version and model. A vector is deleted
 * together with its fact and when the fact changes; a renewal keeps it. A vector with a broken seal is deleted, counted as
 * quarantined, and made again. A vector of another model counts as missing.
 */
export interface FactVectors {
  /**
   * Returns the next facts without a vector of this model, newest first. One call reads a limited number of rows, so `facts` can be
   * empty even if another page follows. `next` is absent on the last page.
   */
  missing(
    namespace: Namespace,
    model: string,
    after?: EntryCursor,
  ): Promise<{ readonly facts: readonly UnembeddedFact[]; readonly next?: EntryCursor }>;
  /** Returns the vectors of these rows, and the facts among them that have none. Skips rows that are not facts of the namespace. */
  read(
    namespace: Namespace,
    model: string,
    rows: readonly number[],
  ): Promise<{ readonly facts: readonly UnembeddedFact[]; readonly vectors: readonly FactVector[] }>;
  /** Stores vectors. Skips facts that were changed or deleted since they were read. Returns the row numbers of the others. */
  put(
    namespace: Namespace,
    model: string,
    embedded: readonly (UnembeddedFact & Pick<FactVector, 'vector'>)[],
  ): Promise<readonly number[]>;
  /** Returns the next vectors before a row number, those of the last rows first. `next` is absent on the last page. */
  page(
    namespace: Namespace,
    model: string,
    before?: number,
  ): Promise<{ readonly vectors: readonly FactVector[]; readonly next?: number }>;
  count(namespace: Namespace, model: string): Promise<number>;
  /** Deletes all vectors of all models. Works without the master key. */
  clear(): Promise<void>;
}

export interface SweepResult {
  readonly removed: number;
  readonly next?: number;
}

/**
 * Stores entries. All methods that read or write entries are asynchronous, so that a database server could replace the SQLite
 * file. An entry with a broken seal is omitted from results and counted; all other entries stay readable.
 */
export interface MemoryStore extends AsyncDisposable {
  space(namespace: Namespace, kind: SpaceKind): Space;
  /** Lists the namespaces that contain entries of this kind (facts by default), each with its number of entries. */
  namespaces(kind?: SpaceKind): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]>;
  /**
   * Deletes entries permanently, in slices, and resolves when their bytes are purged. All matching entries that existed at the
   * start are deleted; an entry written during the forget is deleted only if a slice reaches it. If a slice fails, earlier
   * slices stay deleted, and the next call deletes the rest. A selection by kind and category works without the master key, so
   * entries can be forgotten even if that key is lost.
   */
  forget(subject: string, selection: Selection, note?: ActivityNote, yieldTurn?: YieldTurn): Promise<ForgetResult>;
  countMatching(subject: string, selection: Selection, yieldTurn?: YieldTurn): Promise<number>;
  /**
   * Returns the storage that a subject uses, including earlier versions, and the subject's quota. Works without the master key.
   */
  usage(subject: string): Promise<{ readonly used: Quota; readonly most: Quota }>;
  /**
   * Adds a note to a subject's activity record, about an action that is not a write. While the memory is locked or its disk is
   * full, the note waits in RAM.
   */
  recordActivity(subject: string, note: ActivityNote): Promise<void>;
  sweep(limit: number): Promise<SweepResult>;
  /**
   * Publishes what other processes have committed, so that every write that was acknowledged before the call is visible in RAM.
   * Absent if only this process can write.
   */
  readonly refresh?: () => Promise<void>;
  status(): StoreStatus;
  /** Locks the memory: drops the key and all decrypted entries. Until `unlock`, calls fail with the reason `why`. */
  lock(why?: string): void;
  /** Reads the key sources again, even after `lock`. */
  unlock(): Promise<KeyState>;
  /** Returns the current time of the store's clock, in milliseconds since 1970. */
  now(): number;
  /** Returns the clock that `trustClock` accepts. Absent if it is the clock of this machine. */
  readonly wall?: () => number;
  /**
   * Accepts the machine's clock because the owner confirmed it. Entries that are expired by this clock can then be deleted, and all
   * other entries are visible again.
   */
  trustClock(): Promise<void>;
  /** Counts the facts of all subjects that are expired by the machine's clock but still in the file. */
  countExpiredFacts(): Promise<number>;
  /**
   * Calls `listener` soon after changes are durable, at most once per space in one event loop turn. The expiry of an entry is
   * also a change.
   */
  onChange(listener: (changed: SpaceChange) => void): Disposable;
  /** Calls `listener` after the key became available, was lost or was locked. */
  onKeyChange(listener: () => void): Disposable;
  /** Calls `listener` for each changed entry, in commit order and before the writer receives its response. */
  onEntryEvent(listener: (event: EntryEvent) => void): Disposable;
  readonly vault: Vault;
  readonly vectors: FactVectors;
  /** Undefined for a memory that is only in RAM. */
  readonly upkeep: Upkeep | undefined;
}

export interface Backup {
  readonly file: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface BackupResult extends Backup {
  /** Number of entries with a broken seal, which the backup copies unchanged. */
  readonly broken: number;
}

export interface VerificationReport {
  readonly entries: number;
  /** Number of entries with a broken seal. */
  readonly broken: number;
  readonly structure: readonly string[];
}

/** Maintenance commands of the owner. Available only for a memory that is stored in a file. */
export interface Upkeep {
  /** Seals all entries with a new master key. */
  rotate(): Promise<void>;
  /**
   * Creates a recovery key, which opens this memory on another machine or after the key source is lost. The recovery key is shown
   * once and never stored. It replaces the previous recovery key, which no longer works.
   */
  makeRecoveryKey(): Promise<string>;
  /**
   * Writes a complete copy of the memory, with its tombstones and encrypted like the original, and verifies every row of the copy.
   */
  backup(): Promise<BackupResult>;
  readonly recoverable: boolean;
  /** Newest first. */
  backups(): readonly Backup[];
  /** Checks the seal of every entry and the structure of the file. */
  verify(): Promise<VerificationReport>;
}
