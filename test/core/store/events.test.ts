import { describe, expect, test } from 'vitest';
import type { EntryEvent } from '../../../src/core/store/store.ts';
import { HOUR } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';

/** The entries as a listener knows them. */
function followed(changes: readonly EntryEvent[]): string[] {
  const known = new Map<number, string>();
  for (const change of changes) {
    if (change.what === 'reset') known.clear();
    else if (change.what === 'deleted') known.delete(change.row);
    else if (change.kind === 'fact')
      known.set(change.row, `${change.namespace.subject} ${change.entry.key}=${change.entry.value}`);
  }
  return [...known.values()].toSorted();
}

describe.each([
  { kept: 'in a file', keyless: false },
  { kept: 'in RAM', keyless: true },
])('following a memory $kept', ({ keyless }) => {
  test('every change of a fact is published before its writer is answered', async () => {
    const memory = await openTestMemory({ keyless, quota: { facts: 6, bytes: 1_000_000 } });
    const heard: EntryEvent[] = [];
    memory.store.onEntryEvent((change) => heard.push(change));
    const there = async (): Promise<string[]> => {
      const { facts } = await memory.as(aCaller())('list', { values: true, limit: 200 });
      return facts.map(({ key, value }) => `me ${key}=${value}`).toSorted();
    };
    const me = memory.as(aCaller());
    const other = memory.as(aCaller({ client: 'other' }));
    const step = async (run: () => Promise<unknown>): Promise<void> => {
      await run().catch(() => undefined);
      // Nothing is awaited in between, so the listener knows what the writer knows.
      const believed = followed(heard);
      expect(believed).toEqual(await there());
    };
    await step(() => me('remember', { key: 'a', value: '1' }));
    await step(() => Promise.all(['b', 'c', 'd'].map((key) => me('remember', { key, value: '1', category: key }))));
    await step(() => other('remember', { key: 'a', value: '2' }));
    await step(() => me('patch', { key: 'b', tags: ['t'] }));
    await step(() => me('undo', { client: 'other', since: new Date(0).toISOString() }));
    await step(() => me('forget', { scope: 'category:c' }));
    await step(() => me('remember', { key: 'e', value: '1', ttl_seconds: 3600 }));
    // Two of these are refused and publish no event.
    await step(() => Promise.allSettled(['f', 'g', 'h', 'i'].map((key) => me('remember', { key, value: '1' }))));
    await memory.clock.advance(HOUR);
    await step(() => me('forget', { scope: 'tag:t' }));
    await step(() => me('import', { lines: ['{"key":"j","value":"1"}', '{"key":"a","value":"3"}'] }));
    await step(() => me('forget', { scope: 'all' }));
    expect(followed(heard)).toEqual([]);
  });
});

test('a lock resets the listeners', async () => {
  const memory = await openTestMemory();
  const heard: EntryEvent[] = [];
  await memory.as(aCaller())('remember', { key: 'a', value: '1' });
  // The row of the lock is written first, while there is a key.
  memory.store.onEntryEvent((change) => {
    if (change.what !== 'stored' || change.kind !== 'activity') heard.push(change);
  });
  await memory.as(theOwner)('lock', {});
  expect(heard).toEqual([{ what: 'reset' }]);
});
