import type { FactsFilter } from '../place.ts';

/** `tag:name` or `tag:"two words"`; a quote that was not closed yet ends with the text. */
const NAMED = /(?:^|\s)(tag|client|category):(?:"((?:[^"\\]|\\.)*)(?:"|$)|(\S*))/s;

/** What was typed: words to look for, and at most one `tag:`, `client:` or `category:` that narrows where. */
export function readQuestion(text: string): { readonly words: string; readonly only?: FactsFilter } {
  const [whole, kind, quoted, plain = ''] = NAMED.exec(text) ?? [];
  if (whole === undefined || kind === undefined) return { words: text.trim() };
  const words = text.replace(whole, () => ' ').trim();
  const name = (quoted?.replace(/\\(.)/gs, '$1') ?? plain).trim();
  return name === '' ? { words } : { words, only: { [kind]: name } };
}

export const isSameFilter = (one: FactsFilter, other: FactsFilter): boolean =>
  one.category === other.category &&
  one.tag === other.tag &&
  one.client === other.client &&
  one.expiring_within === other.expiring_within;

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
