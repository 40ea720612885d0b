import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Entry, PageQuery, Space } from '../store/store.ts';

/** Returns every entry that the query finds. Decrypts at most `limit` entries in one turn of the event loop. */
export async function* allEntries(space: Space, query: PageQuery): AsyncGenerator<Entry> {
  for (let after = {}; ;) {
    const { entries, next } = await space.page({ ...query, ...after });
    yield* entries;
    if (!next) return;
    after = { after: next };
    await nextTurn();
  }
}
