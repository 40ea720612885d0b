import type { FactReceipt } from '../../contract/fact.ts';
import { SIMILAR } from '../../contract/limits.ts';
import { type Caller, hasScope, namespaceOf, signatures } from '../access/caller.ts';
import { markedField } from '../inbox/marks.ts';
import type { Entry } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import type { MemoryDeps } from './memory.ts';

const ELLIPSIS = '…';

/**
 * Looks for facts under other keys that probably repeat or contradict a fact, for a limited time. The fact is already stored, so no
 * failure of this search is reported.
 */
export async function similarTo(
  { finder, scheduler }: Pick<MemoryDeps, 'finder' | 'scheduler'>,
  caller: Caller,
  fact: Entry,
): Promise<Pick<FactReceipt, 'similar'>> {
  if (!hasScope(caller, 'memory:read')) return {};
  const timeout = new AbortController();
  const { promise: late, resolve } = Promise.withResolvers<'pending'>();
  const timer = setTimeout(() => {
    resolve('pending');
    timeout.abort();
  }, SIMILAR.ms);
  try {
    const search = finder.findNear(namespaceOf(caller), fact, { limit: SIMILAR.facts, signal: timeout.signal });
    // A model that fails or is being loaded is as good as none.
    const found = await Promise.race([search.catch(() => undefined), late]);
    if (found === 'pending') return { similar: found };
    if (found === undefined || found.length === 0) return {};
    await scheduler.yieldTurn(caller.subject);
    return {
      similar: found.map(({ fact: other, probability }) => ({
        key: other.key,
        value: shortened(other.value),
        ...markedField(other),
        ...signatures(other),
        updated_at: formatTime(other.updatedAt),
        score: Math.round(probability * 100) / 100,
      })),
    };
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the beginning of a long value. Never cuts a character of two UTF-16 units. */
function shortened(value: string): string {
  if (value.length <= SIMILAR.characters) return value;
  const characters = Array.from(value.slice(0, 2 * SIMILAR.characters));
  return `${characters.slice(0, SIMILAR.characters - ELLIPSIS.length).join('')}${ELLIPSIS}`;
}
