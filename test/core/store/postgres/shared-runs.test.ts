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

const saying = (what: string) => ({ id: 'race', steps: [{ id: 'one', pack: 'test.echo', input: { what } }] });
/** Rounds in which both processes write the same definition. */
const ROUNDS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 25);

/** Returns what the definition says through each process. */
const said = async ({ one, other }: Both): Promise<unknown[]> =>
  Promise.all([one, other].map(async ({ as }) => (await as(me)('pipeline', { id: 'race' })).steps[0]));

test('two clients that create the same pipeline through two processes: one creates it, the other is refused (R-DEFINE-01)', async () => {
  const both = await openBoth();
  const [one, other] = [both.one.as(aCaller({ client: 'first' })), both.other.as(aCaller({ client: 'second' }))];
  for (let round = 0; round < ROUNDS; round += 1) {
    const outcomes = await Promise.allSettled([
      one('createPipeline', saying(`first ${round}`)),
      other('createPipeline', saying(`second ${round}`)),
    ]);
    const winner = outcomes[0].status === 'fulfilled' ? 'first' : 'second';
    const created = { status: 'fulfilled', value: { status: 'created' } };
    const message = expect.stringMatching(new RegExp(`belongs to a pipeline by ${winner}`)) as string;
    const refused = { status: 'rejected', reason: { code: 'invalid_input', message } };
    expect(outcomes).toMatchObject(winner === 'first' ? [created, refused] : [refused, created]);
    const step = expect.objectContaining({ input: { what: `${winner} ${round}` } }) as unknown;
    expect(await said(both)).toEqual([step, step]);
    await (winner === 'first' ? one : other)('deletePipeline', { id: 'race' });
  }
});

test('one client that replaces a pipeline through two processes at once: no version is lost', async () => {
  const both = await openBoth();
  const { one, other } = both;
  for (let round = 0; round < ROUNDS; round += 1) {
    const outcomes = await Promise.all([
      one.as(me)('createPipeline', saying(`first ${round}`)),
      other.as(me)('createPipeline', saying(`second ${round}`)),
    ]);
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['created', 'updated']);
    const last = outcomes[0].status === 'updated' ? 'first' : 'second';
    const step = expect.objectContaining({ input: { what: `${last} ${round}` } }) as unknown;
    expect(await said(both)).toEqual([step, step]);
    const slots = await one.store
      .space({ subject: 'me' }, 'pack')
      .page({ sort: 'updated', category: 'pipeline:version', limit: 9 });
    const before = last === 'first' ? 'second' : 'first';
    expect(slots.entries.map(({ value }) => (JSON.parse(value) as { definition: unknown }).definition)).toEqual([
      expect.objectContaining(saying(`${before} ${round}`)),
    ]);
    await one.as(me)('deletePipeline', { id: 'race' });
  }
});

const session = { subject: 'me', session: 's' };

/** Stores an entry as a pack does in the session `s`. */
async function storeInSession({ store }: TestMemory): Promise<void> {
  const author = { client: 'c', origin: 'mcp', token: 't' } as const;
  await store.space(session, 'pack').put({ key: 'k', value: 'v', category: 'x', tags: [], author, lifetime: 1e9 });
}

const countInSession = ({ store }: TestMemory): Promise<number> => store.space(session, 'pack').count();

/** A run in the session `s`, which stores nothing. */
const runInSession = ({ as }: TestMemory): Promise<unknown> =>
  as(me)('runPack', { name: 'test.echo', input: { what: 'x' }, session: 's' });

test('a pack session that is only read for two hours stays, also at the start of another process (R-PGSV-07)', async () => {
  const { one, other, clock, release } = await openBoth();
  release();
  await runInSession(one);
  await storeInSession(one);
  for (let used = 0; used < 4; used += 1) {
    await clock.advance(30 * MINUTE);
    await runInSession(one);
    // Marks are rows of the database, so they do not depend on a connection of the process.
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'helmdeck-memory'");
    await other.packs.sessions.endLeftovers();
    expect(await countInSession(one)).toBe(1);
  }
  // The process that used the session last ends it.
  await clock.advance(59 * MINUTE);
  await other.packs.sessions.endLeftovers();
  expect(await countInSession(one)).toBe(1);
  await clock.advance(2 * MINUTE);
  await expect.poll(() => countInSession(one), EVENTUALLY).toBe(0);
});

test('a pack session of a process that was killed ends after an hour, without a start of any process (R-PGSV-07)', async () => {
  const { one, other, clock, release } = await openBoth();
  release();
  await runInSession(one);
  await storeInSession(one);
  await clock.advance(30 * MINUTE);
  await runInSession(one);
  one.packs.sessions[Symbol.dispose]();
  for (let waited = 0; waited < 5; waited += 1) {
    await clock.advance(11 * MINUTE);
    await other.packs.sessions.endLeftovers();
    expect(await countInSession(other)).toBe(1);
  }
  await clock.advance(20 * MINUTE);
  await expect.poll(() => countInSession(other), EVENTUALLY).toBe(0);
});

test('a pack session that two processes use stays until both have been idle for an hour (R-PGSV-07)', async () => {
  const { one, other, clock, release } = await openBoth();
  release();
  await runInSession(one);
  await storeInSession(one);
  await clock.advance(30 * MINUTE);
  await runInSession(other);
  await clock.advance(40 * MINUTE);
  // The idle timer of the first process has run.
  await one.packs.sessions.endLeftovers();
  expect(await countInSession(one)).toBe(1);
  await clock.advance(31 * MINUTE);
  await expect.poll(() => countInSession(one), EVENTUALLY).toBe(0);
});
