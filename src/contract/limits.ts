import { KIB } from './units.ts';

/** Limits that the core and the window share. This file must not import zod, because the window would then load zod too. */

const HOUR = 3600;
const DAY = 24 * HOUR;

/** Allowed lifetimes of a fact, in seconds. A lifetime of 0 or an absent lifetime means the default, so every fact expires. */
export const TTL = { min: HOUR, max: 365 * DAY, default: 90 * DAY } as const;

/** Maximum remaining seconds of a fact that is shown as expiring soon. */
export const EXPIRING_SOON = 7 * DAY;

export const KEY_BYTES = 512;
export const VALUE_BYTES = 64 * KIB;
export const TAGS = { max: 32, characters: 64 } as const;

/** Maximum number of earlier versions stored for each key. */
export const HISTORY_VERSIONS = 20;

/**
 * Maximum number of versions of superseded facts stored for each key, in addition to its own. A superseded fact has at most
 * `HISTORY_VERSIONS` + 1 versions of its own.
 */
export const SUPERSEDED_VERSIONS = 2 * (HISTORY_VERSIONS + 1);

/**
 * Facts that a store shows because they speak of the same matter: how many, how many characters of each value, and for how many
 * milliseconds the store looks for them after its commit.
 */
export const SIMILAR = { facts: 3, characters: 300, ms: 80 } as const;

/** Minimum remaining lifetime, in seconds, of a fact whose lifetime is shortened by a client that did not write the fact. */
export const SHORTENING_GRACE = 7 * DAY;

/** Maximum number of stored backups. The next backup replaces the oldest. */
export const BACKUPS_KEPT = 7;

/** Milliseconds for which a deleted fact stays in RAM so that the window can restore it. The window offers undo for 8 seconds. */
export const UNDO_FORGET_MS = 10_000;

/** Lifetime of activity rows, in seconds. */
export const ACTIVITY_TTL = 30 * DAY;

/**
 * Lifetime, in seconds, of a tombstone, which deletes an entry again if an old backup is restored. Entries never live longer than
 * their tombstones.
 */
export const TOMBSTONE_TTL = TTL.max;

export const PAGE = { default: 50, max: 200 } as const;

export const QUERY = { default: 20, max: 100, characters: 1000, searches: 32, searchesUsed: 6 } as const;

/** Maximum number of run records in the search index. Older records are not searched. */
export const SEARCHED_RUNS = 1000;

/** Default quota of a subject: number and bytes of facts. */
export const QUOTA = { facts: 10_000, bytes: 64 * 1024 * KIB } as const;

/** Maximum number of database rows of each kind in one memory. Above the maximum, the oldest rows are deleted. */
export const RECORD_ROWS = { activity: 10_000, audit: 10_000, cache: 1000 } as const;

/** Maximum lifetime of an issued token, in days. */
export const TOKEN_DAYS = 365;

export const IMPORT_REQUEST = { lines: 500 } as const;

/**
 * Limits of one import from another program's memory. `name` limits the length of a name, in characters, because the name is
 * repeated in every fact about the named thing.
 */
export const IMPORT_TEXT = { bytes: 512 * KIB, entries: 5000, name: 200 } as const;

/** Maximum number of tags, and of clients, that the window offers as filters: the most frequent ones. */
export const LISTED_NAMES = 1000;

/** Limits of the `my-memory` response. The response exceeds `bytes` only to include the newest key of each category. */
export const OVERVIEW = { categories: 50, keys: 5, bytes: 1000 } as const;

export const CONTEXT = { facts: 50, bytes: 32_000 } as const;

/**
 * Limits of briefs, which hooks of agents put before a model unasked. `bytes` is the default size; the owner can choose 0, which turns
 * briefs off, or a size from `minBytes` to `maxBytes`.
 */
export const BRIEF = {
  bytes: 1000,
  minBytes: 200,
  maxBytes: 4000,
  /** Characters of one value. The rest of a longer value is left out. */
  valueCharacters: 240,
  promptCharacters: 8000,
  folderCharacters: 4096,
  sessionCharacters: 200,
} as const;

/** Limits of search results: bytes of all values together, characters of one snippet, and characters of one value in Markdown. */
export const SNIPPET = { bytes: 32_000, characters: 240, markdown: 2000 } as const;

/** Limits of packs. Times are in seconds. */
export const PACK = {
  /** Maximum lifetime of a cached result. */
  cacheTtl: DAY,
  /** Maximum bytes of a cached result. */
  cacheBytes: 512 * KIB,
  /** Default time limit of a run. */
  timeout: 30,
  /** Longest time limit that a pack can request for its runs. */
  maxTimeout: 600,
  /** Maximum number of concurrent runs per subject. */
  atOnce: 64,
  recordTtl: 30 * DAY,
  findings: 50,
  /**
   * Maximum number of entries that packs store for one subject. These entries have a byte quota of their own, equal to that of
   * facts.
   */
  memory: 10_000,
  /** A pack session expires after this time without use. */
  sessionIdle: HOUR,
  /** Maximum number of open pack sessions per subject. */
  sessions: 100,
  /** Maximum size of the output of one pack run, in bytes. */
  outputBytes: 1024 * KIB,
} as const;

/** Packs that do the same as a memory tool, for use in pipelines. They are offered to every client. */
export const MEMORY_PACKS: ReadonlySet<string> = new Set(['helmdeck.memory_store', 'helmdeck.memory_forget']);

/** Limits of pipelines. Lifetimes are in seconds. */
export const PIPELINE = {
  steps: 20,
  inputs: 20,
  /** Maximum bytes of a pipeline. */
  bytes: 32 * KIB,
  /** Maximum number of characters of a title or description that is shown to other agents. */
  shownCharacters: 200,
  /** Maximum nesting depth of JSON in pipelines, inputs and outputs. */
  depth: 32,
  /** Maximum number of pipelines per subject. */
  definitions: 100,
  /** Lifetime of a pipeline. Each change and each run restarts the lifetime. */
  ttl: TTL.max,
  /** Maximum number of concurrent runs per subject. */
  atOnce: 8,
  /** Maximum number of stored records of ended runs per subject. The oldest are deleted first. */
  runs: 1000,
  runTtl: 7 * DAY,
  /** Maximum total bytes of the outputs in one run record. */
  shownBytes: 768 * KIB,
  /** Maximum total bytes of all step outputs of one run. */
  outputBytes: 8 * 1024 * KIB,
  /** Maximum bytes of the input of one step, after references are replaced by their values. */
  inputBytes: 1024 * KIB,
} as const;

/** Limits of the Inbox of one subject. `perClient` and `bytes` apply to the items of one client. The lifetime is in seconds. */
export const INBOX = { items: 500, perClient: 100, bytes: 8 * 1024 * KIB, ttl: 7 * DAY } as const;

/** Maximum numbers of packs, pipelines (`each`), findings and recent runs in the `my-defaults` response. */
export const MY_DEFAULTS = { each: 12, findings: 20, recent: 200 } as const;

/** Limits of requests that packs send to other hosts. Times are in seconds. */
export const EGRESS = {
  bytes: 1024 * KIB,
  /** Maximum bytes of all headers of one response. */
  headerBytes: 16 * KIB,
  redirects: 5,
  /** Time limit from the first request to the last byte of the response, including redirects. */
  timeout: 20,
  /** Maximum time during which the host sends no data. */
  idleTimeout: 10,
} as const;

/** Limits of embedding requests. Times are in seconds. */
export const EMBEDDING = {
  /** Maximum number of texts in one request. */
  texts: 256,
  /** Maximum bytes of one text. */
  bytes: 64 * KIB,
  /** Maximum number of texts in one request to Ollama. Small, so that a busy Ollama can respond within `batchTimeout`. */
  batch: 16,
  /** Time limit of one request to Ollama, including the time to load the model. */
  batchTimeout: 90,
  /** Time limit of one client request, including its time in the queue. A client must split a request that takes longer. */
  requestTimeout: 240,
  /** Maximum number of running and queued requests of one subject. */
  queuedPerSubject: 16,
  /** Maximum number of running and queued requests in total. */
  queued: 64,
} as const;
