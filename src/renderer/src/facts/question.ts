import type { FactsFilter } from '../place.ts';

const NAMED = /^\s*(tag|client|category):(.*)$/s;

/** What was typed: words to look for, or `tag:`, `client:` or `category:` with a name, which shows only those. */
export function readQuestion(text: string): { readonly words: string; readonly only?: FactsFilter } {
  const [, kind, rest = ''] = NAMED.exec(text) ?? [];
  const name = rest.trim();
  if (kind === undefined) return { words: text.trim() };
  return name === '' ? { words: '' } : { words: '', only: { [kind]: name } };
}

/** A filter in words, or undefined where everything is shown. */
export function filterName({ category, tag, client, expiring_within: within }: FactsFilter): string | undefined {
  if (category !== undefined) return `in ${category}`;
  if (tag !== undefined) return `tagged ${tag}`;
  if (client !== undefined) return `written by ${client}`;
  if (within !== undefined) return `going within ${within / 86_400} days`;
  return undefined;
}

/** What a filter shows, in the language of forgetting; there is no word for what goes by itself soon. */
export function scopeOf({ category, tag, client, expiring_within: within }: FactsFilter): string | undefined {
  if (category !== undefined) return `category:${category}`;
  if (tag !== undefined) return `tag:${tag}`;
  if (client !== undefined) return `client:${client}`;
  return within === undefined ? 'facts' : undefined;
}
