import type { FactsFilter } from '../place.ts';

/** Matches `tag:name` or `tag:"two words"`. The closing quote may be missing while the owner types. */
const FILTER = /(?:^|\s)(tag|client|category):(?:"((?:[^"\\]|\\.)*)(?:"|$)|(\S*))/s;

/** Splits the text of the search box into words and at most one `tag:`, `client:` or `category:` filter (R-WIN-50). */
export function parseSearch(text: string): { readonly words: string; readonly filter?: FactsFilter } {
  const [match, kind, quoted, plain = ''] = FILTER.exec(text) ?? [];
  if (match === undefined || kind === undefined) return { words: text.trim() };
  const words = text.replace(match, () => ' ').trim();
  const name = (quoted?.replace(/\\(.)/gs, '$1') ?? plain).trim();
  return name === '' ? { words } : { words, filter: { [kind]: name } };
}

export const isSameFilter = (one: FactsFilter, other: FactsFilter): boolean =>
  one.category === other.category &&
  one.tag === other.tag &&
  one.client === other.client &&
  one.expiring_within === other.expiring_within;

/** The filter as a phrase that follows "facts"; undefined if it shows all facts. */
export function filterName({ category, tag, client, expiring_within: within }: FactsFilter): string | undefined {
  if (category !== undefined) return `in ${category}`;
  if (tag !== undefined) return `tagged ${tag}`;
  if (client !== undefined) return `written by ${client}`;
  if (within !== undefined) return `expiring within ${within / 86_400} days`;
  return undefined;
}

/** The forget scope that covers what the filter shows. There is no scope for facts that expire soon. */
export function scopeOf({ category, tag, client, expiring_within: within }: FactsFilter): string | undefined {
  if (category !== undefined) return `category:${category}`;
  if (tag !== undefined) return `tag:${tag}`;
  if (client !== undefined) return `client:${client}`;
  return within === undefined ? 'facts' : undefined;
}
