import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SealingKey } from '../../../../src/core/crypto/cipher.ts';
import { fileSource } from '../../../../src/core/crypto/keys/file-source.ts';
import type { KeySource, KeySources } from '../../../../src/core/crypto/keys/key-source.ts';
import { RECOVERY_WRAPPED_KEY, unwrapKey } from '../../../../src/core/crypto/recovery-key.ts';
import { Finder } from '../../../../src/core/search/finder.ts';
import type { DatabaseOptions } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { recoverServerKey } from '../../../../src/core/store/postgres/recover-key.ts';
import { manualClock, MINUTE } from '../../../support/clock.ts';
import { type CommitFate, startProxiedServer } from '../../../support/postgres-proxy.ts';
import { A_KEY, aDraft, ANOTHER_KEY, keyFrom } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';
import { embedAll, storedVectors } from '../vectors.contract.ts';

const local = startProxiedServer();

const me = { subject: 'me' };
const keyOf = (index: number): string => `facts/${index}`;
const facts = (store: PostgresStore) => store.space(me, 'fact');

async function open(database: DatabaseOptions, sources: KeySources, clock = manualClock()): Promise<PostgresStore> {
  const store = await PostgresStore.open({ database, clock, sources });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

/** A memory with facts and versions, whose key is in a key file that all processes share. */
async function underKeyFile(count: number): Promise<{ folder: string; database: DatabaseOptions; sources: KeySources }> {
  const folder = tempFolder();
  await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
  const [sources, database]: [KeySources, DatabaseOptions] = [() => [fileSource(folder)], local.server.newMemory()];
  const store = await open(database, sources);
  await Promise.all(
    Array.from({ length: count }, (_, index) => facts(store).put(aDraft({ key: keyOf(index), value: `value ${index}` }))),
  );
  await Promise.all(
    Array.from({ length: 50 }, (_, index) => facts(store).put(aDraft({ key: keyOf(index), value: `newer ${index}` }))),
  );
  await store.space({ subject: 'you', session: 's' }, 'pack').put(aDraft());
  await store[Symbol.asyncDispose]();
  return { folder, database, sources };
}

/** The owner gives the next key to all processes. Here they share one folder. */
const giveNextKey = (folder: string): Promise<void> => fileSource(folder).save('next', Buffer.from(ANOTHER_KEY, 'hex'));

/** The ids of the keys that rows are encrypted with, and the roles of the recorded keys. */
async function keysIn({ schema }: DatabaseOptions): Promise<{ rows: unknown[]; records: unknown[] }> {
  const rows = await local.server.query(`SELECT DISTINCT encode(substr(sealed, 2, 4), 'hex') AS id FROM "${schema}".entry`);
  const records = await local.server.query(`SELECT role FROM "${schema}".master_key ORDER BY role`);
  return { rows: rows.map(({ id }) => id), records: records.map(({ role }) => role) };
}

/** The options of a process whose connections go through the proxy. */
const throughProxy = ({ schema, connection }: DatabaseOptions): DatabaseOptions => ({
  schema,
  connection: { ...connection, port: local.proxy.port },
});

/** Calls `then` at the fourth commit through the proxy. The first one begins a rotation, and each other one encrypts a slice. */
function amidRotation(then: () => CommitFate): void {
  let commits = 0;
  local.proxy.fateOf = () => ((commits += 1) === 4 ? then() : 'pass');
  onTestFinished(() => void (local.proxy.fateOf = () => 'pass'));
}

describe('rotating the key of a memory in PostgreSQL (R-KEY-09, R-PGUP-01)', () => {
  test('reseals every row while several processes read, write, search and forget', async () => {
    const { folder, database, sources } = await underKeyFile(1500);
    await giveNextKey(folder);
    const [one, other] = [await open(database, sources), await open(database, sources)];
    const finder = new Finder(other);
    onTestFinished(() => finder[Symbol.dispose]());
    const stored = new Map(Array.from({ length: 1500 }, (_, index) => [index, index < 50 ? `newer ${index}` : `value ${index}`]));
    expect(await embedAll(one)).toBe(1500);
    const state = { done: false };
    const rotating = one.upkeep.rotate().then(() => (state.done = true));
    const wrong: string[] = [];
    for (let turn = 0; !state.done || turn < 40; turn += 1) {
      const index = (turn * 37) % 1500;
      const [writer, reader] = turn % 2 === 0 ? [one, other] : [other, one];
      const value = `turn${turn}x`;
      if (turn % 7 === 3) {
        const { deleted } = await writer.forget('me', { kinds: ['fact'], key: keyOf(index) });
        if (deleted !== Number(stored.delete(index))) wrong.push(`turn ${turn}: ${deleted} forgotten`);
      } else if (turn % 3 === 0) {
        await facts(writer).put(aDraft({ key: keyOf(index), value }));
        stored.set(index, value);
        const { found } = await finder.find(me, { texts: [value], limit: 1 });
        if (found[0]?.fact.key !== keyOf(index)) wrong.push(`turn ${turn}: not found by search`);
      }
      const found = await facts(reader).get(keyOf(index));
      if (found?.value !== stored.get(index)) wrong.push(`turn ${turn}: ${found?.value} instead of ${stored.get(index)}`);
    }
    expect(wrong).toEqual([]);
    await rotating;
    expect(await facts(other).count()).toBe(stored.size);
    // The vectors of unchanged facts are kept (R-MEAN-13).
    const kept = await storedVectors(other);
    expect(kept.length).toBeGreaterThan(1400);
    expect(await embedAll(other)).toBe(stored.size - kept.length);
    const present = await fileSource(folder).read('current');
    if (present.at !== 'found') throw new Error('The key is missing.');
    expect(await keysIn(database)).toEqual({
      rows: [new SealingKey(present.key).id.toString('hex')],
      records: ['current'],
    });
    expect(await fileSource(folder).read('next')).toEqual({ at: 'absent' });
    for (const store of [one, other]) expect(await store.upkeep.verify()).toMatchObject({ broken: 0, structure: [] });
    expect(one.status().quarantined + other.status().quarantined).toBe(0);
    await facts(other).put(aDraft({ key: 'after', value: 'the rotation' }));
    expect((await facts(one).get('after'))?.value).toBe('the rotation');
  });

  test.each([false, true])(
    'a process that waits for its keychain holds up no other process, notifications lost: %s',
    async (deaf) => {
      const { folder, database, sources } = await underKeyFile(5);
      await giveNextKey(folder);
      const one = await open(database, sources);
      const file = fileSource(folder);
      const asked = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<void>();
      let isSlow = false;
      const slow: KeySource = {
        ...file,
        read: async (slot) => {
          if (isSlow) {
            asked.resolve();
            await answer.promise;
          }
          return file.read(slot);
        },
      };
      local.proxy.dropsNotifications = deaf;
      const connection = deaf ? { ...database.connection, port: local.proxy.port } : database.connection;
      const other = await open({ ...database, connection }, () => [slow]);
      await facts(other).put(aDraft({ key: 'before', value: 'the rotation' }));
      isSlow = true;
      await one.upkeep.rotate();
      const written = facts(other).put(aDraft({ key: 'during', value: 'the dialog' }));
      await asked.promise;
      // A transaction that waits would block the writers of all processes.
      const waiting = async (): Promise<unknown> =>
        (
          await local.server.query("SELECT count(*)::int AS count FROM pg_stat_activity WHERE state = 'idle in transaction'")
        )[0]?.['count'];
      await expect.poll(waiting, { timeout: 3000 }).toBe(0);
      for (let index = 0; index < 10; index += 1)
        expect((await facts(one).put(aDraft({ key: keyOf(index), value: 'x' }))).status).toBeDefined();
      answer.resolve();
      expect((await written).status).toBe('created');
      expect((await facts(one).get('during'))?.value).toBe('the dialog');
    },
  );

  test('continues in another process if the first one dies, which frees the lock', async () => {
    const { folder, database, sources } = await underKeyFile(1500);
    await giveNextKey(folder);
    const clock = manualClock();
    const one = await open({ ...throughProxy(database), waits: { reconnect: 1000 } }, sources);
    const other = await open(database, sources, clock);
    const halfDone = Promise.withResolvers<void>();
    amidRotation(() => {
      halfDone.resolve();
      return 'silence';
    });
    const rotating = one.upkeep.rotate();
    await halfDone.promise;
    await expect(other.upkeep.rotate()).rejects.toMatchObject({ code: 'unavailable' });
    // The process is cut off, as if it had died.
    local.proxy.refuses = true;
    await local.server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'helmdeck-memory'");
    await expect(rotating).rejects.toMatchObject({ code: 'store_unavailable' });
    local.proxy.refuses = false;
    await other.refresh();
    for (const until = performance.now() + 20_000; performance.now() < until;) {
      await clock.advance(MINUTE);
      if ((await keysIn(database)).records.length === 1) break;
      await delay(20);
    }
    expect(await keysIn(database)).toMatchObject({ rows: [expect.any(String)], records: ['current'] });
    expect(await other.upkeep.verify()).toMatchObject({ entries: 1551, broken: 0 });
    expect((await facts(one).get(keyOf(7)))?.value).toBe('newer 7');
  });

  test('a process without the new key writes nothing, and continues when it gets the key (R-KEY-04, R-PGUP-02)', async () => {
    const database = local.server.newMemory();
    const environment: Record<string, string> = { HELMDECK_MEMORY_KEY: A_KEY };
    const one = await open(database, keyFrom({ HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEMORY_KEY_NEXT: ANOTHER_KEY }));
    const clock = manualClock();
    const other = await open(database, keyFrom(environment), clock);
    await facts(one).put(aDraft());
    expect((await facts(other).get(aDraft().key))?.value).toBe(aDraft().value);
    await one.upkeep.rotate();
    await expect(facts(other).put(aDraft({ key: 'late' }))).rejects.toMatchObject({ code: 'key_unavailable' });
    await expect(facts(other).get(aDraft().key)).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(other.status().key).toMatchObject({ at: 'mismatch', why: expect.stringMatching(/rotated the key/) as string });
    expect((await keysIn(database)).rows).toHaveLength(1);
    environment['HELMDECK_MEMORY_KEY_NEXT'] = ANOTHER_KEY;
    await clock.advance(MINUTE);
    expect((await facts(other).get(aDraft().key))?.value).toBe(aDraft().value);
    await facts(other).put(aDraft({ key: 'late' }));
    expect((await facts(one).get('late'))?.key).toBe('late');
  });

  test.each([
    { what: 'no next key is set', environment: { HELMDECK_MEMORY_KEY: A_KEY }, says: /HELMDECK_MEMORY_KEY_NEXT/ },
    {
      what: 'the next key is the current key',
      environment: { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEMORY_KEY_NEXT: A_KEY },
      says: /provide a different key/,
    },
  ])('is refused if $what, and nothing changes', async ({ environment, says }) => {
    const database = local.server.newMemory();
    const store = await open(database, keyFrom(environment));
    await facts(store).put(aDraft());
    await expect(store.upkeep.rotate()).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(says) as string,
    });
    expect((await keysIn(database)).records).toEqual(['current']);
    expect(store.status().rotation).toEqual({ at: 'none' });
  });

  test('creates no key while other processes use the database, because they could not get it (R-PGUP-02)', async () => {
    const { folder, database, sources } = await underKeyFile(5);
    const elsewhere = tempFolder();
    await fileSource(elsewhere).save('current', Buffer.from(A_KEY, 'hex'));
    const [one, other] = [await open(database, sources), await open(database, () => [fileSource(elsewhere)])];
    await expect(one.upkeep.rotate()).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(/^Other processes use this database and need the new key too\. /) as string,
    });
    expect((await keysIn(database)).records).toEqual(['current']);
    expect(await fileSource(folder).read('next')).toEqual({ at: 'absent' });
    expect((await facts(other).get(keyOf(1)))?.value).toBe('newer 1');
    await giveNextKey(folder);
    await giveNextKey(elsewhere);
    await one.upkeep.rotate();
    expect((await facts(other).get(keyOf(1)))?.value).toBe('newer 1');
    await other[Symbol.asyncDispose]();
    await one.upkeep.rotate();
    expect((await keysIn(database)).records).toEqual(['current']);
    expect((await facts(one).get(keyOf(1)))?.value).toBe('newer 1');
  });

  test('needs both keys after an interruption, and resumes at the next start', async () => {
    const { folder, database, sources } = await underKeyFile(1500);
    const clock = manualClock();
    const one = await open(throughProxy(database), sources);
    let closed: PromiseLike<void> | undefined;
    amidRotation(() => {
      closed = one[Symbol.asyncDispose]();
      return 'pass';
    });
    await expect(one.upkeep.rotate()).rejects.toMatchObject({ code: 'cancelled' });
    await closed;
    expect(await keysIn(database)).toMatchObject({ rows: { length: 2 }, records: ['current', 'retiring'] });
    const next = await fileSource(folder).read('next');
    rmSync(join(folder, 'memory.key.next'));
    expect((await open(database, sources)).status().key.at).toBe('mismatch');
    if (next.at === 'found') await fileSource(folder).save('next', next.key);
    const again = await open(database, sources, clock);
    await clock.advance(1);
    while ((await keysIn(database)).records.length > 1) await delay(20);
    expect(await again.upkeep.verify()).toMatchObject({ entries: 1551, broken: 0 });
  });

  test('a locked process resumes after its unlock', async () => {
    const { database, sources } = await underKeyFile(1500);
    const clock = manualClock();
    const store = await open(throughProxy(database), sources, clock);
    amidRotation(() => {
      store.lock();
      return 'pass';
    });
    const rotating = store.upkeep.rotate();
    await expect(rotating).rejects.toMatchObject({ code: 'key_unavailable' });
    await store.unlock();
    await clock.advance(1);
    while ((await keysIn(database)).records.length > 1) await delay(20);
    expect((await facts(store).get(keyOf(1499)))?.value).toBe('value 1499');
  });

  test('a recovery key restores the lost key of a memory, also after a rotation (R-KEY-10)', async () => {
    const { folder, database, sources } = await underKeyFile(60);
    const store = await open(database, sources);
    expect(store.upkeep.recoverable).toBe(false);
    const recoveryKey = await store.upkeep.makeRecoveryKey();
    expect(store.upkeep.recoverable).toBe(true);
    await store.upkeep.rotate();
    await store[Symbol.asyncDispose]();
    rmSync(join(folder, 'memory.key'));
    const elsewhere = tempFolder();
    const other: KeySources = () => [fileSource(elsewhere)];
    expect((await open(database, other)).status().key.at).toBe('absent');
    const options = { database, sources: other, clock: manualClock() };
    await expect(recoverServerKey({ ...options, recoveryKey: recoveryKey.replaceAll(/[0-9A-Z]/g, '0') })).rejects.toMatchObject({
      code: 'invalid_input',
    });
    await expect(recoverServerKey({ ...options, recoveryKey, database: local.server.newMemory() })).rejects.toMatchObject({
      code: 'not_found',
    });
    // A keychain holds the keys of several memories, each under the id of its memory.
    const askedFor: string[] = [];
    const keychain: KeySources = (memory) => {
      askedFor.push(memory);
      return other(memory);
    };
    await recoverServerKey({ ...options, sources: keychain, recoveryKey });
    const [id] = await local.server.query(`SELECT plain FROM "${database.schema}".meta WHERE name = 'memory'`);
    expect(askedFor).toEqual([id?.['plain']]);
    const again = await open(database, other);
    expect(await again.upkeep.verify()).toMatchObject({ entries: 111, broken: 0 });
    expect((await facts(again).get(keyOf(7)))?.value).toBe('newer 7');
  });

  test('a recovery key that is made after a rotation opens no key that the server can still have (R-PGUP-06)', async () => {
    const { database, sources } = await underKeyFile(1);
    const store = await open(database, sources);
    const wrapped = async (): Promise<Buffer> => {
      const [row] = await local.server.query(
        `SELECT secret FROM "${database.schema}".meta WHERE name = '${RECOVERY_WRAPPED_KEY}'`,
      );
      return row?.['secret'] as Buffer;
    };
    const before = await store.upkeep.makeRecoveryKey();
    const dumped = [await wrapped()];
    await store.upkeep.rotate();
    dumped.push(await wrapped());
    const after = await store.upkeep.makeRecoveryKey();
    // The server can keep both of these rows. So the owner must destroy the earlier recovery key.
    for (const row of dumped) expect(unwrapKey(before, row)).toHaveLength(32);
    for (const row of dumped) expect(() => unwrapKey(after, row)).toThrow(/recovery key/);
    expect(unwrapKey(after, await wrapped())).toHaveLength(32);
  });
});
