import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../../src/core/store/open-store.ts';
import { Database, type DatabaseOptions } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import type { EntryCursor, MemoryStore, SpaceKind } from '../../../../src/core/store/store.ts';
import { systemClock } from '../../../../src/core/time/clock.ts';
import { type MoveOptions, moveToFile, moveToServer } from '../../../../src/core/upkeep/move.ts';
import { restoreBackup } from '../../../../src/core/upkeep/restore.ts';
import { DAY } from '../../../support/clock.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { A_KEY, aDraft, ANOTHER_KEY, forceRow, withKey } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

/** The whole lane moves 100,000 facts, and kills 30 moves of 10,000 facts in each direction. */
const OPERATIONS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 10);
const FACTS = 100 * OPERATIONS;
const KILLED_FACTS = Math.max(1000, 10 * OPERATIONS);
const KILLS = Math.max(4, (3 * OPERATIONS) / 100);

const clock = systemClock;
const me = { subject: 'me' };
const KINDS: readonly SpaceKind[] = ['fact', 'audit', 'cache', 'pack', 'activity'];

async function openFile(folder: string): Promise<MemoryStore> {
  const store = await openStore({ folder, clock, sources: withKey() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

async function openServer(database: DatabaseOptions): Promise<PostgresStore> {
  const store = await PostgresStore.open({ database, clock, sources: withKey() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

const optionsFor = (folder: string, database: DatabaseOptions): MoveOptions => ({
  folder,
  database,
  places: { file: join(folder, 'memory.db'), server: `the schema ${database.schema}` },
  clock,
  sources: withKey(),
});

/** A memory in a file with facts, versions, all kinds of entries, several authors, tombstones and secrets. */
async function aFile(facts: number): Promise<string> {
  const folder = tempFolder();
  const store = await openStore({ folder, clock, sources: withKey() });
  const space = store.space(me, 'fact');
  const write = (index: number, turn: string): Promise<unknown> => {
    const author = { client: `client ${index % 7}`, origin: 'mcp', token: `token ${index % 3}` };
    const draft = { key: `facts/${index}`, value: `${turn} ${index}`, tags: [`tag ${index % 5}`, 'ü'], author };
    return space.put(aDraft(draft), aDraft({ key: `note ${turn} ${index}`, value: 'stored' }));
  };
  for (let from = 0; from < facts; from += 2000) {
    const indexes = Array.from({ length: Math.min(2000, facts - from) }, (_, index) => from + index);
    await Promise.all(indexes.map((index) => write(index, 'first')));
    await Promise.all(indexes.filter((index) => index % 10 === 0).map((index) => write(index, 'second')));
  }
  await space.put(aDraft({ key: 'by a pipeline', author: { client: 'a', origin: 'mcp', token: 't', definedBy: 'b' } }));
  await space.put(aDraft({ key: 'default', category: 'user_facts', lifetime: 2 * DAY }));
  await space.put(aDraft({ key: 'long', value: 'x'.repeat(60_000) }));
  await space.put(aDraft({ key: 'outdated', value: 'superseded' }));
  await space.put(aDraft({ key: 'current', supersedes: 'outdated' }));
  for (const kind of ['audit', 'cache', 'pack'] as const) {
    await store.space({ subject: 'you', session: kind }, kind).put(aDraft({ key: kind }));
  }
  await store.forget('me', { kinds: ['fact'], key: 'facts/3' });
  await store.forget('you', { kinds: ['cache'] });
  await store.vault.write('token abc', 'a record');
  await store.vault.revokeToken('revoked', Date.now() + DAY);
  await store.upkeep?.makeRecoveryKey();
  await store[Symbol.asyncDispose]();
  return folder;
}

/** Lists everything that callers can see of a memory, as an export does. */
async function exportOf(store: MemoryStore): Promise<string> {
  const lines: string[] = [];
  for (const kind of KINDS) {
    const namespaces = (await store.namespaces(kind)).map(({ namespace }) => namespace);
    for (const namespace of namespaces.toSorted((one, other) => JSON.stringify(one).localeCompare(JSON.stringify(other)))) {
      const space = store.space(namespace, kind);
      for (let after: EntryCursor | undefined; ;) {
        const page = await space.page({ sort: 'oldest', limit: 500, bytes: 1_000_000, ...(after && { after }) });
        for (const entry of page.entries) {
          const isOld = kind === 'fact' && (entry.value.startsWith('second') || !entry.key.startsWith('facts/'));
          lines.push(JSON.stringify([kind, namespace, entry, isOld ? await space.history(entry.key) : []]));
        }
        after = page.next;
        if (!after) break;
      }
      lines.push(
        JSON.stringify([
          kind,
          namespace,
          await space.count(),
          await store.usage(namespace.subject).then(({ used }) => used.facts),
        ]),
      );
    }
  }
  lines.push(JSON.stringify([await store.vault.read('token abc'), await store.vault.names(), await store.vault.revokedTokens()]));
  return lines.join('\n');
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

async function exportAndClose(store: MemoryStore): Promise<string> {
  const text = await exportOf(store);
  await store[Symbol.asyncDispose]();
  return text;
}

const marksIn = ({ schema }: DatabaseOptions) =>
  server.query(`SELECT name FROM "${schema}".meta WHERE name IN ('moving', 'moved') ORDER BY name`);

/**
 * Moves the memory in a process of its own. Kills the process when it has reported its progress `killAt` times. Returns whether the
 * process ended by itself.
 */
async function moveInProcess(target: string, folder: string, { schema }: DatabaseOptions, killAt = Infinity): Promise<boolean> {
  const program = join(import.meta.dirname, 'moving-process.ts');
  const child = spawn(process.execPath, [program, target, folder, String(server.port), schema], {
    env: { ...process.env, HELMDECK_MEMORY_KEY: A_KEY },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const closed = once(child, 'close') as Promise<[number | null]>;
  let reports = 0;
  // The first line says that the process has started.
  for await (const _line of createInterface(child.stdout)) {
    if (reports >= killAt) child.kill('SIGKILL');
    reports += 1;
  }
  const [code] = await closed;
  return code === 0;
}

describe('moving a memory (R-PGUP-07)', () => {
  test('from a file to PostgreSQL and back leaves every entry, version, token and tombstone as it was', async () => {
    const folder = await aFile(FACTS);
    const before = await exportAndClose(await openFile(folder));
    const database = server.newMemory();
    const seen: number[] = [];
    const moved = await moveToServer({ ...optionsFor(folder, database), progress: (rows) => void seen.push(rows) });
    expect(moved.broken).toBe(0);
    expect(seen.length).toBeGreaterThan(0);
    expect(await marksIn(database)).toEqual([]);
    const there = await openServer(database);
    expect(digest(await exportOf(there))).toBe(digest(before));
    expect(await there.upkeep.verify()).toEqual({ entries: moved.entries, broken: 0, structure: [] });
    // The earlier copy cannot be opened by mistake.
    await expect(openFile(folder)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(/was moved to the schema/) as string,
    });
    await expect(moveToServer(optionsFor(folder, server.newMemory()))).rejects.toThrow(/already moved/);
    // New rows get new numbers, and a restored fact finds its tombstones.
    await there.space(me, 'fact').put(aDraft({ key: 'new' }));
    const fact = await there.space(me, 'fact').withHistory('new');
    await there.forget('me', { kinds: ['fact'], key: 'new' });
    expect(fact?.lastTombstone).toBeGreaterThan(0);
    expect(await exportAndClose(there)).toBe(before);

    const back = await moveToFile(optionsFor(folder, database));
    expect(back.entries).toBe(moved.entries);
    expect(existsSync(back.replaced ?? '')).toBe(true);
    await expect(openServer(database)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(/was moved to .*memory\.db/) as string,
    });
    const here = await openFile(folder);
    expect(digest(await exportOf(here))).toBe(digest(before));
    expect(await here.upkeep?.verify()).toEqual({ entries: moved.entries, broken: 0, structure: [] });
    expect(here.upkeep?.recoverable).toBe(true);
    await here[Symbol.asyncDispose]();
    // And again to the database, whose copy is marked as moved.
    await moveToServer(optionsFor(folder, database));
    expect(await exportAndClose(await openServer(database))).toBe(before);
  });

  test.each(['database', 'file'])(
    'to a %s that is killed at any moment resumes, and never leaves two open copies',
    async (target) => {
      const folder = await aFile(KILLED_FACTS);
      const source = await openFile(folder);
      const facts = await source.space(me, 'fact').count();
      const before = await exportAndClose(source);
      const database = server.newMemory();
      // Counts the reports of a whole move. To a database, that is the move of a copy.
      let reports = 0;
      const progress = (): void => void (reports += 1);
      if (target === 'file') await moveToServer({ ...optionsFor(folder, database), progress });
      else {
        const trial = tempFolder();
        copyFileSync(join(folder, 'memory.db'), join(trial, 'memory.db'));
        await moveToServer({ ...optionsFor(trial, server.newMemory()), progress });
      }
      for (let kills = 0; kills < KILLS;) {
        const hasEnded = await moveInProcess(target, folder, database, Math.floor(Math.random() * reports));
        const opened = await Promise.allSettled<MemoryStore>([
          openStore({ folder, clock, sources: withKey() }),
          openServer(database),
        ]);
        const open: { store: MemoryStore; at: string }[] = [];
        for (const [index, each] of opened.entries()) {
          if (each.status === 'rejected') continue;
          // A database that the move has not reached yet is a new, empty memory.
          if ((await each.value.namespaces()).length > 0) open.push({ store: each.value, at: index === 0 ? 'file' : 'database' });
          else await each.value[Symbol.asyncDispose]();
        }
        expect(open.length).toBeLessThanOrEqual(1);
        for (const { store } of open) {
          expect(await store.space(me, 'fact').count()).toBe(facts);
          await store[Symbol.asyncDispose]();
        }
        const isMoved = open[0]?.at === target;
        expect(isMoved || !hasEnded).toBe(true);
        // If the kill came after the end of the move, it was no kill in the middle, so begin again.
        if (isMoved) await (target === 'file' ? moveToServer : moveToFile)(optionsFor(folder, database));
        else kills += 1;
      }
      expect(await moveInProcess(target, folder, database)).toBe(true);
      const store = target === 'file' ? await openFile(folder) : await openServer(database);
      expect(digest(await exportOf(store))).toBe(digest(before));
      expect(readdirSync(folder).filter((name) => name.includes('moving'))).toEqual([]);
    },
  );

  test('resumes after the source was changed in the meantime', async () => {
    const folder = await aFile(50);
    const database = server.newMemory();
    const stop = new Error('stopped');
    const progress = (): never => {
      throw stop;
    };
    await expect(moveToServer({ ...optionsFor(folder, database), progress })).rejects.toBe(stop);
    await expect(openServer(database)).rejects.toMatchObject({ message: expect.stringMatching(/has not finished/) as string });
    const store = await openFile(folder);
    await store.space(me, 'fact').put(aDraft({ key: 'facts/7', value: 'changed' }));
    await store.forget('me', { kinds: ['fact'], key: 'facts/8' });
    await store.space({ subject: 'third' }, 'fact').put(aDraft());
    const before = await exportAndClose(store);
    await moveToServer(optionsFor(folder, database));
    expect(await exportAndClose(await openServer(database))).toBe(before);
  });

  test.each(['database', 'file'])('to a %s whose earlier copy has the same key in another row', async (target) => {
    const folder = await aFile(300);
    const database = server.newMemory();
    await moveToServer(optionsFor(folder, database));
    // Two facts whose rows are in different steps of a copy.
    const [rows] = await server.query(
      `SELECT min(number) AS one, max(number) AS other FROM "${database.schema}".entry WHERE kind = 1`,
    );
    const { one, other } = rows as { one: string; other: string };
    const exchange = async (): Promise<void> => {
      const update = (to: string, from: string): string => `UPDATE entry SET number = ${to} WHERE number = ${from};`;
      const updates = [update('90000', one), update(one, other), update(other, '90000')];
      await server.query(`SET search_path = "${database.schema}"; ${updates.join(' ')}`);
    };
    // To a file, the earlier copy is a draft. Its move was stopped in its second pass, so that it contains every row.
    let seen = 0;
    const progress = (compared: number): void => {
      if (compared < seen) throw new Error('stopped');
      seen = compared;
    };
    const options = optionsFor(folder, database);
    if (target === 'database') await moveToFile(options);
    else await moveToFile({ ...options, progress }).catch(() => undefined);
    await exchange();
    const before = await exportAndClose(await (target === 'database' ? openFile(folder) : openServer(database)));
    await (target === 'database' ? moveToServer : moveToFile)(options);
    expect(await exportAndClose(await (target === 'database' ? openServer(database) : openFile(folder)))).toBe(before);
    expect(seen > 0).toBe(target === 'file');
  });

  test('to a file is finished once, also by machines that use the same path', async () => {
    const database = server.newMemory();
    await moveToServer(optionsFor(await aFile(20), database));
    const [one, other] = [tempFolder(), tempFolder()];
    const optionsOf = (folder: string): MoveOptions => ({
      ...optionsFor(folder, database),
      places: { file: '/data/memory.db', server: 'the database' },
    });
    const moved = await moveToFile(optionsOf(one));
    expect(await marksIn(database)).toEqual([{ name: 'moved' }]);
    await expect(moveToFile(optionsOf(other))).rejects.toThrow(/already moved/);
    expect(await moveToFile(optionsOf(one))).toMatchObject({ entries: moved.entries, wasFinished: true });
    // As a kill leaves it just before the last commit, and just before the file gets its name.
    const unfinished = `INSERT INTO "${database.schema}".meta (name, plain) VALUES ('moving', '/data/memory.db')`;
    for (const isNamed of [true, false]) {
      await server.query(unfinished);
      if (!isNamed) renameSync(join(one, 'memory.db'), join(one, 'memory.moving.db'));
      await expect(moveToFile(optionsOf(other))).rejects.toThrow(/already moved/);
      expect(await moveToFile(optionsOf(one))).toMatchObject({ entries: moved.entries, broken: 0 });
      expect(await marksIn(database)).toEqual([{ name: 'moved' }]);
    }
    expect(existsSync(join(other, 'memory.db'))).toBe(false);
    expect((await (await openFile(one)).space(me, 'fact').get('facts/7'))?.value).toBe('first 7');
  });

  test('copies a row with a broken seal as it is', async () => {
    const folder = await aFile(50);
    expect(forceRow(folder, 5, 'expires_at = expires_at + 1')).toBe(1);
    const database = server.newMemory();
    expect((await moveToServer(optionsFor(folder, database))).broken).toBe(1);
    expect(await (await openServer(database)).upkeep.verify()).toMatchObject({ broken: 1 });
  });

  test('refuses a process that still uses the database, at its next call, without the new place (R-PGSV-04)', async () => {
    const folder = await aFile(20);
    const database = server.newMemory();
    await moveToServer(optionsFor(folder, database));
    const live = await openServer(database);
    await live.space(me, 'fact').put(aDraft({ key: 'late' }));
    await moveToFile(optionsFor(folder, database));
    // Callers read these messages, and must not learn paths or addresses of the owner.
    const moved = /^This memory was moved to another place\. Ask its owner where it is now\.$/;
    await expect(live.space(me, 'fact').put(aDraft({ key: 'lost' }))).rejects.toThrow(moved);
    await expect(live.space(me, 'fact').get('late')).rejects.toThrow(moved);
    expect((await (await openFile(folder)).space(me, 'fact').get('late'))?.key).toBe('late');
  });

  test('a copy that is marked as moved can be restored as a memory of its own', async () => {
    const folder = await aFile(20);
    await moveToServer(optionsFor(folder, server.newMemory()));
    await restoreBackup({ folder, backup: join(folder, 'memory.db'), clock, sources: withKey() });
    expect((await (await openFile(folder)).space(me, 'fact').get('facts/7'))?.value).toBe('first 7');
  });
});

describe('a move is refused, and writes nothing, if (R-PGUP-07)', () => {
  const tablesOf = async ({ schema }: DatabaseOptions): Promise<number> =>
    (await server.query(`SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace('"${schema}"')`)).length;

  test('the data folder has no memory', async () => {
    const database = server.newMemory();
    await expect(moveToServer(optionsFor(tempFolder(), database))).rejects.toMatchObject({ code: 'not_found' });
    expect(await tablesOf(database)).toBe(0);
  });

  test('the key is wrong', async () => {
    const folder = await aFile(5);
    const [bytes, database] = [readFileSync(join(folder, 'memory.db')), server.newMemory()];
    const wrong = { ...optionsFor(folder, database), sources: withKey(ANOTHER_KEY) };
    await expect(moveToServer(wrong)).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(await tablesOf(database)).toBe(0);
    expect(readFileSync(join(folder, 'memory.db')).equals(bytes)).toBe(true);
    await moveToServer(optionsFor(folder, database));
    const elsewhere = tempFolder();
    await expect(moveToFile({ ...optionsFor(elsewhere, database), sources: withKey(ANOTHER_KEY) })).rejects.toMatchObject({
      code: 'key_unavailable',
    });
    expect(readdirSync(elsewhere).filter((name) => name !== 'lock.db')).toEqual([]);
    expect(await marksIn(database)).toEqual([]);
  });

  test('the program is running', async () => {
    const folder = await aFile(5);
    await openFile(folder);
    await expect(moveToServer(optionsFor(folder, server.newMemory()))).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('the database contains another memory, or none to move', async () => {
    const folder = await aFile(5);
    const database = server.newMemory();
    const other = await openServer(database);
    await other.space(me, 'fact').put(aDraft());
    await expect(moveToServer(optionsFor(folder, database))).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/another memory/) as string,
    });
    expect(await other.space(me, 'fact').count()).toBe(1);
    await expect(moveToFile(optionsFor(tempFolder(), server.newMemory()))).rejects.toMatchObject({ code: 'not_found' });
  });

  /** Holds the lock of the writers until `free` is called. Transactions get the lock in the order in which they wait. */
  async function holdWriters({ schema }: DatabaseOptions) {
    const client = new pg.Client(server.config);
    await client.connect();
    onTestFinished(() => client.end());
    await client.query(`BEGIN; LOCK TABLE "${schema}".writer_lock IN EXCLUSIVE MODE`);
    const sql = `SELECT 1 FROM pg_locks WHERE relation = '"${schema}".writer_lock'::regclass AND NOT granted`;
    return {
      waiting: async (count: number) => {
        await expect.poll(() => server.query(sql)).toHaveLength(count);
      },
      free: () => client.query('ROLLBACK'),
    };
  }

  test('another process stores a fact in the empty database just before the move', async () => {
    const folder = await aFile(5);
    const database = server.newMemory();
    const live = await openServer(database);
    const writers = await holdWriters(database);
    const stored = live.space(me, 'fact').put(aDraft({ key: 'acknowledged' }));
    await writers.waiting(1);
    const moving = moveToServer(optionsFor(folder, database)).catch((error: unknown) => error);
    await writers.waiting(2);
    await writers.free();
    await stored;
    expect(await moving).toMatchObject({ code: 'invalid_input', message: expect.stringMatching(/another memory/) as string });
    expect(await marksIn(database)).toEqual([]);
    expect((await live.space(me, 'fact').get('acknowledged'))?.key).toBe('acknowledged');
    await expect(openFile(folder)).resolves.toBeDefined();
  });

  test('another command replaces the database during the move', async () => {
    const folder = await aFile(5);
    const database = server.newMemory();
    await (await openServer(database))[Symbol.asyncDispose]();
    const writers = await holdWriters(database);
    const moving = moveToServer(optionsFor(folder, database)).catch((error: unknown) => error);
    await writers.waiting(1);
    const { schema } = database;
    // Runs after the transaction that marks the database, and before the copy.
    const replaced = server.query(
      `BEGIN; LOCK TABLE "${schema}".writer_lock IN EXCLUSIVE MODE;
       UPDATE "${schema}".meta SET plain = 'another' WHERE name = 'moving'; COMMIT`,
    );
    await writers.waiting(2);
    await writers.free();
    await replaced;
    expect(await moving).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/Another command/) as string });
    expect(await server.query(`SELECT 1 FROM "${schema}".entry`)).toEqual([]);
    await expect(openFile(folder)).resolves.toBeDefined();
  });

  test('the data folder already contains another memory', async () => {
    const database = server.newMemory();
    await moveToServer(optionsFor(await aFile(5), database));
    const folder = await aFile(5);
    await expect(moveToFile(optionsFor(folder, database))).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/already contains a memory/) as string,
    });
    expect(await marksIn(database)).toEqual([]);
  });

  test('another process rotates the key', async () => {
    const [database, folder] = [server.newMemory(), tempFolder()];
    await moveToServer(optionsFor(await aFile(5), database));
    const another = new Database(database);
    onTestFinished(() => another.close());
    const moving = another.alone('rotation', () => moveToFile(optionsFor(folder, database)).catch((error: unknown) => error));
    expect((await moving)?.value).toMatchObject({ code: 'unavailable' });
    expect(readdirSync(folder).filter((name) => name !== 'lock.db')).toEqual([]);
    expect(await marksIn(database)).toEqual([]);
  });

  test('the database cannot be reached', async () => {
    const folder = await aFile(5);
    const database = { connection: { ...server.config, port: 1 }, schema: 'nowhere' };
    await expect(moveToServer(optionsFor(folder, database))).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(openFile(folder)).resolves.toBeDefined();
  });

  test('a move into the folder has not finished', async () => {
    const folder = tempFolder();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'memory.moving.db'), '');
    // A deleted copy would leave a database that is marked as moved, and no memory.
    await expect(openFile(folder)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.not.stringMatching(/delete/) as string,
    });
    rmSync(join(folder, 'memory.moving.db'));
    await expect(openFile(folder)).resolves.toBeDefined();
  });
});
