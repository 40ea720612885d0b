import type { FactsFilter } from '../place.ts';

/** Matches a filter such as `tag:name` or `tag:"two words"`. The closing quote can be missing while the owner is typing. */
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

/** Returns the filter as words that can follow "facts", such as "tagged work". Undefined if the filter shows all facts. */
export function filterName({ category, tag, client, expiring_within: within }: FactsFilter): string | undefined {
  if (category !== undefined) return `in ${category}`;
  if (tag !== undefined) return `tagged ${tag}`;
  if (client !== undefined) return `written by ${client}`;
  if (within !== undefined) return `expiring within ${within / 86_400} days`;
  return undefined;
}

/** Returns the `forget` scope for the facts that the filter shows. Undefined for "Expiring soon": no scope selects by expiry. */
export function scopeOf({ category, tag, client, expiring_within: within }: FactsFilter): string | undefined {
  if (category !== undefined) return `category:${category}`;
  if (tag !== undefined) return `tag:${tag}`;
  if (client !== undefined) return `client:${client}`;
  return within === undefined ? 'facts' : undefined;
}
