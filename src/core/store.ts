import type { KeyState, StoreStatus } from '../contract/status.ts';

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
}

/** What is handed in to be kept. */
export interface Draft {
  readonly key: string;
  readonly value: string;
  readonly category: string;
  readonly tags: readonly string[];
  readonly author: Author;
  /** Milliseconds from now; the store turns it into an end of life. */
  readonly lifetime: number;
}

/** What was kept. Times are milliseconds since 1970. */
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

export interface Put {
  readonly status: PutStatus;
  readonly entry: Entry;
}

/** An absent field stays as it is. */
export interface Change {
  readonly category?: string;
  readonly tags?: readonly string[];
  readonly lifetime?: number;
  /** Who asks. It becomes the author only if the change makes a new version. */
  readonly author: Author;
}

export interface PageQuery {
  /** `updated`: newest first. `expires`: soonest end first. */
  readonly sort: 'updated' | 'expires';
  readonly limit: number;
  readonly category?: string;
  /** Only entries that end before this moment. */
  readonly expiresBefore?: number;
  /** Where the page before ended. */
  readonly after?: Cursor;
}

/** A place in a list: it stays right while entries come and go around it. */
export interface Cursor {
  readonly at: number;
  readonly row: number;
}

export interface Page {
  readonly entries: readonly Entry[];
  /** Absent on the last page. */
  readonly next?: Cursor;
}

/** A record of a write or a forget, kept in the same commit as what it tells of. */
export type Note = Draft;

/**
 * One kind of entry in one namespace, both closed over: nothing else can be named through it.
 * An expired entry does not exist: no method returns or counts one, swept or not.
 * A promise that fulfils means that the bytes are durable.
 */
export interface Space {
  readonly kind: SpaceKind;
  /**
   * Keeps the draft under its key. For a fact the earlier version goes to the key's history; a fact that says
   * the same again gets a new end of life and is otherwise untouched.
   */
  put(draft: Draft, note?: Note): Promise<Put>;
  get(key: string): Promise<Entry | undefined>;
  /** Undefined when there is nothing under the key. Only a change of category or tags makes a new version. */
  change(key: string, change: Change, note?: Note): Promise<Entry | undefined>;
  page(query: PageQuery): Promise<Page>;
  count(category?: string): Promise<number>;
  /** Earlier versions of a living fact, newest first. */
  history(key: string): Promise<readonly Entry[]>;
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

export interface Forgotten {
  /** Entries a caller could have seen, each once. Versions of a forgotten fact go with it and are not counted. */
  readonly deleted: number;
  /** True once no byte of them is left in the live files. */
  readonly purged: boolean;
  /** Backups made before, which may still hold sealed copies. A restore forgets them again. */
  readonly olderBackups: number;
}

export interface Swept {
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
  /** Those that hold a living fact, with how many. */
  namespaces(): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]>;
  /**
   * Deletes for good and answers when the bytes are gone. By kind and category it works in every key state: what
   * was sealed with a lost key can still be forgotten.
   */
  forget(subject: string, selection: Selection, note?: Note): Promise<Forgotten>;
  /** How many entries `forget` would delete. */
  countMatching(subject: string, selection: Selection): Promise<number>;
  /** Removes up to `limit` expired entries. */
  sweep(limit: number): Promise<Swept>;
  status(): StoreStatus;
  /** Drops the key and everything opened with it. */
  lock(): void;
  /** Asks the key's place again, also after `lock`. */
  unlock(): Promise<KeyState>;
  /** The moment the store goes by. */
  now(): number;
  /** Absent where nothing outlives the program. */
  readonly upkeep: Upkeep | undefined;
}

export interface Backup {
  readonly file: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface MadeBackup extends Backup {
  /** Entries whose seal is broken, in the memory as in its copy. */
  readonly broken: number;
}

export interface Verification {
  readonly entries: number;
  /** Entries whose seal is broken. */
  readonly broken: number;
  /** What is wrong with the file's structure; empty when it is sound. */
  readonly structure: readonly string[];
}

/** What the owner does with a memory that is kept, beside using it. */
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
  backup(): Promise<MadeBackup>;
  /** Newest first. */
  backups(): readonly Backup[];
  /** Opens every seal. */
  verify(): Promise<Verification>;
}
