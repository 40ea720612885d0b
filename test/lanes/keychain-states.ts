import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import { loadKeychain } from '../../src/core/crypto/keys/keychain.ts';
import { timed } from './faults/timed.ts';
import { check, gap } from './keychain-check.ts';
import {
  crashKeyring,
  endPrompter,
  lockKeyring,
  startBus,
  startKeyring,
  stopKeyring,
  unlockKeyring,
  until,
  wasPrompted,
} from './keychain-keyring.ts';
import {
  assertState,
  copyOf,
  fact,
  factsOf,
  FACTS,
  loadedBy,
  MEMORY,
  open,
  placeOf,
  recall,
  refused,
  remember,
  theKey,
} from './keychain-memory.ts';
import { withoutKey } from './keychain-without.ts';

/** A request to a keychain times out after five seconds. Two requests in sequence would take ten. */
const GIVEN_UP = 5000;
/** A resumed keyring has answered its waiting requests after this time. */
const LETS_GO = 2000;
const ONCE_GIVEN_UP = GIVEN_UP + 3000;

/** Before the first login there is no keyring for a key. */
export async function noKeyringYet(): Promise<void> {
  await check('R-KEY-06 no keyring yet: the key is never reported as absent, and no memory in RAM is started', async () => {
    await using store = await open(`${MEMORY}-early`);
    assert.equal(store.status().kept, 'file');
    await refused(factsOf(store).put(fact(0)));
    return assertState(store.status().key, 'locked');
  });
  // The first login creates a keyring for the other cases.
  await unlockKeyring();
}

/** Also creates the memory that all other cases start with. */
export async function firstStart(): Promise<void> {
  await unlockKeyring();
  await check('R-KEY-01 unlocked keyring, first start: the key is created in the keychain', async () => {
    await using store = await open(MEMORY);
    assert.equal(store.status().kept, 'file');
    assert.deepEqual(store.status().key, { at: 'ok', source: 'the OS keychain' });
    await remember(store, FACTS);
  });
  await check('R-KEY-01 unlocked keyring, second start: the key is found in the keychain', async () => {
    await using store = await open(MEMORY);
    assert.deepEqual(store.status().key, { at: 'ok', source: 'the OS keychain' });
    await recall(store, FACTS);
  });
  await check('R-KEY-01 the key is 32 bytes in the keychain and in no file of the data folder', async () => {
    const key = await theKey();
    assert.equal(key.length, 32);
    const files = readdirSync(MEMORY, { recursive: true, encoding: 'utf8' }).filter((name) =>
      statSync(join(MEMORY, name)).isFile(),
    );
    for (const name of files) {
      const bytes = readFileSync(join(MEMORY, name));
      assert.ok(!bytes.includes(key) && !bytes.includes(key.toString('hex')), name);
    }
    return `${files.length} files`;
  });
}

export async function locked(): Promise<void> {
  await withoutKey('locked keyring', { state: 'locked', mend: unlockKeyring });
  await check(
    'R-KEY-06 a keyring that is locked again: the running program keeps its key, and the next start is locked',
    async () => {
      const store = await open(MEMORY);
      lockKeyring();
      await recall(store, FACTS);
      await store[Symbol.asyncDispose]();
      await using next = await open(MEMORY);
      assertState(next.status().key, 'locked');
    },
  );
}

export async function lockedFirstStart(): Promise<void> {
  await using store = await open(MEMORY);
  await check('R-KEY-06 locked keyring, no memory yet: the state is locked, and no memory in RAM is started', async () => {
    assert.equal(store.status().kept, 'file');
    const why = assertState(store.status().key, 'locked');
    await refused(factsOf(store).put(fact(0)));
    assert.equal(await factsOf(store).count(), 0);
    return why;
  });
  await unlockKeyring();
  await check(
    'R-KEY-08 locked keyring, no memory yet: after unlocking, the first key is created and the memory works',
    async () => {
      await until(async () => (await store.unlock()).at === 'ok', 'the memory stayed locked');
      await remember(store, FACTS);
      await recall(store, FACTS);
    },
  );
  await store[Symbol.asyncDispose]();
  await check('R-KEY-01 locked keyring, no memory yet: the next start finds that key', async () => {
    await using next = await open(MEMORY);
    assertState(next.status().key, 'ok');
    await recall(next, FACTS);
  });
}

export async function silentPrompter(): Promise<void> {
  await withoutKey('keyring whose owner does not answer its prompt', {
    state: 'locked',
    within: ONCE_GIVEN_UP,
    async mend() {
      assert.ok(wasPrompted(), 'no prompt was shown');
      await unlockKeyring();
      endPrompter();
      await wait(LETS_GO);
    },
  });
}

export async function stoppedService(): Promise<void> {
  await unlockKeyring();
  let stopped: Disposable = stopKeyring();
  try {
    await withoutKey('keyring that does not answer', {
      state: 'locked',
      within: ONCE_GIVEN_UP,
      async mend() {
        stopped[Symbol.dispose]();
        await wait(LETS_GO);
      },
    });
    stopped = stopKeyring();
    await check('R-KEY-06 keyring that does not answer: repeated requests block at most one thread of the program', async () => {
      await using store = await open(MEMORY);
      const { ms: again } = await timed(async () => {
        for (let time = 0; time < 20; time += 1) assertState(await store.unlock(), 'locked');
      });
      const { ms: file } = await timed(() => readFile(import.meta.filename));
      // A blocked request would take at least five seconds.
      assert.ok(again < GIVEN_UP / 2 && file < GIVEN_UP / 2, `repeated request ${again} ms, file read ${file} ms`);
    });
  } finally {
    // The program cannot exit while a request is waiting.
    stopped[Symbol.dispose]();
  }
}

export async function noService(): Promise<void> {
  let keyring: AsyncDisposable | undefined;
  await ramWithoutKey('D-Bus without a Secret Service');
  await withoutKey('D-Bus without a Secret Service', {
    state: 'unavailable',
    async mend() {
      keyring = await startKeyring();
      await unlockKeyring();
    },
  });
  await keyring?.[Symbol.asyncDispose]();
}

export async function noBus(): Promise<void> {
  let bus: AsyncDisposable | undefined;
  await ramWithoutKey('no D-Bus');
  await withoutKey('no D-Bus', {
    state: 'unavailable',
    async mend() {
      bus = await startBus();
      await unlockKeyring();
    },
  });
  await bus?.[Symbol.asyncDispose]();
}

export async function busDies(): Promise<void> {
  const bus = await startBus();
  await unlockKeyring();
  const store = await open(MEMORY);
  assertState(store.status().key, 'ok');
  await bus[Symbol.asyncDispose]();
  await check('R-KEY-04 D-Bus dies while the program runs: 1,000 requests, 0 errors', async () => {
    await remember(store, 500);
    await recall(store, 500);
    assertState(store.status().key, 'ok');
  });
  await check('R-KEY-09 D-Bus dies while the program runs: a rotation is refused, and the program survives', async () => {
    await refused(store.upkeep?.rotate() ?? Promise.resolve());
    await wait(500);
    await recall(store, 500);
  });
  await store[Symbol.asyncDispose]();
  await check('R-KEY-05 D-Bus died: the next start is unavailable', async () => {
    await using next = await open(MEMORY);
    await refused(factsOf(next).get(fact(0).key));
    return assertState(next.status().key, 'unavailable');
  });
}

/** libsecret stays connected to the first service for the lifetime of the process. */
const RECONNECT = 'a way to make libsecret reconnect';

export async function keyringRestarts(): Promise<void> {
  await unlockKeyring();
  await using store = await open(MEMORY);
  await crashKeyring();
  await check('R-KEY-04 the keyring crashes while the program runs: 1,000 requests, 0 errors', async () => {
    await remember(store, 500);
    await recall(store, 500);
  });
  store.lock();
  await check('R-KEY-06 the keyring crashes and is restarted locked: the key is never reported as absent', async () => {
    const state = await store.unlock();
    return assertState(state, state.at === 'unavailable' ? 'unavailable' : 'locked');
  });
  await unlockKeyring();
  await nextStart('the keyring crashed and was unlocked again', 500);
  await gap('R-KEY-08 the keyring crashed and was unlocked again: ok without a restart', RECONNECT, async () =>
    assertState(await store.unlock(), 'ok'),
  );
}

export async function busRestarts(): Promise<void> {
  const first = await startBus();
  await unlockKeyring();
  await using store = await open(MEMORY);
  store.lock();
  await first[Symbol.asyncDispose]();
  const second = await startBus();
  await unlockKeyring();
  await nextStart('D-Bus died and came back', FACTS);
  await gap('R-KEY-08 D-Bus died and came back: ok without a restart', RECONNECT, async () =>
    assertState(await store.unlock(), 'ok'),
  );
  await second[Symbol.asyncDispose]();
}

/** Starts a separate process, like a real start. */
async function nextStart(what: string, count: number): Promise<void> {
  await check(`R-KEY-01 ${what}: the next start finds the key`, () => {
    const folder = copyOf('next-start');
    execFileSync(process.execPath, [join(import.meta.dirname, 'keychain.ts'), 'next-start', folder, String(count)], {
      stdio: 'pipe',
    });
  });
}

/** Runs in that process: fails unless it finds the key. */
export async function startedNext(): Promise<void> {
  const [, , , folder = '', count] = process.argv;
  await using store = await open(folder);
  assertState(store.status().key, 'ok');
  await recall(store, Number(count));
}

export async function absent(): Promise<void> {
  await unlockKeyring();
  const key = await theKey();
  const place = await placeOf();
  await place.remove('current');
  await withoutKey('key item deleted, keyring readable', { state: 'absent', mend: () => place.save('current', key) });
  await place.remove('current');
  await check('R-KEY-04 key item deleted, keyring readable: a start creates no new key', async () => {
    await (await open(MEMORY))[Symbol.asyncDispose]();
    assert.equal((await place.read('current')).at, 'absent');
    assert.equal((await place.read('next')).at, 'absent');
  });
}

/** Makes loading keytar fail as it does without the library. */
export async function noLibrary(): Promise<void> {
  await unlockKeyring();
  const load = process.dlopen.bind(process);
  process.dlopen = (module: object, file: string, ...rest) => {
    if (/keytar/.test(file)) throw new Error('libsecret-1.so.0: cannot open shared object file: No such file or directory');
    load(module, file, ...rest);
  };
  await check('R-KEY-06 libsecret is missing: loading returns undefined', async () =>
    assert.equal(await loadKeychain(), undefined),
  );
  await ramWithoutKey('libsecret is missing');
  await withoutKey('libsecret is missing', { state: 'unavailable' });
}

export async function libraryLater(): Promise<void> {
  await unlockKeyring();
  let installed = false;
  await withoutKey('libsecret is installed later', {
    state: 'unavailable',
    places: loadedBy(async () => (installed ? loadKeychain() : undefined)),
    mend: () => (installed = true),
  });
}

/** A start without a key and without a memory. */
async function ramWithoutKey(what: string): Promise<void> {
  await check(`R-KEY-03 ${what}, no memory yet: facts are stored in RAM, and the state says so`, async () => {
    const folder = `${MEMORY}-new`;
    await using store = await open(folder);
    assert.equal(store.status().kept, 'memory');
    assertState(store.status().key, 'ephemeral');
    await remember(store, 5);
    await recall(store, 5);
    assert.equal(existsSync(join(folder, 'memory.db')), false);
  });
}
