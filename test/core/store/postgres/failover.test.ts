import { expect, onTestFinished, test } from 'vitest';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import type { Space } from '../../../../src/core/store/store.ts';
import { manualClock } from '../../../support/clock.ts';
import { startProxy } from '../../../support/postgres-proxy.ts';
import { type PostgresServer, startPostgres, startStandby } from '../../../support/postgres.ts';
import { aDraft, withKey } from '../../../support/store.ts';

const me = { subject: 'me' };
/** The lane does more of them. */
const FAILOVERS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 25) / 25;
const WRITERS = 8;

/** Starts a primary that acknowledges a commit only when its standby has it too. */
async function startPair(): Promise<{ primary: PostgresServer; standby: PostgresServer }> {
  const primary = await startPostgres({ synchronous_standby_names: '*' });
  onTestFinished(() => primary[Symbol.asyncDispose]());
  const standby = await startStandby(primary);
  onTestFinished(() => standby[Symbol.asyncDispose]());
  const replication = () => primary.query('SELECT sync_state FROM pg_stat_replication');
  await expect.poll(replication).toEqual([{ sync_state: 'sync' }]);
  return { primary, standby };
}

/** Returns the keys of all entries, oldest first. */
async function keysOf(space: Space): Promise<string[]> {
  const keys: string[] = [];
  for (let after = {}; ;) {
    const page = await space.page({ sort: 'oldest', limit: 500, ...after });
    keys.push(...page.entries.map(({ key }) => key));
    if (!page.next) return keys;
    after = { after: page.next };
  }
}

const failovers = Array.from({ length: FAILOVERS }, (_, turn) => ({ turn, answers: turn % 2 === 0 ? 'lost' : 'sent' }));

// Kills the primary under writers, and promotes its standby.
test.each(failovers)(
  'failover $turn, commits with their answers $answers: no acknowledged write is lost, none is stored twice (R-PGSV-05, R-DUR-01)',
  async ({ answers }) => {
    const { primary, standby } = await startPair();
    await using proxy = await startProxy(primary.port);
    const { connection, schema } = primary.newMemory();
    const database = { connection: { ...connection, port: proxy.port }, schema };
    const open = () => PostgresStore.open({ database, clock: manualClock(), sources: withKey() });
    await using one = await open();
    await using other = await open();
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const [acknowledged, statuses, refusals] = [new Set<string>(), new Set<string>(), [] as unknown[]];
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      const facts = (writer % 2 === 0 ? one : other).space(me, 'fact');
      for (let turn = 0; !stop.signal.aborted; turn += 1) {
        const key = `${writer} ${turn}`;
        await facts.put(aDraft({ key }), aDraft({ key, category: 'activity' })).then(
          ({ status }) => {
            acknowledged.add(key);
            statuses.add(status);
          },
          (error: unknown) => refusals.push(error),
        );
      }
    });
    await expect.poll(() => acknowledged.size).toBeGreaterThan(50);
    proxy.fateOf = () => (answers === 'lost' ? 'silence' : 'pass');
    // Both processes wait for the answer to a commit that both servers have.
    await expect.poll(() => proxy.cut).toBe(answers === 'lost' ? 2 : 0);
    proxy.fateOf = () => 'pass';
    await primary.stop('SIGKILL');
    // The address leads to the standby before it is promoted. Our processes must not take it for the primary.
    proxy.serverPort = standby.port;
    const before = acknowledged.size;
    await standby.query('SELECT pg_promote()');
    await expect.poll(() => acknowledged.size).toBeGreaterThan(before + 50);
    expect((await other.space(me, 'fact').get([...acknowledged][0] ?? ''))?.value).toBe(aDraft().value);
    stop.abort();
    await Promise.all(writers);

    for (const error of refusals) expect(error).toMatchObject({ code: 'store_unavailable' });
    await using again = await open();
    const [facts, notes] = [await keysOf(again.space(me, 'fact')), await keysOf(again.space(me, 'activity'))];
    const stored = new Set(facts);
    expect([...acknowledged].filter((key) => !stored.has(key))).toEqual([]);
    // A write that is repeated finds its own fact, and changes nothing.
    expect([...statuses]).toEqual(['created']);
    expect(notes.toSorted()).toEqual(facts.toSorted());
  },
);
