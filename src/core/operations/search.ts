import { LISTED_NAMES, SNIPPET } from '../../contract/limits.ts';
import { searchOf } from '../../contract/search.ts';
import { namespaceOf, signatures } from '../access/caller.ts';
import { markedField } from '../inbox/marks.ts';
import { snippetOf } from '../search/fact-reader.ts';
import type { Hit } from '../search/search-index.ts';
import { formatTime } from '../time/format-time.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { factChunk, runChunk } from './qmd-chunks.ts';

/**
 * Prefix of Helmdeck Memory's collections. OpenClaw also sends collections with other names, which are ignored, because nothing
 * would match them.
 */
const COLLECTION_PREFIX = 'helmdeck-';
const ELLIPSIS = ' […]';

export const search = ({ finder, scheduler }: MemoryDeps): Pick<Memory, 'search' | 'query' | 'names'> => ({
  async search(caller, { query, limit, mode, category, tag, client, expiring_within: within }, { signal }) {
    const { found, partial, meaning } = await finder.find(namespaceOf(caller), {
      texts: [query],
      limit,
      mode,
      signal,
      yieldTurn: () => scheduler.yieldTurn(caller.subject),
      ...(category !== undefined && { category }),
      ...(tag !== undefined && { tag }),
      ...(client !== undefined && { client }),
      ...(within !== undefined && { expiringWithin: within * 1000 }),
    });
    const values = withinBytes(
      found.map(({ fact }) => fact.value),
      SNIPPET.bytes,
    );
    const hits = found.map(({ fact, score, probability, spans, why }, place) => ({
      key: fact.key,
      category: fact.category,
      tags: [...fact.tags],
      ...signatures(fact),
      updated_at: formatTime(fact.updatedAt),
      score: roundScore(score),
      probability: roundScore(probability),
      snippet: snippetOf(fact.value, spans, SNIPPET.characters).text,
      value: values[place] ?? '',
      ...markedField(fact),
      expires_at: formatTime(fact.expiresAt),
      why,
    }));
    return { hits, ...(partial && { partial: true as const }), ...(meaning && { meaning }) };
  },

  names: (caller) => finder.names(namespaceOf(caller), LISTED_NAMES),

  async query(caller, request, { signal }) {
    const { limit, minScore = 0, collections = [] } = request;
    const wanted = new Set(collections.filter((name) => name.startsWith(COLLECTION_PREFIX)));
    const [only] = wanted;
    const asked = {
      ...searchOf(request),
      signal,
      yieldTurn: () => scheduler.yieldTurn(caller.subject),
      // The index can filter by a single category. For several categories, request more hits and filter them below.
      limit: wanted.size > 1 ? limit * 10 : limit,
      ...(wanted.size === 1 && only !== undefined && { category: only.slice(COLLECTION_PREFIX.length) }),
    };
    const [facts, runs] = await Promise.all([
      finder.find(namespaceOf(caller), asked),
      finder.find(namespaceOf(caller), asked, 'audit'),
    ]);
    const hits = [
      ...facts.found.map((hit) => ({ hit, chunk: factChunk })),
      ...runs.found.map((hit) => ({ hit, chunk: runChunk })),
    ].toSorted((one, other) => byScore(one.hit, other.hit));
    const results = hits
      .map(({ hit, chunk }) => ({ ...chunk(hit), score: roundScore(hit.score), probability: roundScore(hit.probability) }))
      .filter(({ score, collection }) => score >= minScore && (wanted.size === 0 || wanted.has(collection)))
      .slice(0, limit);
    return { results };
  },
});

const byScore = (one: Hit, other: Hit): number => other.score - one.score || other.fact.updatedAt - one.fact.updatedAt;

const roundScore = (score: number): number => Math.round(score * 1000) / 1000;

/**
 * Truncates values to `limit` bytes in total. Each value has an equal share. The bytes that short values do not need are given to
 * the first of the long values, which belong to the best hits.
 */
function withinBytes(values: readonly string[], limit: number): readonly string[] {
  const sizes = values.map((value) => Buffer.byteLength(value));
  if (sizes.reduce((sum, size) => sum + size, 0) <= limit) return values;
  const share = Math.floor(limit / values.length);
  let spare = sizes.reduce((left, size) => left - Math.min(size, share), limit);
  return values.map((value, place) => {
    const own = Math.min(sizes[place] ?? 0, share);
    const shown = cut(value, own + spare);
    spare -= Buffer.byteLength(shown) - own;
    return shown;
  });
}

function cut(value: string, most: number): string {
  if (Buffer.byteLength(value) <= most) return value;
  const room = most - Buffer.byteLength(ELLIPSIS);
  // Truncate the text by whole characters, because half a character is not valid UTF-8.
  let text = value.slice(0, room);
  while (Buffer.byteLength(text) > room) text = text.slice(0, Math.floor(text.length * 0.9));
  return (text.isWellFormed() ? text : text.slice(0, -1)) + ELLIPSIS;
}
