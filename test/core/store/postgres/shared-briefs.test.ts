import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { manualClock, SECOND } from '../../../support/clock.ts';
import { EVENTUALLY } from '../../../support/listener.ts';
import { aCaller, openTestMemory, type TestMemory } from '../../../support/memory.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { withKey } from '../../../support/store.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const codex = aCaller({ client: 'codex' });
const claude = aCaller({ transport: 'rest' });
const SILENT = { text: '', keys: [] };

test('a session is told a fact once by all processes of a database (R-BRIEF-07, R-BRIEF-08)', async () => {
  const database = server.newMemory();
  const clock = manualClock();
  const open = async (): Promise<TestMemory> => {
    const store = await PostgresStore.open({ database, clock, sources: withKey() });
    onTestFinished(() => store[Symbol.asyncDispose]());
    return openTestMemory({ store, clock });
  };
  const [one, other] = [await open(), await open()];
  const shownIn = async ({ as }: TestMemory): Promise<number> =>
    (await as(codex)('recall', { key: 'preferences/editor' })).shown?.count ?? 0;
  const told = (memory: TestMemory, times: number): Promise<void> =>
    vi.waitFor(async () => expect(await shownIn(memory)).toBe(times), EVENTUALLY);
  await one.as(codex)('remember', { key: 'preferences/editor', value: 'Helix', category: 'preferences' });
  // The other process knows the session before it is told anything there.
  expect(await other.as(claude)('brief', { session: 's', prompt: 'What is 3 plus 4?' })).toEqual(SILENT);

  expect((await one.as(claude)('brief', { session: 's' })).keys).toEqual(['preferences/editor']);
  await told(other, 1);
  expect(await other.as(claude)('brief', { session: 's' })).toEqual(SILENT);

  await clock.advance(SECOND);
  expect((await other.as(claude)('brief', { session: 's', repeat: true })).keys).toEqual(['preferences/editor']);
  await told(one, 2);
  expect(await one.as(claude)('brief', { session: 's' })).toEqual(SILENT);

  await clock.advance(SECOND);
  await other.as(codex)('remember', { key: 'preferences/editor', value: 'Zed', category: 'preferences' });
  expect((await one.as(claude)('brief', { session: 's' })).text).toContain('Zed');
});
