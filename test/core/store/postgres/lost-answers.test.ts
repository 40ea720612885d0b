import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../../src/core/store/open-store.ts';
import type { DatabaseOptions } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { restoreToServer } from '../../../../src/core/store/postgres/server-restore.ts';
import type { MemoryStore } from '../../../../src/core/store/store.ts';
import { systemClock as clock } from '../../../../src/core/time/clock.ts';
import { type MoveOptions, moveToFile, moveToServer } from '../../../../src/core/upkeep/move.ts';
import { type CommitFate, startProxiedServer } from '../../../support/postgres-proxy.ts';
import { aDraft, withKey } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const local = startProxiedServer();
afterEach(() => {
  local.proxy.fateOf = () => 'pass';
  local.proxy.refuses = false;
});

const me = { subject: 'me' };
const FACTS = 5;

/** The same memory, through the local.proxy. Gives up a database without an answer early. */
const throughProxy = ({ connection, schema }: DatabaseOptions): DatabaseOptions => ({
  connection: { ...connection, port: local.proxy.port },
  schema,
  waits: { reconnect: 500 },
});

async function openFile(folder: string): Promise<MemoryStore> {
  const store = await openStore({ folder, clock, sources: withKey() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

async function openServer(database: DatabaseOptions, folder = tempFolder()): Promise<PostgresStore> {
  const store = await PostgresStore.open({ folder, database, clock, sources: withKey() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

async function fill(store: MemoryStore): Promise<void> {
  for (let index = 0; index < FACTS; index += 1) await store.space(me, 'fact').put(aDraft({ key: `k${index}` }));
  await store[Symbol.asyncDispose]();
}

const moveOf = (folder: string, database: DatabaseOptions): MoveOptions => ({
  folder,
  database: throughProxy(database),
  places: { file: join(folder, 'memory.db'), server: 'the database' },
  clock,
  sources: withKey(),
});

/** Returns the numbers of facts in the copies that can be opened. */
async function openCopies(folder: string, database: DatabaseOptions): Promise<Record<string, number>> {
  const copies: Record<string, number> = {};
  const open = {
    // A start would create a missing file.
    file: async () => (existsSync(join(folder, 'memory.db')) ? openFile(folder) : undefined),
    database: () => openServer(database),
  };
  for (const [at, opened] of Object.entries(open)) {
    const store = await opened().catch(() => undefined);
    if (store) copies[at] = await store.space(me, 'fact').count();
    await store?.[Symbol.asyncDispose]();
  }
  return copies;
}

/** Gives one COMMIT another fate. After the last one, the database cannot be reached. */
function failCommit(number: number, fate: CommitFate, isLast = false): { commits: number } {
  const seen = { commits: 0 };
  local.proxy.fateOf = () => {
    seen.commits += 1;
    if (seen.commits !== number) return 'pass';
    local.proxy.refuses = isLast;
    return fate;
  };
  return seen;
}

async function countCommits(step: () => Promise<unknown>): Promise<{ commits: number }> {
  const seen = failCommit(0, 'pass');
  await step();
  return seen;
}

/** A memory at the source of a move, and the number of commits that its move needs. */
async function aMove(target: 'database' | 'file') {
  const move = target === 'database' ? moveToServer : moveToFile;
  const prepare = async (): Promise<{ folder: string; database: DatabaseOptions }> => {
    const [folder, database] = [tempFolder(), local.server.newMemory()];
    await fill(target === 'database' ? await openFile(folder) : await openServer(database));
    return { folder, database };
  };
  const trial = await prepare();
  const { commits } = await countCommits(() => move(moveOf(trial.folder, trial.database)));
  return { move, commits, ...(await prepare()), prepare };
}

describe('a lost answer to a COMMIT', () => {
  test.each(['database', 'file'] as const)('does not stop a move to a %s, whichever COMMIT it is (R-PGUP-07)', async (target) => {
    const { move, commits, prepare } = await aMove(target);
    expect(commits).toBeGreaterThan(2);
    for (let number = 1; number <= commits; number += 1) {
      const { folder, database } = await prepare();
      failCommit(number, 'lose answer');
      expect(await move(moveOf(folder, database))).toMatchObject({ broken: 0 });
      expect(await openCopies(folder, database)).toEqual({ [target]: FACTS });
    }
  });

  test.each(['database', 'file'] as const)(
    'or a lost COMMIT never leaves two copies, if a move to a %s loses the database too',
    async (target) => {
      const { move, commits, prepare } = await aMove(target);
      for (let number = 1; number <= commits; number += 1) {
        const { folder, database } = await prepare();
        failCommit(number, number % 2 === 0 ? 'lose before' : 'lose answer', true);
        const error: unknown = await move(moveOf(folder, database)).catch((reason: unknown) => reason);
        expect(error).toMatchObject({ code: 'store_unavailable' });
        local.proxy.refuses = false;
        expect(Object.values(await openCopies(folder, database)).filter((facts) => facts === FACTS).length).toBeLessThan(2);
        await move(moveOf(folder, database));
        expect(await openCopies(folder, database)).toEqual({ [target]: FACTS });
      }
    },
  );

  test('at the end of a move to a database is reported truthfully, and the same command says that it was done', async () => {
    const { folder, database, commits } = await aMove('database');
    failCommit(commits, 'lose answer', true);
    await expect(moveToServer(moveOf(folder, database))).rejects.toMatchObject({
      code: 'store_unavailable',
      message:
        'The connection to the database was lost. Every entry was copied and compared, and the file is marked as moved. Run the same command again to finish the move.',
    });
    local.proxy.refuses = false;
    // Another process already uses the memory.
    await (await openServer(database)).space(me, 'fact').put(aDraft({ key: 'acknowledged' }));
    expect(await moveToServer(moveOf(folder, database))).toMatchObject({ broken: 0, wasFinished: true });
    expect(await openCopies(folder, database)).toEqual({ database: FACTS + 1 });
  });

  test('at the end of a move to a file is reported truthfully, and the same command says that it was done', async () => {
    const { folder, database, commits } = await aMove('file');
    failCommit(commits, 'lose answer', true);
    await expect(moveToFile(moveOf(folder, database))).rejects.toMatchObject({
      code: 'store_unavailable',
      message: `The connection to the database was lost. The memory is now ${join(folder, 'memory.db')}, and can be used. Run the same command again to finish the move.`,
    });
    local.proxy.refuses = false;
    await (await openFile(folder)).space(me, 'fact').put(aDraft({ key: 'acknowledged' }));
    await expect(moveToFile(moveOf(folder, database))).rejects.toMatchObject({ code: 'unavailable' });
    expect(await openCopies(folder, database)).toEqual({});
  });

  test('at the end of a restore is found out, or reported truthfully (R-PGUP-08)', async () => {
    const [folder, database] = [tempFolder(), local.server.newMemory()];
    await fill(await openServer(database));
    const store = await openServer(database, folder);
    const { file: backup } = await store.upkeep.backup();
    await store.space(me, 'fact').put(aDraft({ key: 'later' }));
    await store[Symbol.asyncDispose]();
    const options = { folder, database: throughProxy(database), backup, clock, sources: withKey() };
    const { commits } = await countCommits(() =>
      restoreToServer({ ...options, database: throughProxy(local.server.newMemory()) }),
    );
    // A new database needs one commit more, which creates its tables.
    failCommit(commits - 1, 'lose answer');
    expect(await restoreToServer(options)).toMatchObject({ broken: 0 });
    expect(await (await openServer(database)).space(me, 'fact').count()).toBe(FACTS);
    failCommit(commits - 1, 'lose answer', true);
    await expect(restoreToServer(options)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(
        /^The connection to the database was lost at the end, so the backup may or may not be restored\. The replaced memory is in \S+\.db\. Run the same command again\.$/,
      ) as string,
    });
    local.proxy.refuses = false;
    await restoreToServer(options);
    expect(await (await openServer(database)).space(me, 'fact').count()).toBe(FACTS);
  });
});
