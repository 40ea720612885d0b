import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RECORDED_ACTIONS } from '../../../src/contract/history.ts';
import { operations } from '../../../src/contract/operations.ts';
import { isRecordedAction } from '../../../src/core/operations/perform.ts';
import { MINUTE } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';

const iso = (at: number): string => new Date(at).toISOString();

test('every operation of an administrator that has an effect is recorded (R-VIEW-07)', () => {
  const effective = Object.entries(operations).flatMap(([name, { scope, effect }]) =>
    scope === 'admin' && effect !== 'none' ? [name] : [],
  );
  expect(Object.keys(RECORDED_ACTIONS).toSorted()).toEqual(effective.toSorted());
  expect(isRecordedAction('constructor')).toBe(false);
});

test('forgetting all of a large memory leaves one row, which records the forget (R-FORGET-04)', async () => {
  const memory = await openTestMemory();
  const [me, owner] = [memory.as(aCaller()), memory.as(theOwner)];
  const keys = Array.from({ length: 3000 }, (_, index) => `k${index}`);
  await Promise.all(keys.map((key) => me('remember', { key, value: key.repeat(300) })));
  const { deleted } = await owner('forget', { scope: 'all' });
  expect(deleted).toBe(3000);
  expect((await owner('activity', {})).activity).toMatchObject([{ operation: 'forget', scope: 'all', client: 'command-line' }]);
});

describe('an administrator', () => {
  test('is recorded with the target of each action, and no secret (R-VIEW-07)', async () => {
    const memory = await openTestMemory();
    const owner = memory.as(theOwner);
    const at = (): string => iso(memory.clock.now());
    const row = { id: expect.any(String), client: 'command-line', at: at() };
    const minted = await owner('mintToken', { name: 'laptop', client: 'codex' });
    await owner('pauseToken', { id: minted.id, paused: true });
    await owner('revokeToken', { id: minted.id });
    const { recovery_key: secret } = await owner('makeRecoveryKey', {});
    await owner('backup', {});
    const { activity } = await owner('activity', {});
    expect(activity).toEqual([
      { ...row, operation: 'backup' },
      { ...row, operation: 'makeRecoveryKey' },
      { ...row, operation: 'revokeToken', target: minted.id },
      { ...row, operation: 'pauseToken', target: minted.id },
      { ...row, operation: 'mintToken', target: 'laptop' },
    ]);
    expect(JSON.stringify(activity)).not.toContain(minted.token);
    expect(JSON.stringify(activity)).not.toContain(secret);
    expect((await memory.store.space({ subject: 'me' }, 'activity').page({ sort: 'updated', limit: 1 })).entries).toMatchObject([
      { author: { client: 'command-line', origin: 'owner' } },
    ]);
  });

  test('leaves a row for each lock, written before it, and for each unlock, written after it (R-VIEW-07)', async () => {
    const memory = await openTestMemory();
    const owner = memory.as(theOwner);
    await owner('lock', {});
    await memory.clock.advance(MINUTE);
    await owner('unlock', {});
    expect((await owner('activity', {})).activity.map(({ operation }) => operation)).toEqual(['unlock', 'lock']);
  });

  test('leaves no row for a refused call or a dry run (R-VIEW-07)', async () => {
    const memory = await openTestMemory();
    const owner = memory.as(theOwner);
    await expect(owner('revokeToken', { id: 'unknown' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(memory.as(aCaller())('mintToken', { name: 'mine' })).rejects.toMatchObject({ code: 'insufficient_scope' });
    await owner('trustClock', { time: iso(memory.clock.now()), dry_run: true });
    expect((await owner('activity', {})).activity).toEqual([]);
  });

  test('can revoke a token while the memory is locked, and the unlock records it with its time (R-AUTH-10, R-VIEW-07)', async () => {
    const memory = await openTestMemory();
    const owner = memory.as(theOwner);
    const { id } = await owner('mintToken', { name: 'laptop' });
    await owner('lock', {});
    await memory.clock.advance(MINUTE);
    const at = iso(memory.clock.now());
    await owner('revokeToken', { id });
    await memory.clock.advance(MINUTE);
    await owner('unlock', {});
    expect((await owner('activity', {})).activity).toMatchObject([
      { operation: 'unlock' },
      { operation: 'revokeToken', target: id, at },
      { operation: 'lock' },
      { operation: 'mintToken' },
    ]);
  });

  test('who forgets everything while the memory is locked is recorded at the unlock (R-FORGET-04, R-FORGET-11)', async () => {
    const memory = await openTestMemory();
    const owner = memory.as(theOwner);
    await owner('remember', { key: 'k', value: 'v' });
    await owner('lock', {});
    await memory.clock.advance(MINUTE);
    const at = iso(memory.clock.now());
    await owner('forget', { scope: 'all' });
    await memory.clock.advance(MINUTE);
    await owner('unlock', {});
    const { activity } = await owner('activity', {});
    expect(activity).toMatchObject([{ operation: 'unlock' }, { operation: 'forget', scope: 'all', at }]);
  });

  test('whose action fails part way leaves a row that says so (R-VIEW-07)', async () => {
    const memory = await openTestMemory();
    const owner = memory.as(theOwner);
    // The backup cannot be written.
    writeFileSync(join(memory.folder, 'backups'), '');
    await expect(owner('backup', {})).rejects.toThrow(Error);
    expect((await owner('activity', {})).activity).toMatchObject([{ operation: 'backup', failed: true }]);
  });
});
