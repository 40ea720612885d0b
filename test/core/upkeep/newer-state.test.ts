import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { MintInput, type MintReceipt } from '../../../src/contract/token.ts';
import { TokenRegistry } from '../../../src/core/access/token-registry.ts';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import type { KeySources } from '../../../src/core/store/open-store.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { recoverKey, restoreBackup, type RestoreResult } from '../../../src/core/upkeep/restore.ts';
import { DAY, type ManualClock, manualClock, MINUTE } from '../../support/clock.ts';
import { A_KEY, aDraft, openFileStore } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const mintInput = (name: string): MintInput => MintInput().parse({ name });

interface Opened {
  readonly store: MemoryStore;
  readonly tokens: TokenRegistry;
  close(): Promise<void>;
}

let folder: string;
let clock: ManualClock;
let sources: KeySources;
let memory: Opened;
let old: MintReceipt;
let backup: string;

async function open(here = folder, places = sources): Promise<Opened> {
  const store = await openFileStore(here, clock, places);
  const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  onTestFinished(() => tokens[Symbol.asyncDispose]());
  return {
    store,
    tokens,
    close: async () => {
      await tokens[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

async function reopened(options: { recoveryKey?: string } = {}): Promise<Opened & { restored: RestoreResult }> {
  await memory.close();
  const restored = await restoreBackup({ folder, backup, clock, sources, ...options });
  return { ...(await open()), restored };
}

const listed = async ({ tokens }: Opened): Promise<Record<string, boolean>> =>
  Object.fromEntries((await tokens.list()).tokens.map(({ id, paused }) => [id, paused ?? false]));

/** A memory with one token, and a backup of it outside the folder, a minute old. */
beforeEach(async () => {
  folder = tempFolder();
  clock = manualClock();
  await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
  sources = () => [fileSource(folder)];
  memory = await open();
  await memory.store.space({ subject: 'me' }, 'fact').put(aDraft());
  old = await memory.tokens.mint(mintInput('old'));
  backup = join(tempFolder(), 'backup.db');
  copyFileSync((await memory.store.upkeep!.backup()).file, backup);
  await clock.advance(MINUTE);
});

describe('after an older backup is restored (R-AUTH-12)', () => {
  test('a token that was paused since stays paused, and one that was resumed since is let in (R-CONN-09)', async () => {
    const { tokens, store } = memory;
    const resumed = await tokens.mint(mintInput('resumed'));
    await tokens.pause({ id: resumed.id, paused: true });
    copyFileSync((await store.upkeep!.backup()).file, backup);
    await tokens.pause({ id: old.id, paused: true });
    await tokens.pause({ id: resumed.id, paused: false });
    const again = await reopened();
    await expect(again.tokens.verify(old.token, 'rest')).rejects.toThrow(/is paused/);
    expect(await again.tokens.verify(resumed.token, 'rest')).toMatchObject({ token: resumed.id });
    expect(await listed(again)).toEqual({ [old.id]: true, [resumed.id]: false });
  });

  test('a token that was made since is listed, and can be paused and revoked (R-AUTH-04)', async () => {
    const newer = await memory.tokens.mint(mintInput('newer'));
    const again = await reopened();
    expect(again.restored.revokedTokens).toBe(0);
    expect(await again.tokens.verify(newer.token, 'rest')).toMatchObject({ token: newer.id });
    expect(await listed(again)).toEqual({ [old.id]: false, [newer.id]: false });
    await again.tokens.pause({ id: newer.id, paused: true });
    await again.tokens.revoke({ id: newer.id, unrecorded: false });
    await expect(again.tokens.verify(newer.token, 'rest')).rejects.toThrow(/has been revoked/);
  });

  test('a token that was revoked since is not listed again (R-AUTH-10)', async () => {
    const newer = await memory.tokens.mint(mintInput('newer'));
    for (const { id } of [old, newer]) await memory.tokens.revoke({ id, unrecorded: false });
    const again = await reopened();
    expect(await listed(again)).toEqual({});
    for (const { token } of [old, newer]) await expect(again.tokens.verify(token, 'rest')).rejects.toThrow(/has been revoked/);
  });

  test('tokens hold that are older than the restored memory itself, because their secret comes along', async () => {
    const [there, work] = [tempFolder(), tempFolder()];
    await fileSource(there).save('current', Buffer.from(A_KEY, 'hex'));
    const places: KeySources = () => [fileSource(there)];
    const bare = await openFileStore(there, clock, places);
    copyFileSync((await bare.upkeep!.backup()).file, join(work, 'without-secret.db'));
    await bare[Symbol.asyncDispose]();
    const before = await open(there, places);
    const token = await before.tokens.mint(mintInput('after the backup'));
    await before.close();
    await restoreBackup({ folder: there, backup: join(work, 'without-secret.db'), clock, sources: places });
    const again = await open(there, places);
    expect(await again.tokens.verify(token.token, 'rest')).toMatchObject({ token: token.id });
    expect(await listed(again)).toEqual({ [token.id]: false });
  });

  test('where the newer key is lost, a token that cannot be listed is revoked, and pauses still hold', async () => {
    const recoveryKey = await memory.store.upkeep!.makeRecoveryKey();
    copyFileSync((await memory.store.upkeep!.backup()).file, backup);
    await memory.store.upkeep!.rotate();
    // Its recovery key is a newer one, so what opens the backup does not open the memory.
    await memory.store.upkeep!.makeRecoveryKey();
    const newer = await memory.tokens.mint(mintInput('newer'));
    await memory.tokens.pause({ id: old.id, paused: true });
    await memory.close();
    rmSync(join(folder, 'memory.key'));
    const again = await reopened({ recoveryKey });
    expect(again.restored).toMatchObject({ revokedTokens: 1, readReplacedMemory: true });
    await expect(again.tokens.verify(newer.token, 'rest')).rejects.toThrow(/has been revoked/);
    await expect(again.tokens.verify(old.token, 'rest')).rejects.toThrow(/is paused/);
    expect(await listed(again)).toEqual({ [old.id]: true });
  });

  test('across a rotation they come under the key of today', async () => {
    const recoveryKey = await memory.store.upkeep!.makeRecoveryKey();
    copyFileSync((await memory.store.upkeep!.backup()).file, backup);
    await memory.store.upkeep!.rotate();
    const newer = await memory.tokens.mint(mintInput('newer'));
    const again = await reopened({ recoveryKey });
    expect(again.restored.revokedTokens).toBe(0);
    expect(await listed(again)).toEqual({ [old.id]: false, [newer.id]: false });
    expect(await again.store.upkeep!.verify()).toMatchObject({ broken: 0, structure: [] });
  });

  test('of another memory, the clients of that one keep their access, and none of ours is let in', async () => {
    const elsewhere = tempFolder();
    await fileSource(elsewhere).save('current', Buffer.from(A_KEY, 'hex'));
    const other = await open(elsewhere, () => [fileSource(elsewhere)]);
    const theirs = await other.tokens.mint(mintInput('theirs'));
    copyFileSync((await other.store.upkeep!.backup()).file, backup);
    await other.close();
    const again = await reopened();
    expect(await again.tokens.verify(theirs.token, 'rest')).toMatchObject({ token: theirs.id });
    await expect(again.tokens.verify(old.token, 'rest')).rejects.toThrow(/was not created for this memory/);
  });

  test('in the place of a memory that cannot be read, it is said that newer state is lost', async () => {
    await memory.close();
    writeFileSync(join(folder, 'memory.db'), 'ruined');
    expect(await restoreBackup({ folder, backup, clock, sources })).toMatchObject({
      readReplacedMemory: false,
      revokedTokens: 0,
    });
  });
});

describe('what else stays as it is now (R-AUTH-12)', () => {
  test('a credential that was taken back does not return, nor an older one; other texts are those of the backup', async () => {
    const { vault, upkeep } = memory.store;
    for (const name of ['credential gone', 'credential changed', 'text']) await vault.write(name, 'older');
    copyFileSync((await upkeep!.backup()).file, backup);
    await vault.delete('credential gone');
    for (const name of ['credential changed', 'credential new', 'text']) await vault.write(name, 'newer');
    const { store } = await reopened();
    const kept = (await store.vault.names()).filter((name) => name.startsWith('credential') || name === 'text');
    const texts = await Promise.all(kept.map(async (name) => [name, await store.vault.read(name)] as const));
    expect(Object.fromEntries(texts)).toEqual({ 'credential changed': 'newer', 'credential new': 'newer', text: 'older' });
  });

  test('the newer recovery key opens the memory, and the older one does not (R-KEY-10)', async () => {
    const older = await memory.store.upkeep!.makeRecoveryKey();
    copyFileSync((await memory.store.upkeep!.backup()).file, backup);
    const newer = await memory.store.upkeep!.makeRecoveryKey();
    await (await reopened()).close();
    rmSync(join(folder, 'memory.key'));
    await expect(recoverKey({ folder, sources, clock, recoveryKey: older })).rejects.toMatchObject({ code: 'invalid_input' });
    await recoverKey({ folder, sources, clock, recoveryKey: newer });
    expect((await open()).store.status().key.at).toBe('ok');
  });

  test('the time that the memory has reached, so that an old backup is no jump of the clock (R-TIME-03)', async () => {
    for (let day = 0; day < 30; day += 1) await clock.advance(DAY);
    await memory.store.sweep(10);
    const { store } = await reopened();
    expect(store.status().clock).toEqual({ at: 'ok' });
  });

  test('a record that somebody edited in the memory before counts as one that cannot be listed', async () => {
    const newer = await memory.tokens.mint(mintInput('newer'));
    await memory.close();
    const db = new Sqlite(join(folder, 'memory.db'));
    db.prepare('UPDATE meta SET value = zeroblob(60) WHERE name = ?').run(`vault token ${newer.id}`);
    db.close();
    expect(await restoreBackup({ folder, backup, clock, sources })).toMatchObject({ revokedTokens: 1 });
    await expect((await open()).tokens.verify(newer.token, 'rest')).rejects.toThrow(/has been revoked/);
  });
});
