import { rmSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import { RamStore } from '../../../src/core/store/ram-store.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { recoverKey, restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { DAY, type ManualClock, manualClock, HOUR } from '../../support/clock.ts';
import { A_KEY, manualKeySource, openFileStore, withKey } from '../../support/store.ts';
import { filesBelow, tempFolder } from '../../support/temp-folder.ts';

const key = Buffer.from(A_KEY, 'hex');

const stores: Record<string, (clock: ManualClock) => Promise<MemoryStore>> = {
  'in a file': (clock) => openFileStore(tempFolder(), clock),
  'in RAM': (clock) => Promise.resolve(new RamStore(clock)),
};

describe.each(Object.entries(stores))('a vault %s', (_where, open) => {
  test('returns each stored text until it is deleted', async () => {
    const { vault } = await open(manualClock());
    expect(await vault.read('a')).toBeUndefined();
    await vault.write('a', 'ä first');
    await vault.write('a b', 'other');
    await vault.write('a', 'ä second');
    expect(await vault.read('a')).toBe('ä second');
    expect(await vault.read('a b')).toBe('other');
    expect(await vault.names()).toEqual(['a', 'a b']);
    await vault.delete('a');
    await vault.delete('never there');
    expect(await vault.read('a')).toBeUndefined();
    expect(await vault.names()).toEqual(['a b']);
  });

  test('does not change names', async () => {
    const { vault } = await open(manualClock());
    const names = ['', ' ', '%', '*', '_', 'clock', '__proto__', 'tombstone key', 'ü', '😀', '\u{10ffff}'];
    for (const name of names) await vault.write(name, `text of ${name}`);
    for (const name of names) expect(await vault.read(name)).toBe(`text of ${name}`);
    expect(new Set(await vault.names())).toEqual(new Set(names));
  });

  test('lists a revoked token until it expires, by the later of two times', async () => {
    const clock = manualClock();
    const { vault } = await open(clock);
    await vault.revokeToken('short', clock.now() + HOUR);
    await vault.revokeToken('long', clock.now() + HOUR);
    await vault.revokeToken('long', clock.now() + 3 * HOUR);
    await vault.revokeToken('long', clock.now() + 2 * HOUR);
    await vault.revokeToken('for good', Number.MAX_SAFE_INTEGER);
    expect(await vault.revokedTokens()).toEqual(['for good', 'long', 'short']);
    await clock.advance(HOUR);
    expect(await vault.revokedTokens()).toEqual(['for good', 'long']);
    await clock.advance(2 * HOUR);
    expect(await vault.revokedTokens()).toEqual(['for good']);
  });

  test('keeps revocations while the clock is wrong', async () => {
    const clock = manualClock();
    const { vault } = await open(clock);
    await vault.revokeToken('one', clock.now() + 300 * DAY);
    clock.jump(400 * DAY);
    await vault.revokeToken('another', clock.now() + DAY);
    expect(await vault.revokedTokens()).toEqual(['another', 'one']);
    clock.jump(-400 * DAY);
    expect(await vault.revokedTokens()).toEqual(['another', 'one']);
  });
});

describe('a vault in a file', () => {
  test('seals its texts on disk (R-STORE-06)', async () => {
    const folder = tempFolder();
    const { vault } = await openFileStore(folder, manualClock());
    await vault.write('name', 'a text to look for');
    expect(filesBelow(folder).filter(({ bytes }) => bytes.includes('to look for'))).toEqual([]);
  });

  test('keeps texts and revocations over a restart', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const first = await openFileStore(folder, clock);
    await first.vault.write('a', 'kept');
    await first.vault.revokeToken('token', clock.now() + DAY);
    await first[Symbol.asyncDispose]();
    const { vault } = await openFileStore(folder, clock);
    expect(await vault.read('a')).toBe('kept');
    expect(await vault.revokedTokens()).toEqual(['token']);
  });

  test('deletes expired revocations at the next one', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const { vault } = await openFileStore(folder, clock);
    await vault.revokeToken('over-and-done', clock.now() + HOUR);
    await clock.advance(HOUR);
    await vault.revokeToken('new', clock.now() + HOUR);
    const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
    expect(db.prepare('SELECT id FROM revoked_token').pluck().all()).toEqual(['new']);
    db.close();
  });

  test('while locked, deletes and revokes but neither reads nor writes texts (R-AUTH-10)', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    const { vault } = store;
    await vault.write('a', 'kept');
    await vault.write('b', 'kept');
    store.lock();
    await expect(vault.read('a')).rejects.toMatchObject({ code: 'key_unavailable' });
    await expect(vault.write('a', 'other')).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(await vault.names()).toEqual(['a', 'b']);
    await vault.delete('b');
    await vault.revokeToken('token', clock.now() + DAY);
    expect(await vault.revokedTokens()).toEqual(['token']);
    await store.unlock();
    expect(await vault.read('a')).toBe('kept');
    expect(await vault.names()).toEqual(['a']);
  });

  test('revokes in a run without the key (R-AUTH-10)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const first = await openFileStore(folder, clock);
    await first.vault.write('a', 'kept');
    await first[Symbol.asyncDispose]();
    const source = manualKeySource({ at: 'absent' });
    const { vault } = await openFileStore(folder, clock, () => [source]);
    await expect(vault.read('a')).rejects.toMatchObject({ code: 'key_unavailable' });
    await vault.revokeToken('token', clock.now() + DAY);
    expect(await vault.revokedTokens()).toEqual(['token']);
    source.set({ at: 'found', key });
    await clock.advance(3000);
    expect(await vault.read('a')).toBe('kept');
  });

  test('reseals every text when the key is rotated (R-KEY-09)', async () => {
    const folder = tempFolder();
    await fileSource(folder).save('current', key);
    const store = await openFileStore(folder, manualClock(), () => [fileSource(folder)]);
    const names = Array.from({ length: 300 }, (_, index) => `text ${index}`);
    await Promise.all(names.map((name) => store.vault.write(name, `${name} kept`)));
    const recoveryKey = (await store.upkeep?.makeRecoveryKey()) ?? '';
    const rotating = store.upkeep?.rotate();
    await store.vault.write('late', 'late kept');
    await rotating;
    expect(store.status().quarantined).toBe(0);
    await store[Symbol.asyncDispose]();
    // The present key is lost and returns. The text for the recovery key was not changed.
    rmSync(join(folder, 'memory.key'));
    await recoverKey({ folder, clock: manualClock(), sources: () => [fileSource(folder)], recoveryKey });
    const again = await openFileStore(folder, manualClock(), () => [fileSource(folder)]);
    for (const name of [...names, 'late']) expect(await again.vault.read(name)).toBe(`${name} kept`);
    expect(again.status()).toMatchObject({ key: { at: 'ok' }, quarantined: 0 });
  });

  test('is restored from a backup, but keeps later revocations (R-AUTH-10)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const sources = withKey();
    const store = await openFileStore(folder, clock, sources);
    await store.vault.write('a', 'as backed up');
    await store.vault.revokeToken('before', clock.now() + DAY);
    const backup = await store.upkeep?.backup();
    await store.vault.write('a', 'later');
    await store.vault.revokeToken('before', clock.now() + 2 * DAY);
    await store.vault.revokeToken('since', clock.now() + DAY);
    await store[Symbol.asyncDispose]();
    await restoreBackup({ folder, backup: backup?.file ?? '', clock, sources });
    const { vault } = await openFileStore(folder, clock, sources);
    expect(await vault.read('a')).toBe('as backed up');
    expect(await vault.revokedTokens()).toEqual(['before', 'since']);
    await clock.advance(DAY);
    expect(await vault.revokedTokens()).toEqual(['before']);
  });
});
