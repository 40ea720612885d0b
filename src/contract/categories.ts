export const CATEGORY = { default: 'user_facts', pack: 'pack_memory', pattern: /^[a-z0-9][a-z0-9_.-]{0,63}$/ } as const;
/** The rule for category names, as the end of a sentence in error messages. */
export const CATEGORY_RULE =
  'must have 1 to 64 characters of a-z, 0-9, "_", "." and "-" and begin with a letter or digit; choose a simpler one';

/** Categories that agents cannot write to. Otherwise an agent could store facts that look like run records or cached results. */
export const RESERVED_CATEGORIES: ReadonlySet<string> = new Set(['pack_history', 'pipeline_history', 'plan_history', 'cache']);
export const RESERVED_KEY_PREFIXES = ['pack_history/', 'pipeline_history/', 'plan_history/'] as const;
