import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Entry, PageQuery, Space } from '../store/store.ts';

/** Every entry that the query finds, at most `limit` of them decrypted per event loop turn. */
export async function* allEntries(space: Space, query: PageQuery): AsyncGenerator<Entry> {
  for (let after = {}; ;) {
    const { entries, next } = await space.page({ ...query, ...after });
    yield* entries;
    if (!next) return;
    after = { after: next };
    await nextTurn();
  }
}
