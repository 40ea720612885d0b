import type { KeyState, StoreStatus } from '../../contract/status.ts';

/** Separate key spaces. Whatever its key is, an entry of one kind is never read as another kind. */
export type Kind = 'fact' | 'history' | 'audit' | 'cache' | 'pack' | 'activity';

/** The store writes history itself, and callers read it through its fact. */
export type SpaceKind = Exclude<Kind, 'history'>;

/** The memory of a subject, or of one of its pack sessions. It follows from the token, never from a request. */
export interface Namespace {
  readonly subject: string;
  readonly session?: string;
}

/** Who wrote an entry. The program sets it, never a request. */
export interface Author {
  readonly client: string;
  readonly transport: string;
  /** The id of the token that was used, or an empty string. */
  readonly token: string;
  /** The client whose definition, such as a pipeline, made the client above write this. */
  readonly definedBy?: string;
}

/** A new entry as the caller passes it in. */
export interface EntryDraft {
  readonly key: string;
  readonly value: string;
  readonly category: string;
  readonly tags: readonly string[];
  readonly author: Author;
  /** In milliseconds, from now. */
  readonly lifetime: number;
  /**
   * Milliseconds for which the write must keep a fact that has versions of another client. If absent, the write may shorten the
   * fact to any lifetime.
   */
  readonly grace?: number;
  /** Whether `grace` applies to the writer's own versions too. */
  readonly graceOwn?: boolean;
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
}

type PutStatus = 'created' | 'updated' | 'unchanged';

export interface PutResult {
  readonly status: PutStatus;
  readonly entry: Entry;
}

/** An absent field does not change. */
export interface EntryUpdate {
  readonly category?: string;
  readonly tags?: readonly string[];
  readonly lifetime?: number;
  /** As in `EntryDraft`. */
  readonly grace?: number;
  /** The caller. It becomes the author only if the change makes a new version. */
  readonly author: Author;
}

export interface PageQuery {
  /** `updated`: last updated first. `expires`: first to expire first. `oldest`: last updated last. */
  readonly sort: 'updated' | 'expires' | 'oldest';
  readonly limit: number;
  readonly category?: string;
  /** Only entries that end before this moment. */
  readonly expiresBefore?: number;
  /** Called with each opened entry; only matching entries are returned. */
  readonly matches?: (entry: Entry) => boolean;
  /** About how many sealed bytes to open for one page, at least one entry. `STEP_BYTES` by default. */
  readonly bytes?: number;
  /** Do not cache the opened entries. */
  readonly uncached?: boolean;
  /** Where the previous page ended. */
  readonly after?: EntryCursor;
}

/** A position in a list. It stays valid while other entries are added and deleted. */
export interface EntryCursor {
  readonly at: number;
  readonly row: number;
}

/** The most that one step opens, so that long entries do not delay other requests. */
export const STEP_BYTES = 64 * 1024;

/** A page can be shorter than the limit although another page follows. */
export interface EntryPage {
  readonly entries: readonly Entry[];
  /** The rows of these entries, in the same order. */
  readonly rows: readonly number[];
  /** Absent on the last page. */
  readonly next?: EntryCursor;
}

/** A row for the activity record, committed together with the write or forget that it describes. Each has a unique key. */
export interface ActivityNote extends EntryDraft {
  /** The value to store instead, once the outcome of the write is known. */
  readonly valueFor?: (outcome: WriteOutcome) => string;
}

/** The part of a note that only the store knows. */
export interface WriteOutcome {
  /** The update time of the fact, if it is later than the note's. Several writes within one millisecond get later times. */
  readonly written?: number;
  /** The earlier and the new end of life, if the write shortened another client's fact. */
  readonly shortened?: { readonly from: number; readonly to: number };
}

/** A fact with its history. */
export interface FactWithHistory {
  readonly entry: Entry;
  /** Newest first. */
  readonly versions: readonly Entry[];
  /** The row of the fact. Facts written in the same millisecond are listed in the order of their rows. */
  readonly row: number;
  /** The newest tombstone of the memory when the fact was read. Putting the fact back deletes only later tombstones. */
  readonly lastTombstone: number;
}

/** Categories, counts and keys of one kind in a namespace, without values. */
export interface Overview {
  /** The first categories, A to Z. */
  readonly categories: readonly {
    readonly name: string;
    readonly count: number;
    /** Newest first. */
    readonly recent: readonly string[];
  }[];
  /** How many more categories there are. */
  readonly more: number;
}

/** The writes of a client to undo. Both times are included. */
export interface UndoRange {
  readonly client: string;
  readonly since: number;
  /** If absent, up to now. */
  readonly until?: number;
}

/**
 * `removed`: the client had created the fact, and it was deleted. `restored`: the fact has the version before the client's.
 * `skipped`: that version no longer exists, so the fact stays. `untouched`: the last version is not the client's.
 */
export type RevertOutcome = 'removed' | 'restored' | 'skipped' | 'untouched';

/**
 * The entries of one kind in one namespace. No method can reach any other entry, and none returns or counts an expired entry,
 * swept or not. When the promise of a write resolves, the write is durable.
 */
export interface Space {
  readonly kind: SpaceKind;
  /**
   * Stores the draft under its key. The earlier version of a fact moves to its history. If a fact has the same content already,
   * only its end of life changes, and no note is written. Making another client's fact expire sooner is a change too: the earlier
   * version keeps the later end.
   */
  put(draft: EntryDraft, note?: ActivityNote): Promise<PutResult>;
  get(key: string): Promise<Entry | undefined>;
  /** Undefined if no entry has the key. A new version is made as for `put`. */
  change(key: string, change: EntryUpdate, note?: ActivityNote): Promise<Entry | undefined>;
  page(query: PageQuery): Promise<EntryPage>;
  count(category?: string): Promise<number>;
  /** How many entries expire before this time. */
  countExpiringBefore(before: number): Promise<number>;
  /** Earlier versions of a fact, newest first. */
  history(key: string): Promise<readonly Entry[]>;
  /** Exact at every moment. Uses counters and cached keys, so it is cheap to call again. */
  overview(most: { readonly categories: number; readonly keys: number }): Promise<Overview>;
  /** What `restoreForgotten` needs to put a fact back. Read it before the forget. */
  withHistory(key: string): Promise<FactWithHistory | undefined>;
  /**
   * Puts a forgotten fact back exactly as it was. False if another fact is stored under its key or it has expired. A backup that
   * is restored later keeps the fact too.
   */
  restoreForgotten(fact: FactWithHistory, note: ActivityNote): Promise<boolean>;
  /** Undoes a client's writes to one entry. Without a note it changes nothing, and returns what would happen. */
  revert(key: string, unwanted: UndoRange, note?: ActivityNote): Promise<RevertOutcome>;
}

/** Entries to forget, in a subject's own namespace and in those of its sessions. */
export interface Selection {
  readonly kinds: readonly Kind[];
  /** Needs no key, because the category is not sealed. */
  readonly category?: string;
  /** Only the entry with this key. Needs the master key. */
  readonly key?: string;
  /** Called with each opened entry. Needs the master key. */
  readonly matches?: (entry: Entry, kind: Kind) => boolean;
  /** Only this session of the subject. */
  readonly session?: string;
}

/** Awaited between two slices of a long task, so that other requests run in between. */
export type YieldTurn = () => Promise<unknown>;

export interface ForgetResult {
  /** Entries that a caller could have seen. Versions of a forgotten fact are not counted. */
  readonly deleted: number;
  /** True if no byte of them is left in the live files. */
  readonly purged: boolean;
  /** Backups, which may still hold sealed copies. A restore forgets these again. */
  readonly olderBackups: number;
}

/** The most that a subject may store. */
export interface Quota {
  readonly facts: number;
  /** Sealed bytes, history included. */
  readonly bytes: number;
}

/** Entries of this kind were added, changed or deleted in this namespace. */
export interface SpaceChange {
  readonly namespace: Namespace;
  readonly kind: SpaceKind;
}

/**
 * `stored`: an entry was stored or changed. Its row number identifies it until it is deleted. `deleted`: an entry was deleted.
 * `reset`: the memory was locked or its file reopened, so listeners must drop all they know and read it again.
 */
export type EntryEvent =
  | { readonly what: 'stored'; readonly namespace: Namespace; readonly kind: Kind; readonly row: number; readonly entry: Entry }
  | { readonly what: 'deleted'; readonly row: number }
  | { readonly what: 'reset' };

/** Named texts that the program itself stores, sealed like entries. */
export interface Vault {
  read(name: string): Promise<string | undefined>;
  write(name: string, text: string): Promise<void>;
  delete(name: string): Promise<void>;
  /** All names. They are not sealed. */
  names(): Promise<readonly string[]>;
  /** Revokes a token for good. Needs no key, and a restored backup does not undo it. */
  revokeToken(id: string, until: number): Promise<void>;
  /** Ids of revoked tokens that have not expired. */
  revokedTokens(): Promise<readonly string[]>;
}

export interface SweepResult {
  readonly removed: number;
  /** The time at which the next entry expires. */
  readonly next?: number;
}

/**
 * Stores entries. All methods that read or write entries are asynchronous, so that a database server could take the place of the
 * file. An entry with a broken seal is left out and counted, and all others stay readable.
 */
export interface MemoryStore extends AsyncDisposable {
  space(namespace: Namespace, kind: SpaceKind): Space;
  /** Namespaces that hold entries of a kind (facts by default), with their number. */
  namespaces(kind?: SpaceKind): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]>;
  /**
   * Deletes entries for good, in slices, and resolves when their bytes are purged. Deletes all matching entries that existed at the
   * start; an entry written meanwhile is deleted if a slice finds it. After a failure the deleted entries stay deleted, and the next
   * call deletes the rest. A selection by kind and category needs no key, so entries of a lost key can be forgotten too.
   */
  forget(subject: string, selection: Selection, note?: ActivityNote, yieldTurn?: YieldTurn): Promise<ForgetResult>;
  /** How many entries `forget` would delete. */
  countMatching(subject: string, selection: Selection, yieldTurn?: YieldTurn): Promise<number>;
  /** The room a subject uses, versions included, and its quota. Needs no key. */
  usage(subject: string): Promise<{ readonly used: Quota; readonly most: Quota }>;
  /**
   * Adds a row about something that is not a write to the activity record of a subject. While the memory is locked or its disk
   * full, the note waits in RAM.
   */
  recordActivity(subject: string, note: ActivityNote): Promise<void>;
  /** Removes up to `limit` expired entries. */
  sweep(limit: number): Promise<SweepResult>;
  status(): StoreStatus;
  /** Drops the key and all opened entries. Calls fail with the reason `why` until `unlock`. */
  lock(why?: string): void;
  /** Reads the key source again, also after `lock`. */
  unlock(): Promise<KeyState>;
  /** The present time by the clock of the store. */
  now(): number;
  /** The owner confirms the machine's clock. Entries that have expired by it may be deleted, and all others are shown. */
  trustClock(): Promise<void>;
  /** Facts of all subjects that are still in the file although they have expired by the machine's clock. */
  countExpiredFacts(): Promise<number>;
  /** Calls `listener` soon after a change is durable, once for many changes. Expiry is a change too. */
  onChange(listener: (changed: SpaceChange) => void): Disposable;
  /** Calls `listener` after the key became available, was lost or was locked. */
  onKeyChange(listener: () => void): Disposable;
  /** Calls `listener` for each changed entry, in the order of the commits and before the writer gets its answer. */
  onEntryEvent(listener: (event: EntryEvent) => void): Disposable;
  readonly vault: Vault;
  /** Undefined for a memory in RAM. */
  readonly upkeep: Upkeep | undefined;
}

export interface Backup {
  readonly file: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface BackupResult extends Backup {
  /** Entries with a broken seal, in the memory as in its copy. */
  readonly broken: number;
}

export interface VerificationReport {
  readonly entries: number;
  /** Entries with a broken seal. */
  readonly broken: number;
  /** Errors in the structure of the file. */
  readonly structure: readonly string[];
}

/** Maintenance by the owner. Only a memory in a file has it. */
export interface Upkeep {
  /** Seals all entries with a new master key. */
  rotate(): Promise<void>;
  /**
   * Makes the key that opens this memory on another machine, or when the key source is lost. It is shown once and stored nowhere.
   * A new recovery key makes the older one useless.
   */
  makeRecoveryKey(): Promise<string>;
  /** Writes a complete copy, sealed like the original, with its tombstones, and verifies every row of it. */
  backup(): Promise<BackupResult>;
  /** Whether this memory has a recovery key. */
  readonly recoverable: boolean;
  /** Newest first. */
  backups(): readonly Backup[];
  /** Opens every seal. */
  verify(): Promise<VerificationReport>;
}
