/** Limits shared by the program and its clients. Must not import zod, because the window imports this file. */

const KIB = 1024;
const HOUR = 3600;
const DAY = 24 * HOUR;

/** Lifetimes in seconds. Every fact expires: 0 or an absent lifetime means the default. */
export const TTL = { min: HOUR, max: 365 * DAY, default: 90 * DAY } as const;

/** Facts that expire within this many seconds count as expiring soon. */
export const EXPIRING_SOON = 7 * DAY;

export const KEY_BYTES = 512;
export const VALUE_BYTES = 64 * KIB;
export const TAGS = { max: 32, characters: 64 } as const;
export const CATEGORY = { default: 'user_facts', pack: 'pack_memory', pattern: /^[a-z0-9][a-z0-9_.-]{0,63}$/ } as const;

/** Categories that only the program writes. An agent that wrote there could teach false habits to other agents. */
export const RESERVED_CATEGORIES: ReadonlySet<string> = new Set(['pack_history', 'pipeline_history', 'plan_history', 'cache']);
export const RESERVED_KEY_PREFIXES = ['pack_history/', 'pipeline_history/', 'plan_history/'] as const;

/** Earlier versions stored for each key. */
export const HISTORY_VERSIONS = 20;

/** If a client shortens the lifetime of another client's fact, the fact still lives this long, in seconds. */
export const SHORTENING_GRACE = 7 * DAY;

/** The number of backups kept. A new backup deletes the oldest. */
export const BACKUPS_KEPT = 7;

/** How long a forgotten fact stays in RAM so that the window can undo the forget. The window offers undo for eight seconds. */
export const UNDO_FORGET_MS = 10_000;

/** Lifetime of activity rows, in seconds. */
export const ACTIVITY_TTL = 30 * DAY;

/** How long a restore deletes forgotten entries again: as long as the longest lifetime, in seconds. */
export const TOMBSTONE_TTL = TTL.max;

export const PAGE = { default: 50, max: 200 } as const;

/** Limits of a search request. */
export const QUERY = { default: 20, max: 100, characters: 1000, searches: 32, searchesUsed: 6 } as const;

/** A search covers this many of the newest records of runs. */
export const SEARCHED_RUNS = 1000;

/** Default quota of a subject. */
export const QUOTA = { facts: 10_000, bytes: 64 * 1024 * KIB } as const;

/** Maximum rows per memory of activity, of runs, and of cached pack results. Old rows are deleted first. */
export const RECORD_ROWS = { activity: 10_000, audit: 10_000, cache: 1000 } as const;

/** The scopes of tokens. `admin` includes the others. */
export const TOKEN_SCOPES = ['memory:read', 'memory:write', 'packs:run', 'admin'] as const;

/** Maximum lifetime of an issued token, in days. */
export const TOKEN_DAYS = 365;

/** Lines per import request. Larger imports need several requests. */
export const IMPORT_REQUEST = { lines: 500 } as const;

/** Other memories whose content can be imported. */
export const IMPORT_SOURCES = ['mcp-memory', 'markdown', 'basic-memory', 'chatgpt', 'claude'] as const;

/** Limits of one import from another memory: bytes, entries, and characters of a name that is repeated in each fact. */
export const IMPORT_TEXT = { bytes: 512 * KIB, entries: 5000, name: 200 } as const;

/** Number of tags and of clients that the window offers for filtering: the most used ones. */
export const LISTED_NAMES = 1000;

/** Limits of `my-memory`. Its JSON exceeds `bytes` only to show the newest key of each category. */
export const OVERVIEW = { categories: 50, keys: 5, bytes: 1000 } as const;

/** Limits of `context`. */
export const CONTEXT = { facts: 50, bytes: 32_000 } as const;

/** The address at which agents reach the memory by default. */
export const DEFAULT_ADDRESS = '127.0.0.1:7345';

/** Limits of search results: bytes of all values, characters of a snippet, characters of a value in Markdown. */
export const SNIPPET = { bytes: 32_000, characters: 240, markdown: 2000 } as const;

/** Limits of packs. Times are in seconds. */
export const PACK = {
  /** Maximum lifetime of a cached result. */
  cacheTtl: DAY,
  /** Larger results are not cached. */
  cacheBytes: 512 * KIB,
  /** Time limit of a run: by default, and the most that a pack can request. */
  timeout: 30,
  maxTimeout: 600,
  /** Concurrent runs per subject. */
  atOnce: 64,
  /** Lifetime of the records of runs. */
  recordTtl: 30 * DAY,
  findings: 50,
  /** Entries in the pack memory of a subject. Their bytes have a quota of their own, as large as the quota of the facts. */
  memory: 10_000,
  /** A session ends after this time without use. */
  sessionIdle: HOUR,
  /** Open sessions per subject. */
  sessions: 100,
  /** Maximum size of a result. */
  outputBytes: 1024 * KIB,
} as const;

/** Limits of pipelines. Lifetimes are in seconds. */
export const PIPELINE = {
  steps: 20,
  inputs: 20,
  /** Size of a definition. */
  bytes: 32 * KIB,
  /** Characters of a title or description in lists, resources and recommendations, where other agents read them. */
  shownCharacters: 200,
  /** Nesting depth of stored and sent JSON. */
  depth: 32,
  /** Definitions per subject. */
  definitions: 100,
  /** A definition expires this long after its last change or run. */
  ttl: TTL.max,
  /** Concurrent runs per subject. */
  atOnce: 8,
  /** Stored records of ended runs per subject. The oldest are deleted first. */
  runs: 1000,
  runTtl: 7 * DAY,
  /** Size of the outputs that the record of a run shows. */
  shownBytes: 768 * KIB,
  /** Size of all outputs of a run. */
  outputBytes: 8 * 1024 * KIB,
  /** Size of the input of one step, with its references resolved. */
  inputBytes: 1024 * KIB,
} as const;

/** Limits of my-defaults. */
export const MY_DEFAULTS = { each: 12, findings: 20, recent: 200 } as const;

/** Top-level text inputs from which my-defaults learns. */
export const LEARNABLE_INPUTS = [
  'persona',
  'audience',
  'angle',
  'model',
  'theme',
  'voice',
  'persona_used',
  'kind',
  'format',
  'title',
  'author',
] as const;

/** Limits of requests that packs send to other hosts. Times are in seconds. */
export const EGRESS = {
  bytes: 1024 * KIB,
  /** Size of all headers of a response. */
  headerBytes: 16 * KIB,
  redirects: 5,
  /** From the first request to the last byte, redirects included. */
  timeout: 20,
  /** Time without receiving any data. */
  idleTimeout: 10,
} as const;

/** Limits of embedding requests. Times are in seconds. */
export const EMBEDDING = {
  /** Texts per request, and bytes per text. */
  texts: 256,
  bytes: 64 * KIB,
  /** Texts per request to Ollama. Small batches show whether Ollama hangs or only has much to do. */
  batch: 16,
  /** Time limit of a batch, including the time to load the model. */
  batchTimeout: 90,
  /** Time limit of a request, including its time in the queue. Clients must split requests that take longer. */
  requestTimeout: 240,
  /** Running and queued requests: per subject, and in total. */
  queuedPerSubject: 16,
  queued: 64,
} as const;

/** The extension bundle for Claude Desktop, stored with the window's static files. */
export const CLAUDE_BUNDLE = 'helmdeck-memory.mcpb';
