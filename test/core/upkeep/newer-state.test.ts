import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { MintInput, type MintReceipt } from '../../../src/contract/token.ts';
import { CaptureChoices } from '../../../src/core/access/capture-choices.ts';
import { TokenRegistry } from '../../../src/core/access/token-registry.ts';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import type { KeySources } from '../../../src/core/crypto/keys/key-source.ts';
import { Inbox } from '../../../src/core/inbox/inbox.ts';
import { FairScheduler } from '../../../src/core/operations/fair-scheduler.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { recoverKey, restoreBackup, type RestoreResult } from '../../../src/core/upkeep/restore.ts';
import { DAY, type ManualClock, manualClock, MINUTE } from '../../support/clock.ts';
import { aCaller } from '../../support/memory.ts';
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

async function open(here = folder, keySources = sources): Promise<Opened> {
  const store = await openFileStore(here, clock, keySources);
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

/** A memory with one token, and a backup of it in another folder made one minute ago. */
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
  test('a token that was paused since stays paused, and a token that was resumed since is accepted (R-CONN-09)', async () => {
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

  test('a token that was created since is listed, and can be paused and revoked (R-AUTH-04)', async () => {
    const newer = await memory.tokens.mint(mintInput('newer'));
    const again = await reopened();
    expect(again.restored.revokedTokens).toBe(0);
    expect(await again.tokens.verify(newer.token, 'rest')).toMatchObject({ token: newer.id });
    expect(await listed(again)).toEqual({ [old.id]: false, [newer.id]: false });
    await again.tokens.pause({ id: newer.id, paused: true });
    await again.tokens.revoke({ id: newer.id, unrecorded: false });
    await expect(again.tokens.verify(newer.token, 'rest')).rejects.toThrow(/has been revoked/);
  });

  test('a client is offered the packs that the owner chose last (R-CONN-14)', async () => {
    const { tokens, store } = memory;
    await tokens.offerPacks({ client: 'codex', packs: ['github.get_issue'] });
    await tokens.offerPacks({ client: 'gemini-cli', packs: [] });
    copyFileSync((await store.upkeep!.backup()).file, backup);
    await tokens.offerPacks({ client: 'codex', packs: [] });
    await tokens.offerPacks({ client: 'gemini-cli', packs: 'all' });
    const { offers } = (await reopened()).tokens;
    expect([offers.of('codex'), offers.of('gemini-cli')]).toEqual([new Set(), undefined]);
  });

  test('a client proposes what the owner chose last (R-INBOX-09)', async () => {
    const choices = new CaptureChoices(memory.store.vault);
    await choices.change({ client: 'codex', capture: true, accept: true });
    copyFileSync((await memory.store.upkeep!.backup()).file, backup);
    await choices.change({ client: 'codex', accept: false });
    await choices.change({ client: 'gemini-cli', capture: true });
    const { store } = await reopened();
    expect([...(await new CaptureChoices(store.vault).all())]).toEqual([
      ['codex', { capture: true, accept: false }],
      ['gemini-cli', { capture: true, accept: false }],
    ]);
  });

  test('what was accepted or dropped since does not wait again, and what still waits does (R-INBOX-05)', async () => {
    const inboxOf = ({ store }: Opened): Inbox => new Inbox({ store, scheduler: new FairScheduler() });
    const caller = aCaller({ client: 'stranger', quarantined: true });
    const add = async (inbox: Inbox, key: string): Promise<string> =>
      (await inbox.add(caller, { operation: 'remember', input: { key, value: 'v' }, source: 'quarantine' })).id;
    using inbox = inboxOf(memory);
    const [one, , two] = [await add(inbox, 'dropped'), await add(inbox, 'waits'), await add(inbox, 'dropped with others')];
    copyFileSync((await memory.store.upkeep!.backup()).file, backup);
    await clock.advance(MINUTE);
    await inbox.drop('me', one);
    await inbox.drop('me', two);
    await add(inbox, 'newer');
    using again = inboxOf(await reopened());
    const { items } = await again.page('me', { limit: 10, characters: 1000 });
    expect(items.map(({ input }) => input['key'])).toEqual(['waits']);
    // A restored Inbox counts what it holds.
    expect(await again.count('me')).toBe(1);
  });

  test('a token that was revoked since is not listed (R-AUTH-10)', async () => {
    const newer = await memory.tokens.mint(mintInput('newer'));
    for (const { id } of [old, newer]) await memory.tokens.revoke({ id, unrecorded: false });
    const again = await reopened();
    expect(await listed(again)).toEqual({});
    for (const { token } of [old, newer]) await expect(again.tokens.verify(token, 'rest')).rejects.toThrow(/has been revoked/);
  });

  test('tokens stay valid if the backup has no signing secret, because the restore keeps the newer secret', async () => {
    const [there, work] = [tempFolder(), tempFolder()];
    await fileSource(there).save('current', Buffer.from(A_KEY, 'hex'));
    const keySources: KeySources = () => [fileSource(there)];
    const bare = await openFileStore(there, clock, keySources);
    copyFileSync((await bare.upkeep!.backup()).file, join(work, 'without-secret.db'));
    await bare[Symbol.asyncDispose]();
    const before = await open(there, keySources);
    const token = await before.tokens.mint(mintInput('after the backup'));
    await before.close();
    await restoreBackup({ folder: there, backup: join(work, 'without-secret.db'), clock, sources: keySources });
    const again = await open(there, keySources);
    expect(await again.tokens.verify(token.token, 'rest')).toMatchObject({ token: token.id });
    expect(await listed(again)).toEqual({ [token.id]: false });
  });

  test('if the newer key is lost, tokens that cannot be listed are revoked, and pauses still apply', async () => {
    const recoveryKey = await memory.store.upkeep!.makeRecoveryKey();
    copyFileSync((await memory.store.upkeep!.backup()).file, backup);
    await memory.store.upkeep!.rotate();
    // A second recovery key makes the first one useless for the memory, but not for the backup.
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

  test('newer tokens are resealed with the current key after a rotation', async () => {
    const recoveryKey = await memory.store.upkeep!.makeRecoveryKey();
    copyFileSync((await memory.store.upkeep!.backup()).file, backup);
    await memory.store.upkeep!.rotate();
    const newer = await memory.tokens.mint(mintInput('newer'));
    const again = await reopened({ recoveryKey });
    expect(again.restored.revokedTokens).toBe(0);
    expect(await listed(again)).toEqual({ [old.id]: false, [newer.id]: false });
    expect(await again.store.upkeep!.verify()).toMatchObject({ broken: 0, structure: [] });
  });

  test('of another memory, only tokens of that memory are accepted', async () => {
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

  test('over an unreadable memory, the loss of newer state is reported', async () => {
    await memory.close();
    writeFileSync(join(folder, 'memory.db'), 'ruined');
    expect(await restoreBackup({ folder, backup, clock, sources })).toMatchObject({
      readReplacedMemory: false,
      revokedTokens: 0,
    });
  });
});

describe('the newer state that a restore keeps (R-AUTH-12)', () => {
  test('includes deleted, changed and new credentials, but no other secrets', async () => {
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

  test('includes the recovery key: the newer one opens the memory, and the older one does not (R-KEY-10)', async () => {
    const older = await memory.store.upkeep!.makeRecoveryKey();
    copyFileSync((await memory.store.upkeep!.backup()).file, backup);
    const newer = await memory.store.upkeep!.makeRecoveryKey();
    await (await reopened()).close();
    rmSync(join(folder, 'memory.key'));
    await expect(recoverKey({ folder, sources, clock, recoveryKey: older })).rejects.toMatchObject({ code: 'invalid_input' });
    await recoverKey({ folder, sources, clock, recoveryKey: newer });
    expect((await open()).store.status().key.at).toBe('ok');
  });

  test('includes the latest time of the clock, so that an old backup causes no clock jump (R-TIME-03)', async () => {
    for (let day = 0; day < 30; day += 1) await clock.advance(DAY);
    await memory.store.sweep(10);
    const { store } = await reopened();
    expect(store.status().clock).toEqual({ at: 'ok' });
  });

  test('does not include a token whose record was edited: the token is revoked', async () => {
    const newer = await memory.tokens.mint(mintInput('newer'));
    await memory.close();
    const db = new Sqlite(join(folder, 'memory.db'));
    db.prepare('UPDATE meta SET value = zeroblob(60) WHERE name = ?').run(`vault token ${newer.id}`);
    db.close();
    expect(await restoreBackup({ folder, backup, clock, sources })).toMatchObject({ revokedTokens: 1 });
    await expect((await open()).tokens.verify(newer.token, 'rest')).rejects.toThrow(/has been revoked/);
  });
});
