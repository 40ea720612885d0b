import { describe, expect, test } from 'vitest';
import { SHORTENING_GRACE, TTL } from '../../../src/contract/limits.ts';
import { DAY, HOUR, START } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';

const HOUR_S = HOUR / 1000;
const GRACE = SHORTENING_GRACE * 1000;
const iso = (at: number): string => new Date(at).toISOString();
const key = 'decisions/database';

describe.each([
  { kept: 'in a file', keyless: false },
  { kept: 'in RAM', keyless: true },
])('a shorter life for the fact of another client, in a memory $kept', ({ keyless }) => {
  const opened = async () => {
    const memory = await openTestMemory({ keyless });
    const [good, other, owner] = [
      memory.as(aCaller()),
      memory.as(aCaller({ client: 'other', token: 'token-2' })),
      memory.as(theOwner),
    ];
    await good('remember', { key, value: 'PostgreSQL', ttl_seconds: TTL.max });
    await memory.clock.advance(DAY);
    return { memory, good, other, owner, end: START + TTL.max * 1000, since: iso(memory.clock.now()) };
  };
  type Opened = Awaited<ReturnType<typeof opened>>;

  const ways: readonly { by: string; shorten: (with_: Opened) => Promise<unknown> }[] = [
    { by: 'a renewal', shorten: ({ other }) => other('patch', { key, ttl_seconds: HOUR_S }) },
    { by: 'storing it again', shorten: ({ other }) => other('remember', { key, value: 'PostgreSQL', ttl_seconds: HOUR_S }) },
    { by: 'another value', shorten: ({ other }) => other('remember', { key, value: 'none', ttl_seconds: HOUR_S }) },
    {
      by: 'an import',
      shorten: ({ other }) => other('import', { lines: [JSON.stringify({ key, value: 'PostgreSQL', ttl_seconds: HOUR_S })] }),
    },
  ];

  test.each(ways)(
    'by $by is recorded, leaves the owner a week, and can be undone (R-HIST-03, R-HIST-05)',
    async ({ shorten }) => {
      const all = await opened();
      const { memory, owner, end, since } = all;
      const now = memory.clock.now();
      await shorten(all);
      expect(await owner('recall', { key })).toMatchObject({ client: 'other', expires_at: iso(now + GRACE) });
      expect((await owner('history', { key })).versions).toMatchObject([
        { value: 'PostgreSQL', client: 'claude-code', expires_at: iso(end) },
      ]);
      const { activity } = await owner('activity', { limit: 1 });
      expect(activity).toMatchObject([{ client: 'other', key, shortened: { from: iso(end), to: iso(now + GRACE) } }]);

      await memory.clock.advance(6 * DAY);
      expect(await owner('undo', { client: 'other', since })).toMatchObject({ restored: 1 });
      expect(await owner('recall', { key })).toMatchObject({ value: 'PostgreSQL', client: 'claude-code', expires_at: iso(end) });
    },
  );

  test.each(ways)('by $by has the same limit in two steps, and never extends the fact', async ({ shorten }) => {
    const all = await opened();
    const { memory, other, owner } = all;
    const week = memory.clock.now() + GRACE;
    // The attacker replaces the fact first, and then shortens its own version.
    await other('remember', { key, value: 'SQLite', ttl_seconds: TTL.max });
    for (let day = 0; day < 3; day += 1) {
      await shorten(all);
      expect(await owner('recall', { key })).toMatchObject({ client: 'other', expires_at: iso(week) });
      await memory.clock.advance(DAY);
    }
  });

  test('changes nothing if the fact expires sooner anyway', async () => {
    const { memory, good, other } = await opened();
    await good('patch', { key, ttl_seconds: 2 * HOUR_S });
    const end = iso(memory.clock.now() + 2 * HOUR);
    expect(await other('patch', { key, ttl_seconds: HOUR_S })).toMatchObject({ expires_at: end, client: 'claude-code' });
    expect((await good('history', { key })).versions).toEqual([]);
  });

  test('by an import is no different for the owner: a file ends nothing soon (R-HIST-05)', async () => {
    const { memory, owner } = await opened();
    const now = memory.clock.now();
    for (const value of ['PostgreSQL', 'none'])
      await owner('import', { lines: [JSON.stringify({ key, value, ttl_seconds: HOUR_S })] });
    expect(await owner('recall', { key })).toMatchObject({ expires_at: iso(now + GRACE) });
  });

  test('by an import is no different for facts of the same client: a file ends nothing soon (R-HIST-05)', async () => {
    const { memory, good, owner } = await opened();
    await owner('remember', { key: 'own', value: 'v', ttl_seconds: TTL.max });
    const week = iso(memory.clock.now() + GRACE);
    const line = (of: string, value: string) => JSON.stringify({ key: of, value, ttl_seconds: HOUR_S });
    await owner('import', { lines: [line('own', 'v')] });
    expect(await owner('recall', { key: 'own' })).toMatchObject({ expires_at: week });
    await good('import', { lines: [line(key, 'another')] });
    expect(await owner('recall', { key })).toMatchObject({ value: 'another', expires_at: week });
    await memory.clock.advance(2 * DAY);
    await good('import', { lines: [line(key, 'another')] });
    expect(await owner('recall', { key })).toMatchObject({ expires_at: week });
  });

  test('is reported to the caller, and does not limit the owner or the client itself', async () => {
    const { memory, good, other, owner } = await opened();
    const anHour = iso(memory.clock.now() + HOUR);
    const stored = await other('remember', { key, value: 'none', ttl_seconds: HOUR_S });
    expect(stored).toMatchObject({
      expires_at: iso(memory.clock.now() + GRACE),
      note: expect.stringMatching(/expires later than requested/),
    });
    await good('remember', { key: 'own', value: 'v', ttl_seconds: TTL.max });
    const again = await good('remember', { key: 'own', value: 'v', ttl_seconds: HOUR_S });
    expect(again).toMatchObject({ status: 'unchanged', expires_at: anHour });
    expect(again.note ?? '').not.toMatch(/stays longer/);
    expect(await owner('patch', { key, ttl_seconds: HOUR_S })).toMatchObject({ expires_at: anHour });
  });

  test('a client may shorten a fact freely a week after it replaced the other version', async () => {
    const { memory, other } = await opened();
    await other('remember', { key, value: 'SQLite', ttl_seconds: TTL.max });
    await memory.clock.advance(GRACE);
    expect(await other('patch', { key, ttl_seconds: HOUR_S })).toMatchObject({ expires_at: iso(memory.clock.now() + HOUR) });
  });

  test('a version that was undone sets no limit', async () => {
    const { memory, good, other, owner, since } = await opened();
    await other('remember', { key, value: 'SQLite', ttl_seconds: TTL.max });
    await owner('undo', { client: 'other', since });
    expect(await good('patch', { key, ttl_seconds: HOUR_S })).toMatchObject({ expires_at: iso(memory.clock.now() + HOUR) });
  });
});

describe.each([
  { kept: 'in a file', keyless: false },
  { kept: 'in RAM', keyless: true },
])('a pipeline of another client, in a memory $kept', ({ keyless }) => {
  const opened = async () => {
    const memory = await openTestMemory({ keyless });
    const client = async (name: string) => {
      const { token } = await memory.tokens.mint({
        name,
        client: name,
        subject: 'me',
        scopes: ['memory:read', 'memory:write', 'packs:run'],
        days: 30,
      });
      return memory.as(await memory.tokens.verify(token, 'rest'));
    };
    return { memory, good: await client('good'), bad: await client('bad'), owner: memory.as(theOwner) };
  };
  const store = (id: string, value: string, ttl?: number) => ({
    id,
    pack: 'helmdeck.memory_store',
    input: { key: 'k', value, ...(ttl !== undefined && { ttl_seconds: ttl }) },
  });

  test('cannot shorten the fact of the client that runs it (R-HIST-05)', async () => {
    const { memory, good, bad, owner } = await opened();
    await good('remember', { key: 'k', value: 'original', ttl_seconds: TTL.max });
    const end = memory.clock.now() + TTL.max * 1000;
    await memory.clock.advance(HOUR);
    const since = iso(memory.clock.now());
    await bad('createPipeline', { id: 'helpful', steps: [store('one', 'planted', HOUR_S)] });
    const week = iso(memory.clock.now() + GRACE);
    await good('finishPipeline', { id: 'helpful' });
    const { activity } = await owner('activity', {});
    expect(activity.find(({ operation }) => operation === 'remember')).toMatchObject({
      client: 'good',
      defined_by: 'bad',
      shortened: { from: iso(end), to: week },
    });
    await memory.clock.advance(6 * DAY);
    expect(await owner('undo', { client: 'bad', since })).toMatchObject({ restored: 1, skipped: [] });
    expect(await owner('recall', { key: 'k' })).toMatchObject({ value: 'original', expires_at: iso(end) });
  });

  test('cannot evict the version of the client that runs it (R-HIST-02)', async () => {
    const { memory, good, bad, owner } = await opened();
    await good('remember', { key: 'k', value: 'original' });
    await memory.clock.advance(HOUR);
    const since = iso(memory.clock.now());
    await bad('createPipeline', { id: 'helpful', steps: Array.from({ length: 20 }, (_, n) => store(`s${n}`, `planted ${n}`)) });
    for (let run = 0; run < 2; run += 1) await good('finishPipeline', { id: 'helpful' });
    const { versions } = await owner('history', { key: 'k' });
    expect(versions.at(-1)).toMatchObject({ value: 'original', client: 'good' });
    expect(await owner('undo', { client: 'bad', since })).toMatchObject({ restored: 1, skipped: [] });
    expect((await owner('recall', { key: 'k' })).value).toBe('original');
  });
});

test('clients without a name are told apart by their tokens (R-HIST-02, R-HIST-05)', async () => {
  const memory = await openTestMemory();
  const nameless = (token: string) => memory.as(aCaller({ client: 'unknown', token }));
  await nameless('one')('remember', { key: 'k', value: 'original', ttl_seconds: TTL.max });
  const week = iso(memory.clock.now() + GRACE);
  expect(await nameless('two')('remember', { key: 'k', value: 'planted', ttl_seconds: HOUR_S })).toMatchObject({
    expires_at: week,
  });
  for (let turn = 0; turn < 30; turn += 1) await nameless('two')('remember', { key: 'k', value: `planted ${turn}` });
  expect((await memory.as(theOwner)('history', { key: 'k' })).versions.at(-1)).toMatchObject({ value: 'original' });
});
