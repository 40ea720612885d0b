import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { manualClock, MINUTE } from '../../../support/clock.ts';
import { EVENTUALLY } from '../../../support/listener.ts';
import { aCaller, openTestMemory, type TestMemory } from '../../../support/memory.ts';
import { aPack } from '../../../support/packs.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { withKey } from '../../../support/store.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const me = aCaller();
const PIPELINE = { id: 'wait', steps: [{ id: 'one', pack: 'test.echo', input: { what: 'x' } }] };

interface Both {
  readonly one: TestMemory;
  readonly other: TestMemory;
  /** Lets the pack end. */
  readonly release: () => void;
  readonly clock: ReturnType<typeof manualClock>;
}

/** Opens one memory in two processes. The pack of both waits until it is released or cancelled. */
async function openBoth(): Promise<Both> {
  const database = server.newMemory();
  const clock = manualClock();
  const { promise, resolve: release } = Promise.withResolvers<void>();
  const pack = aPack(
    async ({ signal }) => {
      await Promise.race([
        promise,
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
      ]);
      return { said: 'done' };
    },
    { seconds: 600 },
  );
  const open = async (): Promise<TestMemory> => {
    const store = await PostgresStore.open({ database, clock, sources: withKey() });
    onTestFinished(() => store[Symbol.asyncDispose]());
    return openTestMemory({ store, clock, packs: { packs: [pack] } });
  };
  return { one: await open(), other: await open(), release, clock };
}

const statusOf = async ({ as }: TestMemory, run_id: string): Promise<string> => (await as(me)('pipelineRun', { run_id })).status;

test('a run of one process is running for the others, and a process that starts does not end it (R-PACK-12)', async () => {
  const { one, other, release, clock } = await openBoth();
  await one.as(me)('createPipeline', PIPELINE);
  const { run_id } = await one.as(me)('runPipeline', { id: 'wait', inputs: {} });
  expect(await statusOf(other, run_id)).toBe('running');
  await other.packs.resume();
  expect(await statusOf(other, run_id)).toBe('running');
  for (let minute = 0; minute < 6; minute += 1) {
    await clock.advance(MINUTE / 3);
    await expect
      .poll(
        async () => (await other.store.space({ subject: 'me' }, 'pack').get(`pipeline-runs/${run_id}`))?.expiresAt,
        EVENTUALLY,
      )
      .toBeGreaterThan(clock.now() + 7 * 24 * 60 * MINUTE - MINUTE / 3 - 1);
    expect(await statusOf(other, run_id)).toBe('running');
  }
  await other.packs.resume();
  release();
  await expect.poll(() => statusOf(other, run_id), EVENTUALLY).toBe('succeeded');
});

test('a run of a process that was killed is interrupted a minute later (R-PGSV-06)', async () => {
  const { one, other, clock } = await openBoth();
  await one.as(me)('createPipeline', PIPELINE);
  const { run_id } = await one.as(me)('runPipeline', { id: 'wait', inputs: {} });
  await expect.poll(async () => (await other.as(me)('pipelineRun', { run_id })).steps[0]?.status, EVENTUALLY).toBe('running');
  // A killed process renews nothing.
  one.packs.pipelines[Symbol.dispose]();
  await clock.advance(MINUTE + 1);
  expect(await statusOf(other, run_id)).toBe('failed');
  await other.packs.resume();
  expect((await other.as(me)('pipelineRuns', {})).runs).toMatchObject([{ run_id, status: 'failed' }]);
});

test('a run is cancelled through another process, by its caller and by a forget (R-PGSV-06, R-FORGET-08)', async () => {
  const { one, other } = await openBoth();
  await one.as(me)('createPipeline', PIPELINE);
  const { run_id } = await one.as(me)('runPipeline', { id: 'wait', inputs: {} });
  expect(await other.as(me)('cancelPipelineRun', { run_id })).toMatchObject({ status: 'cancelled' });
  await one.as(me)('createPipeline', PIPELINE);
  await one.as(me)('runPipeline', { id: 'wait', inputs: {} });
  await other.as(me)('forget', { scope: 'client:claude-code' });
  expect((await one.as(me)('pipelineRuns', {})).runs).toEqual([]);
});

test('the memory of a pack session stays while another process uses it', async () => {
  const { one, other, clock } = await openBoth();
  const session = { subject: 'me', session: 's' };
  await one.packs.sessions.open(me, 's');
  const draft = {
    key: 'k',
    value: 'v',
    category: 'x',
    tags: [],
    author: { client: 'c', origin: 'mcp', token: 't' },
    lifetime: 1e9,
  };
  await one.store.space(session, 'pack').put(draft);
  await other.packs.sessions.endLeftovers();
  expect(await one.store.space(session, 'pack').count()).toBe(1);
  await clock.advance(61 * MINUTE);
  await other.packs.sessions.endLeftovers();
  await expect.poll(() => one.store.space(session, 'pack').count(), EVENTUALLY).toBe(0);
});
