import { describe, expect, test } from 'vitest';
import { SHORTENING_GRACE, TTL } from '../../../src/contract/limits.ts';
import type { OperationName, OperationOutput, OperationRequest } from '../../../src/contract/operations.ts';
import { DAY, HOUR, START } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';

const iso = (at: number): string => new Date(at).toISOString();
const old = 'office/wifi';
const key = 'office/network';

type Call = <Name extends OperationName>(name: Name, input: OperationRequest<Name>) => Promise<OperationOutput<Name>>;

/** Everything that the owner can read about a fact. */
const readBy = async (call: Call, name: string) => ({
  fact: await call('recall', { key: name }),
  history: await call('history', { key: name }),
});

describe.each([
  { kept: 'in a file', keyless: false },
  { kept: 'in RAM', keyless: true },
])('a store with `supersedes`, in a memory $kept', ({ keyless }) => {
  /** A fact with one earlier version, and an hour later another client's fact that supersedes it. */
  const opened = async () => {
    const memory = await openTestMemory({ keyless });
    const [good, other, owner] = [
      memory.as(aCaller()),
      memory.as(aCaller({ client: 'other', token: 'token-2' })),
      memory.as(theOwner),
    ];
    await good('remember', { key: old, value: 'The guest network is Borealis', ttl_seconds: TTL.max });
    await memory.clock.advance(HOUR);
    await good('remember', { key: old, value: 'The guest network is Aurora', tags: ['wifi'], ttl_seconds: TTL.max });
    const before = await readBy(owner, old);
    await memory.clock.advance(HOUR);
    const since = iso(memory.clock.now());
    const receipt = await other('remember', { key, value: 'Visitors use Zephyr', supersedes: old });
    return { memory, good, other, owner, before, since, receipt };
  };

  test('names the superseded fact in receipt, history and activity, and no search finds it (R-MEAN-30, R-MEAN-34)', async () => {
    const { good, owner, receipt } = await opened();
    expect(receipt).toMatchObject({ key, status: 'created', superseded: old });
    expect((await good('history', { key })).versions).toMatchObject([
      { value: 'The guest network is Aurora', tags: ['wifi'], client: 'claude-code', former_key: old },
      { value: 'The guest network is Borealis', client: 'claude-code', former_key: old },
    ]);
    for (const query of ['guest network', 'Aurora', old, 'wifi', '']) {
      const { hits } = await good('search', { query });
      expect(hits.map((hit) => hit.key).filter((hit) => hit !== key)).toEqual([]);
    }
    expect((await good('list', { prefix: '' })).facts.map((fact) => fact.key)).toEqual([key]);
    await expect(good('recall', { key: old })).rejects.toMatchObject({ code: 'not_found' });
    const { activity } = await owner('activity', { limit: 1 });
    expect(activity).toMatchObject([{ operation: 'remember', client: 'other', key, supersedes: old }]);
  });

  test('fails without a change if the key names no fact, or the fact itself (R-MEAN-31)', async () => {
    const { good, owner } = await opened();
    const before = await owner('activity', {});
    const refused: readonly (readonly [string, string])[] = [
      [old, 'not_found'],
      ['nothing', 'not_found'],
      ['new', 'invalid_input'],
    ];
    for (const [supersedes, code] of refused) {
      const stored = good('remember', { key: 'new', value: 'v', supersedes });
      await expect(stored).rejects.toMatchObject({ code, message: expect.stringContaining('`supersedes`') as string });
    }
    await expect(good('recall', { key: 'new' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await owner('activity', {})).toEqual(before);
  });

  test('needs the right to write, and an import cannot supersede (R-MEAN-31)', async () => {
    const { memory, good } = await opened();
    const reader = memory.as(aCaller({ may: ['memory:read'] }));
    await expect(reader('remember', { key: 'new', value: 'v', supersedes: key })).rejects.toMatchObject({
      code: 'insufficient_scope',
    });
    const lines = [JSON.stringify({ key: 'new', value: 'v', supersedes: key })];
    expect(await good('import', { lines })).toMatchObject({ created: 0, errors: [{ line: 1 }] });
    expect(await good('recall', { key })).toMatchObject({ value: 'Visitors use Zephyr' });
  });

  test("is undone with the client's writes, and the fact is exactly as before (R-MEAN-32)", async () => {
    const { owner, before, since } = await opened();
    const planned = await owner('undo', { client: 'other', since, dry_run: true });
    expect(planned).toMatchObject({ removed: 1, restored: 1, skipped: [] });
    expect(await owner('undo', { client: 'other', since })).toMatchObject({ removed: 1, restored: 1, skipped: [] });
    expect(await readBy(owner, old)).toEqual(before);
    const { hits } = await owner('search', { query: 'Aurora' });
    expect(hits.map((hit) => hit.key)).toEqual([old]);
    expect((await owner('search', { query: 'Zephyr' })).hits).toEqual([]);
  });

  test('is undone alone, with the write that superseded, among writes of one millisecond (R-MEAN-32)', async () => {
    const { owner, other, before, memory } = await opened();
    await other('remember', { key: 'beside', value: 'kept' });
    await owner('undo', { client: 'other', since: iso(START) });
    expect(await readBy(owner, old)).toEqual(before);
    await memory.clock.advance(HOUR);
    await other('remember', { key: 'beside', value: 'kept' });
    await other('remember', { key, value: 'Visitors use Zephyr', supersedes: old });
    const { activity } = await owner('activity', { limit: 1 });
    const [row] = activity;
    await owner('undo', { client: 'other', since: row!.at, from: row!.id });
    expect(await readBy(owner, old)).toEqual(before);
    expect(await owner('recall', { key: 'beside' })).toMatchObject({ value: 'kept' });
  });

  test("is undone together with the same client's earlier write of the superseded fact (R-MEAN-32)", async () => {
    const { owner, other, memory, before } = await opened();
    await owner('undo', { client: 'other', since: iso(START) });
    await memory.clock.advance(HOUR);
    const since = iso(memory.clock.now());
    for (let number = 0; number < 30; number += 1) await other('remember', { key: `new ${number}`, value: 'v' });
    await other('remember', { key: old, value: 'Nobody has a network', supersedes: 'new 0' });
    await other('remember', { key: 'new 1', value: 'w', supersedes: old });
    await other('remember', { key: 'last', value: 'w', supersedes: 'new 1' });
    await owner('undo', { client: 'other', since });
    expect((await owner('list', {})).facts.map((fact) => fact.key)).toEqual([old]);
    expect(await owner('recall', { key: old })).toMatchObject({ value: before.fact.value, expires_at: before.fact.expires_at });
  });

  test('is forgotten with the fact that it superseded, and a dry run counts both (R-MEAN-33)', async () => {
    const { owner } = await opened();
    expect(await owner('forget', { scope: `key:${key}`, dry_run: true })).toMatchObject({ deleted: 2 });
    expect(await owner('forget', { scope: `key:${key}` })).toMatchObject({ deleted: 2 });
    expect(await owner('undo', { client: 'other', since: iso(START) })).toMatchObject({ removed: 0, restored: 0 });
    await expect(owner('recall', { key: old })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('can be undone after the window undid a forget of it (R-MEAN-32)', async () => {
    const { memory, owner, before } = await opened();
    const window = memory.as({ ...theOwner, transport: 'window' });
    const { undo } = await window('forget', { scope: `key:${key}` });
    await window('undoForget', { undo: undo! });
    expect((await owner('history', { key })).versions).toMatchObject([{ former_key: old }, { former_key: old }]);
    await owner('undo', { client: 'other', since: iso(START) });
    expect(await readBy(owner, old)).toEqual(before);
  });

  test("keeps another client's fact for a week, says so, and records both expiry times (R-MEAN-34)", async () => {
    const { other, owner, memory, before, since } = await opened();
    await owner('undo', { client: 'other', since });
    const input = { key, value: 'Visitors use Zephyr', supersedes: old, ttl_seconds: HOUR / 1000 };
    const receipt = await other('remember', input);
    const end = memory.clock.now() + SHORTENING_GRACE * 1000;
    expect(receipt).toMatchObject({ expires_at: iso(end), note: expect.stringContaining('Another client') as string });
    const { activity } = await owner('activity', { limit: 1 });
    expect(activity).toMatchObject([
      { key, supersedes: old, shortened: { from: before.fact.expires_at, to: receipt.expires_at } },
    ]);
    await memory.clock.advance(6 * DAY);
    await other('patch', { key, ttl_seconds: HOUR / 1000 });
    expect(await owner('recall', { key })).toMatchObject({ expires_at: iso(end) });
    await owner('undo', { client: 'other', since });
    expect(await readBy(owner, old)).toEqual(before);
  });
});
