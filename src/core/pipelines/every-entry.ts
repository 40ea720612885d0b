import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Entry, Space } from '../store/store.ts';

/** Every entry of a category, most recently written first, decrypting `limit` entries per event loop turn. */
export async function* allEntries(space: Space, category: string, limit: number): AsyncGenerator<Entry> {
  for (let after = {}; ;) {
    const { entries, next } = await space.page({ sort: 'updated', category, limit, ...after });
    yield* entries;
    if (!next) return;
    after = { after: next };
    await nextTurn();
  }
}
