/** Figures both sides of every wire agree on. No zod here: the window imports this file too. */

const KIB = 1024;
const HOUR = 3600;
const DAY = 24 * HOUR;

/** Lifetimes in seconds. No fact lives for ever: 0 or nothing asks for the default. */
export const TTL = { min: HOUR, max: 365 * DAY, default: 90 * DAY } as const;

export const KEY_BYTES = 512;
export const VALUE_BYTES = 64 * KIB;
export const TAGS = { most: 32, characters: 64 } as const;
export const CATEGORY = { default: 'user_facts', pattern: /^[a-z0-9][a-z0-9_.-]{0,63}$/ } as const;

/** Names the engine writes under. An agent that could write there would teach the owner's agents false habits. */
export const RESERVED_CATEGORIES: ReadonlySet<string> = new Set(['pack_history', 'pipeline_history', 'plan_history', 'cache']);
export const RESERVED_KEY_PREFIXES = ['pack_history/', 'pipeline_history/', 'plan_history/'] as const;

/** Earlier versions kept for each key. */
export const HISTORY_VERSIONS = 20;

/** How long the record of who wrote and forgot what is kept, in seconds. */
export const ACTIVITY_TTL = 30 * DAY;

/** How long a forgotten thing is kept out of restored backups: as long as the longest lifetime. */
export const TOMBSTONE_TTL = TTL.max;

export const PAGE = { default: 50, most: 200 } as const;

/** Bounds of a question to the search. */
export const QUERY = { default: 20, most: 100, characters: 1000, searches: 32 } as const;
