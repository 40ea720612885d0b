import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MemoryStore, Upkeep } from '../../src/core/store/store.ts';
import { recoverKey, restoreBackup } from '../../src/core/upkeep/restore.ts';
import { timed } from './faults/timed.ts';
import { check } from './keychain-check.ts';
import { lockKeyring, unlockKeyring, until } from './keychain-keyring.ts';
import {
  assertState,
  CARRIED,
  clock,
  FACTS,
  keychain,
  MEMORY,
  open,
  placeOf,
  recall,
  refused,
  remember,
  theKey,
} from './keychain-memory.ts';

/** Enough rows to interrupt a rotation. */
const MANY = 3000;
/** The files that the owner copies to another machine. */
const BACKUP = join(CARRIED, 'backup.db');
const WORDS = join(CARRIED, 'recovery-key');

export async function rotation(): Promise<void> {
  await unlockKeyring();
  const place = await placeOf();
  const old = await theKey();
  await check('R-KEY-09 rotation: the next key is stored beside the current one, replaces it, and is removed', async () => {
    await using store = await open(MEMORY);
    await remember(store, MANY);
    const rotated = upkeepOf(store).rotate();
    await until(() => underWay(store), 'the rotation did not begin');
    const next = await place.read('next');
    assert.equal(next.at, 'found');
    assert.deepEqual((await place.read('current')).at === 'found' && (await theCurrent(place)), old);
    await rotated;
    const current = await theCurrent(place);
    assert.deepEqual(current, next.at === 'found' && next.key);
    assert.notDeepEqual(current, old);
    assert.equal((await place.read('next')).at, 'absent');
    await recall(store, MANY);
  });
  await check('R-KEY-09 rotation: the next start reads every row with only the new key', async () => {
    await using store = await open(MEMORY);
    await recall(store, MANY);
    assert.equal((await upkeepOf(store).verify()).broken, 0);
  });
  await check(
    'R-KEY-09 rotation: a keyring that is locked before the end is reported, and the memory stays readable',
    async () => {
      await using store = await open(MEMORY);
      const rotated = upkeepOf(store).rotate();
      await until(() => underWay(store), 'the rotation did not begin');
      lockKeyring();
      await refused(rotated);
      await recall(store, MANY);
    },
  );
  await unlockKeyring();
  await settles('the keyring was locked before its end', place);
}

/** The states after a power cut between the database and the keychain. */
export async function interruptedRotation(): Promise<void> {
  await unlockKeyring();
  const place = await placeOf();
  const key = await theKey();

  await place.save('next', key);
  await place.remove('current');
  await settles('only the next key is there', place);

  await place.save('next', key);
  await place.save('current', Buffer.alloc(32, 7));
  await settles('the old key is still in its place', place);

  await place.save('next', key);
  await settles('the next key was not removed', place);
  await check('R-KEY-09 afterwards a rotation completes', async () => {
    await using store = await open(MEMORY);
    await upkeepOf(store).rotate();
    assert.notDeepEqual(await theCurrent(place), key);
    await recall(store, FACTS);
  });

  await check('R-KEY-09 an interrupted rotation resumes at the next start and keeps both keys until its end', async () => {
    {
      await using store = await open(MEMORY);
      await remember(store, MANY);
      upkeepOf(store)
        .rotate()
        .catch(() => undefined);
      await until(() => underWay(store), 'the rotation did not begin');
    }
    assert.deepEqual([(await place.read('current')).at, (await place.read('next')).at], ['found', 'found']);
    await using store = await open(MEMORY);
    await recall(store, MANY);
    await until(() => store.status().rotation.at === 'none', 'the rotation did not end');
    await until(async () => (await place.read('next')).at === 'absent', 'the next key was not removed');
    await recall(store, MANY);
    assert.equal((await upkeepOf(store).verify()).broken, 0);
  });
}

export async function recovery(): Promise<void> {
  await unlockKeyring();
  const place = await placeOf();
  let words = '';
  await check('R-KEY-10 a recovery key of 256 bits is created, and is in no file', async () => {
    await using store = await open(MEMORY);
    await remember(store, MANY);
    words = await upkeepOf(store).makeRecoveryKey();
    assert.match(words, /^([0-9A-Z]{4}-){13}[0-9A-Z]{4}$/);
    const { file } = await upkeepOf(store).backup();
    mkdirSync(CARRIED, { recursive: true });
    cpSync(file, BACKUP);
    assert.ok(!readFileSync(file).includes(words));
  });
  writeFileSync(WORDS, words);
  await place.remove('current');
  await check('R-KEY-10 the keychain lost its item: the key is absent, and the recovery key restores it', async () => {
    {
      await using store = await open(MEMORY);
      assertState(store.status().key, 'absent');
    }
    const { ms } = await timed(() => recoverKey({ folder: MEMORY, sources: keychain(MEMORY), clock, recoveryKey: words }));
    await using store = await open(MEMORY);
    assertState(store.status().key, 'ok');
    await recall(store, MANY);
    return `${MANY} of ${MANY} rows, ${ms} ms`;
  });
  await place.remove('current');
  await check('R-KEY-10 locked keyring: recovery into it fails with a message', async () => {
    lockKeyring();
    await refused(recoverKey({ folder: MEMORY, sources: keychain(MEMORY), clock, recoveryKey: words }));
    await unlockKeyring();
    assert.equal((await place.read('current')).at, 'absent');
    assert.equal(existsSync(join(MEMORY, 'memory.key')), false, 'the key was written to a file without a request');
  });
}

/** Another home, another keyring and an empty data folder, with only the backup and the recovery key. */
export async function anotherMachine(): Promise<void> {
  await unlockKeyring();
  const carried = { folder: MEMORY, backup: BACKUP, clock, sources: keychain(MEMORY) };
  const words = readFileSync(WORDS, 'utf8');
  await check('R-KEY-10 another machine: without the recovery key the backup is refused, and no file is created', async () => {
    await refused(restoreBackup(carried));
    assert.equal(existsSync(join(MEMORY, 'memory.db')), false);
  });
  await check('R-KEY-10 another machine: the recovery key opens every row of the backup', async () => {
    const { result, ms } = await timed(() => restoreBackup({ ...carried, recoveryKey: words }));
    assert.deepEqual([result.entries, result.broken, result.stillForgotten], [MANY, 0, 0]);
    return `${result.entries} of ${MANY} rows, ${ms} ms`;
  });
  await check('R-KEY-10 another machine: its keychain now has the key, and the next start needs nothing else', async () => {
    await using store = await open(MEMORY);
    assert.equal(assertState(store.status().key, 'ok'), 'from the OS keychain');
    await recall(store, MANY);
  });
}

/** The next start repairs the keychain. */
async function settles(what: string, place: Place): Promise<void> {
  await check(`R-KEY-09 rotation, ${what}: the next start repairs it`, async () => {
    await using store = await open(MEMORY);
    assertState(store.status().key, 'ok');
    assert.deepEqual([(await place.read('current')).at, (await place.read('next')).at], ['found', 'absent']);
    await using again = await closedAndOpened(store);
    assertState(again.status().key, 'ok');
    assert.equal((await upkeepOf(again).verify()).broken, 0);
  });
}

async function closedAndOpened(store: MemoryStore): Promise<MemoryStore> {
  await store[Symbol.asyncDispose]();
  return open(MEMORY);
}

type Place = Awaited<ReturnType<typeof placeOf>>;

async function theCurrent(place: Place): Promise<Buffer> {
  const reading = await place.read('current');
  assert.equal(reading.at, 'found');
  return reading.at === 'found' ? reading.key : Buffer.alloc(0);
}

function upkeepOf(store: MemoryStore): Upkeep {
  assert.ok(store.upkeep);
  return store.upkeep;
}

function underWay(store: MemoryStore): boolean {
  const { rotation: state } = store.status();
  return state.at === 'running' && state.done > 0;
}
