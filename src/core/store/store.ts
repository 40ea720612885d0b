import type { KeyState, StoreStatus } from '../../contract/status.ts';

/** The key spaces. An entry of one kind can never be read as another, whatever its key says. */
export type Kind = 'fact' | 'history' | 'audit' | 'cache' | 'pack' | 'activity';

/** History is kept by the store itself, and read through its fact. */
export type SpaceKind = Exclude<Kind, 'history'>;

/** Whose memory: a subject, and inside a pack session that session too. Never chosen by a request. */
export interface Namespace {
  readonly subject: string;
  readonly session?: string;
}

/** Who made an entry, stamped by the program and never taken from a request. */
export interface Author {
  readonly client: string;
  readonly transport: string;
  /** The id of the token that was used, or nothing. */
  readonly token: string;
  /** The client whose definition, such as a pipeline, made the client above write this. */
  readonly definedBy?: string;
}

/** A new entry, as the caller hands it in. */
export interface EntryDraft {
  readonly key: string;
  readonly value: string;
  readonly category: string;
  readonly tags: readonly string[];
  readonly author: Author;
  /** Milliseconds from now; the store turns it into an end of life. */
  readonly lifetime: number;
  /** Milliseconds that a fact with words of another client stays at least; absent, the lifetime always counts. */
  readonly grace?: number;
  /** The grace holds also for the writer's own words. */
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

/** An absent field stays as it is. */
export interface EntryUpdate {
  readonly category?: string;
  readonly tags?: readonly string[];
  readonly lifetime?: number;
  /** As in a draft. */
  readonly grace?: number;
  /** Who asks. It becomes the author only if the change makes a new version. */
  readonly author: Author;
}

export interface PageQuery {
  /** `updated`: newest first. `expires`: soonest end first. `oldest`: as they were written. */
  readonly sort: 'updated' | 'expires' | 'oldest';
  readonly limit: number;
  readonly category?: string;
  /** Only entries that end before this moment. */
  readonly expiresBefore?: number;
  /** Called with each opened entry; only matching entries are returned. */
  readonly matches?: (entry: Entry) => boolean;
  /** About so much is opened for one page, sealed bytes, and one entry at least; `STEP_BYTES` unless told. */
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

/** A record of a write or a forget, kept in the same commit as what it tells of. Its key is its own. */
export interface ActivityNote extends EntryDraft {
  /** The value to keep instead, once it is known what came of the write. */
  readonly valueFor?: (outcome: WriteOutcome) => string;
}

/** What only the store knows about a write. */
export interface WriteOutcome {
  /** When the fact says it was written; present when that is later than the note, which happens within a millisecond. */
  readonly written?: number;
  /** The ends of life between which another client's fact was shortened. */
  readonly shortened?: { readonly from: number; readonly to: number };
}

/** A fact with its history. */
export interface FactWithHistory {
  readonly entry: Entry;
  /** Newest first. */
  readonly versions: readonly Entry[];
  /** The newest tombstone of the memory when the fact was read. Putting the fact back deletes only later tombstones. */
  readonly lastTombstone: number;
}

/** Categories, counts and keys of one kind in a namespace, without values. */
export interface Overview {
  /** Categories A to Z, as many as were asked for. */
  readonly categories: readonly {
    readonly name: string;
    readonly count: number;
    /** Newest first. */
    readonly recent: readonly string[];
  }[];
  /** How many more categories there are. */
  readonly more: number;
}

/** Whose writes to take back, from which moment on, and up to which, both included. */
export interface UndoRange {
  readonly client: string;
  readonly since: number;
  /** Absent, up to now. */
  readonly until?: number;
}

/**
 * `removed`: they had made the fact. `restored`: it says what it said before them. `skipped`: what it said before is
 * gone, so it stays. `untouched`: its last word is not theirs.
 */
export type RevertOutcome = 'removed' | 'restored' | 'skipped' | 'untouched';

/**
 * One kind of entry in one namespace, both closed over: nothing else can be named through it.
 * An expired entry does not exist: no method returns or counts one, swept or not.
 * A promise that fulfils means that the bytes are durable.
 */
export interface Space {
  readonly kind: SpaceKind;
  /**
   * Keeps the draft under its key. For a fact the earlier version goes to the key's history; a fact that says
   * the same again gets a new end of life and is otherwise untouched, and leaves no note. A sooner end than another
   * client gave the fact is a change too: the earlier version keeps the later end.
   */
  put(draft: EntryDraft, note?: ActivityNote): Promise<PutResult>;
  get(key: string): Promise<Entry | undefined>;
  /** Undefined when there is nothing under the key. Only category, tags or an end sooner than another client's make a new version. */
  change(key: string, change: EntryUpdate, note?: ActivityNote): Promise<Entry | undefined>;
  page(query: PageQuery): Promise<EntryPage>;
  count(category?: string): Promise<number>;
  /** How many of them end before this moment. */
  countExpiringBefore(before: number): Promise<number>;
  /** Earlier versions of a living fact, newest first. */
  history(key: string): Promise<readonly Entry[]>;
  /** Right at every moment: kept counters and kept keys, less what has just expired. */
  overview(most: { readonly categories: number; readonly keys: number }): Promise<Overview>;
  /** What `restoreForgotten` needs to put a fact back. Read it before the forget. */
  withHistory(key: string): Promise<FactWithHistory | undefined>;
  /**
   * Puts a forgotten fact back exactly as it was. False if another fact is stored under its key or it has expired. A backup that
   * is restored later keeps the fact too.
   */
  restoreForgotten(fact: FactWithHistory, note: ActivityNote): Promise<boolean>;
  /** Takes back what was written to a fact. Without a note nothing is changed, and it only says what would happen. */
  revert(key: string, unwanted: UndoRange, note?: ActivityNote): Promise<RevertOutcome>;
}

/** What to forget, in a subject's own namespace and in those of its sessions. */
export interface Selection {
  readonly kinds: readonly Kind[];
  /** Needs no key: the category stands beside the sealed entry. */
  readonly category?: string;
  /** Needs the key: exactly this one. */
  readonly key?: string;
  /** Needs the key: entries are opened and asked about. */
  readonly matches?: (entry: Entry, kind: Kind) => boolean;
  /** Only this session of the subject. */
  readonly session?: string;
}

/** Awaited between two slices of a long task, so that other requests run in between. */
export type YieldTurn = () => Promise<unknown>;

export interface ForgetResult {
  /** Entries a caller could have seen, each once. Versions of a forgotten fact go with it and are not counted. */
  readonly deleted: number;
  /** True once no byte of them is left in the live files. */
  readonly purged: boolean;
  /** Backups made before, which may still hold sealed copies. A restore forgets them again. */
  readonly olderBackups: number;
}

/** The most that a subject may store. */
export interface Quota {
  readonly facts: number;
  /** Sealed, history included. */
  readonly bytes: number;
}

/** Entries of this kind were added, changed or deleted in this namespace. */
export interface SpaceChange {
  readonly namespace: Namespace;
  readonly kind: SpaceKind;
}

/**
 * `kept`: an entry was put or changed; the row is its name until it is gone. `gone`: forgotten, expired or taken back.
 * `doubt`: whoever follows must look at everything anew, and may not show what they know: the memory was locked, or its file
 * opened anew.
 */
export type EntryEvent =
  | { readonly what: 'kept'; readonly namespace: Namespace; readonly kind: Kind; readonly row: number; readonly entry: Entry }
  | { readonly what: 'gone'; readonly row: number }
  | { readonly what: 'doubt' };

/** What the program itself must keep beside the entries, sealed like them; texts by name. */
export interface Vault {
  read(name: string): Promise<string | undefined>;
  write(name: string, text: string): Promise<void>;
  delete(name: string): Promise<void>;
  /** Every name there is; they stand in clear. */
  names(): Promise<readonly string[]>;
  /** Takes a token's id back for good. Needs no key, and a restored backup does not undo it. */
  revokeToken(id: string, until: number): Promise<void>;
  /** Ids taken back whose time is not over. */
  revokedTokens(): Promise<readonly string[]>;
}

export interface SweepResult {
  readonly removed: number;
  /** When the next entry expires, if any does. */
  readonly next?: number;
}

/**
 * Where entries live. Asynchronous throughout, so that a database server can take the place of a file.
 * An entry whose seal is broken is left out and counted, and everything else stays readable.
 */
export interface MemoryStore extends AsyncDisposable {
  space(namespace: Namespace, kind: SpaceKind): Space;
  /** Those that hold a living entry of this kind, or else a fact, with how many. */
  namespaces(kind?: SpaceKind): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]>;
  /**
   * Deletes for good and answers when the bytes are gone. It goes in slices: all that existed when it was asked is gone in
   * the end; what is written meanwhile goes if it matches when a slice meets it. When it fails, what was deleted stays
   * deleted, and asked again it deletes the rest. By kind and category it works in every key state: what
   * was sealed with a lost key can still be forgotten.
   */
  forget(subject: string, selection: Selection, note?: ActivityNote, between?: YieldTurn): Promise<ForgetResult>;
  /** How many entries `forget` would delete. */
  countMatching(subject: string, selection: Selection, between?: YieldTurn): Promise<number>;
  /** How much of what it may hold a subject uses, earlier versions included; told in every key state. */
  usage(subject: string): Promise<{ readonly used: Quota; readonly most: Quota }>;
  /**
   * Adds a row about something that is not a write to the activity record of a subject. While the memory is locked or its disk
   * full, the note waits in RAM.
   */
  recordActivity(subject: string, note: ActivityNote): Promise<void>;
  /** Removes up to `limit` expired entries. */
  sweep(limit: number): Promise<SweepResult>;
  status(): StoreStatus;
  /** Drops the key and everything opened with it; `why` is told to whoever asks meanwhile. */
  lock(why?: string): void;
  /** Asks the key's place again, also after `lock`. */
  unlock(): Promise<KeyState>;
  /** The moment the store goes by. */
  now(): number;
  /** The owner says that the machine's clock is right: what has expired by it may be deleted, and what has not is shown. */
  trustClock(): Promise<void>;
  /** Facts of all subjects that have expired by the machine's clock, and are still in the file. */
  countExpiredFacts(): Promise<number>;
  /** Hears of every change, soon after it is durable; many at once are told as one. Expiry is a change too. */
  onChange(hear: (changed: SpaceChange) => void): Disposable;
  /** Calls `listener` after the key became available, was lost or was locked. */
  onKeyChange(listener: () => void): Disposable;
  /** Hears of each entry by itself, in the order of the commits and before its writer is answered. */
  onEntryEvent(hear: (change: EntryEvent) => void): Disposable;
  readonly vault: Vault;
  /** Absent where nothing outlives the program. */
  readonly upkeep: Upkeep | undefined;
}

export interface Backup {
  readonly file: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface BackupResult extends Backup {
  /** Entries whose seal is broken, in the memory as in its copy. */
  readonly broken: number;
}

export interface VerificationReport {
  readonly entries: number;
  /** Entries whose seal is broken. */
  readonly broken: number;
  /** What is wrong with the file's structure; empty when it is sound. */
  readonly structure: readonly string[];
}

/** Maintenance by the owner. Only a memory in a file has it. */
export interface Upkeep {
  /** Moves everything under a new master key. */
  rotate(): Promise<void>;
  /**
   * Makes the key that opens this memory on another machine, or when the key's place is lost. It is shown once and kept
   * nowhere; a newer one makes the older useless.
   */
  makeRecoveryKey(): Promise<string>;
  /**
   * A complete copy, sealed like the original and verified row by row, that carries the list of what must stay
   * forgotten.
   */
  backup(): Promise<BackupResult>;
  /** Whether a recovery key was made that opens this memory. */
  readonly recoverable: boolean;
  /** Newest first. */
  backups(): readonly Backup[];
  /** Opens every seal. */
  verify(): Promise<VerificationReport>;
}
