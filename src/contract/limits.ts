/** Figures both sides of every wire agree on. No zod here: the window imports this file too. */

const KIB = 1024;
const HOUR = 3600;
const DAY = 24 * HOUR;

/** Lifetimes in seconds. No fact lives for ever: 0 or nothing asks for the default. */
export const TTL = { min: HOUR, max: 365 * DAY, default: 90 * DAY } as const;

/** What goes within so many seconds goes soon. */
export const EXPIRING_SOON = 7 * DAY;

export const KEY_BYTES = 512;
export const VALUE_BYTES = 64 * KIB;
export const TAGS = { max: 32, characters: 64 } as const;
export const CATEGORY = { default: 'user_facts', pack: 'pack_memory', pattern: /^[a-z0-9][a-z0-9_.-]{0,63}$/ } as const;

/** Names the engine writes under. An agent that could write there would teach the owner's agents false habits. */
export const RESERVED_CATEGORIES: ReadonlySet<string> = new Set(['pack_history', 'pipeline_history', 'plan_history', 'cache']);
export const RESERVED_KEY_PREFIXES = ['pack_history/', 'pipeline_history/', 'plan_history/'] as const;

/** Earlier versions kept for each key. */
export const HISTORY_VERSIONS = 20;

/** A client that shortens the life of another client's fact leaves the fact at least this long, in seconds. */
export const SHORTENING_GRACE = 7 * DAY;

/** Backups that are kept; a newer one deletes the oldest. */
export const BACKUPS_KEPT = 7;

/** A forgotten fact is held for this long so that the window can undo the forget: eight seconds, and two for the way there. */
export const UNDO_FORGET_MS = 10_000;

/** How long the record of who wrote and forgot what is kept, in seconds. */
export const ACTIVITY_TTL = 30 * DAY;

/** How long a forgotten thing is kept out of restored backups: as long as the longest lifetime. */
export const TOMBSTONE_TTL = TTL.max;

export const PAGE = { default: 50, max: 200 } as const;

/** Bounds of a question to the search. */
export const QUERY = { default: 20, max: 100, characters: 1000, searches: 32, searchesUsed: 6 } as const;

/** Rows of the record of runs that a search looks at: the newest. */
export const SEARCHED_RUNS = 1000;

/** What a subject may hold unless its owner says otherwise. */
export const QUOTA = { facts: 10_000, bytes: 64 * 1024 * KIB } as const;

/** Rows that one memory keeps of what comes by itself: who did what, what ran, answers of packs. The oldest make room. */
export const RECORD_ROWS = { activity: 10_000, audit: 10_000, cache: 1000 } as const;

/** What a token may be used for. `admin` includes the others. */
export const TOKEN_SCOPES = ['memory:read', 'memory:write', 'packs:run', 'admin'] as const;

/** How long a token lives that the app issues, in days. */
export const TOKEN_DAYS = 365;

/** Lines that one request imports; a surface that has more sends more requests. */
export const IMPORT_REQUEST = { lines: 500 } as const;

/** Other memories that facts can be brought from. */
export const IMPORT_SOURCES = ['mcp-memory', 'markdown', 'basic-memory', 'chatgpt', 'claude'] as const;

/** What is read of another memory at once: bytes, entries in it, and the letters of a name in it that is repeated in every fact. */
export const IMPORT_TEXT = { bytes: 512 * KIB, entries: 5000, name: 200 } as const;

/** Tags and clients to choose from, of each the most used. */
export const LISTED_NAMES = 1000;

/** What `my-memory` shows at most; as JSON it grows beyond `bytes` for nothing but the newest key of each category. */
export const OVERVIEW = { categories: 50, keys: 5, bytes: 1000 } as const;

/** What `context` loads at most. */
export const CONTEXT = { facts: 50, bytes: 32_000 } as const;

/** Where agents find the memory unless its owner says otherwise. */
export const DEFAULT_ADDRESS = '127.0.0.1:7345';

/** What answers to a search hold at most: all values together, the part of one that fits, a value within markdown. */
export const SNIPPET = { bytes: 32_000, characters: 240, markdown: 2000 } as const;

/** What packs are held to. Lifetimes and times are seconds, but for progress and results, which count milliseconds. */
export const PACK = {
  /** An answer is kept for a day at most. */
  cacheTtl: DAY,
  /** What is larger is not kept. */
  cacheBytes: 512 * KIB,
  /** Of one run, unless its pack asks for another, and at most. */
  timeout: 30,
  maxTimeout: 600,
  /** Runs of one subject under way at once. */
  atOnce: 64,
  /** How long rows of what ran are kept. */
  recordTtl: 30 * DAY,
  findings: 50,
  /** Entries that packs may remember for one subject. They may take as many bytes as its facts, and take none of theirs. */
  memory: 10_000,
  /** A session ends after so long a rest. */
  sessionIdle: HOUR,
  /** Sessions that one subject may have open. */
  sessions: 100,
  /** What a pack may say at most. */
  outputBytes: 1024 * KIB,
} as const;

/** What pipelines are held to. Lifetimes are seconds. */
export const PIPELINE = {
  steps: 20,
  inputs: 20,
  /** Of one definition. */
  bytes: 32 * KIB,
  /** Of a title or description where others read them: in lists, resources and recommendations. */
  shownCharacters: 200,
  /** Lists and objects within each other, in what is kept or sent. */
  depth: 32,
  /** Definitions of one subject. */
  definitions: 100,
  /** A definition is kept for so long after it was changed or run. */
  ttl: TTL.max,
  /** Runs of one subject under way at once. */
  atOnce: 8,
  /** Runs of one subject that are kept after they ended; the oldest make room. */
  runs: 1000,
  runTtl: 7 * DAY,
  /** All that the record of a run shows of its outputs. */
  shownBytes: 768 * KIB,
  /** All outputs of a run together. */
  outputBytes: 8 * 1024 * KIB,
  /** The input of one step, with what its references stand for. */
  inputBytes: 1024 * KIB,
} as const;

/** What my-defaults shows at most. */
export const MY_DEFAULTS = { each: 12, findings: 20, recent: 200 } as const;

/** Inputs from which habits may be learned, if they are texts at the top. */
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

/** What packs are held to when they ask outside. Times are seconds. */
export const EGRESS = {
  bytes: 1024 * KIB,
  /** Of all headers of one answer. */
  headerBytes: 16 * KIB,
  redirects: 5,
  /** From the first question to the last byte, redirects included. */
  timeout: 20,
  /** Without a sign of life. */
  idleTimeout: 10,
} as const;

/** What embedding is held to. Times are seconds. */
export const EMBEDDING = {
  /** Texts in one question, and bytes in each. */
  texts: 256,
  bytes: 64 * KIB,
  /** Texts that Ollama is handed at once: what hangs is told from what is large. */
  batch: 16,
  /** Within this a batch is answered, its model being loaded included. */
  batchTimeout: 90,
  /** Within this a question is answered, its waiting included: what it takes longer for is asked in parts. */
  requestTimeout: 240,
  /** Questions under way or waiting, of one subject and in all. */
  queuedPerSubject: 16,
  queued: 64,
} as const;

/** What Claude Desktop installs with one click, as a file among those of the window. */
export const CLAUDE_BUNDLE = 'helmdeck-memory.mcpb';
