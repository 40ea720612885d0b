import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { CommitQueue } from '../../src/core/commit-queue.ts';
import { Connection } from '../../src/core/connection.ts';
import { openDatabase } from '../../src/core/database.ts';
import { tempFolder } from '../support/temp-folder.ts';

describe('writes that arrive together (R-DUR-01)', () => {
  let connection: Connection;
  let commits: number;
  let queue: CommitQueue;
  let doubt: boolean;

  const keep = (name: string) => (): string => {
    connection.keepMeta(name, 'kept');
    return name;
  };
  const kept = (name: string): boolean => connection.meta(name) !== undefined;

  beforeEach(() => {
    const file = join(tempFolder(), 'memory.db');
    connection = new Connection(file, openDatabase(file));
    const one = connection;
    onTestFinished(() => one.close());
    commits = 0;
    doubt = false;
    const counted = {
      begin: () => connection.begin(),
      commit: () => {
        commits += 1;
        connection.commit();
      },
      rollback: () => connection.rollback(),
      savepoint: () => connection.savepoint(),
      release: () => connection.release(),
      rollbackToSavepoint: () => connection.rollbackToSavepoint(),
      get open() {
        return connection.open;
      },
    };
    queue = new CommitQueue(counted, (told) => ({ told, doubtful: doubt }));
  });

  test('are committed together, and each gets its own answer', async () => {
    const names = Array.from({ length: 32 }, (_, index) => `n${index}`);
    expect(await Promise.all(names.map((name) => queue.run(keep(name))))).toEqual(names);
    expect(commits).toBe(1);
  });

  test('nobody is answered before the commit', async () => {
    let answered = false;
    const job = queue.run(() => connection.keepMeta('x', 1)).then(() => (answered = true));
    // Another connection sees only what is committed.
    const other = new Sqlite(connection.db.name, { readonly: true });
    expect(answered).toBe(false);
    await job;
    expect(other.prepare("SELECT count(*) FROM meta WHERE name = 'x'").pluck().get()).toBe(1);
    other.close();
  });

  test('one that fails takes back its own changes and nobody else’s', async () => {
    const fails = (): never => {
      keep('torn')();
      throw new Error('no');
    };
    const [before, failed, after] = await Promise.allSettled([
      queue.run(keep('before')),
      queue.run(fails),
      queue.run(keep('after')),
    ]);
    expect([before.status, failed.status, after.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect([kept('before'), kept('torn'), kept('after')]).toEqual([true, false, true]);
    expect(commits).toBe(1);
  });

  test('one that fails alone leaves nothing behind', async () => {
    await expect(
      queue.run(() => {
        keep('torn')();
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(kept('torn')).toBe(false);
    expect(await queue.run(keep('next'))).toBe('next');
  });

  test('when the database gives up the whole transaction, each may still try alone', async () => {
    let first = true;
    const givesUp = (): never => {
      if (first) connection.rollback();
      first = false;
      throw new Error('full');
    };
    const [kept1, failed, kept2] = await Promise.allSettled([queue.run(keep('a')), queue.run(givesUp), queue.run(keep('b'))]);
    expect([kept1.status, failed.status, kept2.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect([kept('a'), kept('b')]).toEqual([true, true]);
  });

  test('but not when it is in doubt what the disk holds: then all of them are told (R-DUR-04)', async () => {
    doubt = true;
    const fails = (): never => {
      throw new Error('flush failed');
    };
    const outcomes = await Promise.allSettled([queue.run(keep('a')), queue.run(fails), queue.run(keep('b'))]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect([kept('a'), kept('b')]).toEqual([false, false]);
  });

  test('very many do not keep others waiting for all of them', async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      if (commits < 4) setImmediate(count);
    };
    setImmediate(count);
    await Promise.all(Array.from({ length: 1024 }, (_, index) => queue.run(keep(`n${index}`))));
    expect(commits).toBe(4);
    expect(turns).toBeGreaterThan(2);
  });

  test('when not even the taking back works, all are told and the next ones go on', async () => {
    const broken = new CommitQueue(
      {
        begin: () => connection.begin(),
        commit: () => connection.commit(),
        rollback: () => {
          connection.rollback();
          throw new Error('gone');
        },
        savepoint: () => connection.savepoint(),
        release: () => connection.release(),
        rollbackToSavepoint: () => connection.rollbackToSavepoint(),
        open: true,
      },
      (told) => ({ told, doubtful: true }),
    );
    const fails = (): never => {
      throw new Error('no');
    };
    await expect(broken.run(fails)).rejects.toThrow('no');
    expect(await broken.run(keep('next'))).toBe('next');
    await broken.idle();
  });

  test('an error that leaves the disk in doubt is asked about once', async () => {
    const asked: unknown[] = [];
    const doubting = new CommitQueue(
      {
        begin: () => connection.begin(),
        commit: () => connection.commit(),
        rollback: () => connection.rollback(),
        savepoint: () => connection.savepoint(),
        release: () => connection.release(),
        rollbackToSavepoint: () => connection.rollbackToSavepoint(),
        get open() {
          return connection.open;
        },
      },
      (told) => {
        asked.push(told);
        return { told, doubtful: true };
      },
    );
    const error = new Error('flush failed');
    const fails = (): never => {
      throw error;
    };
    const outcomes = await Promise.allSettled([doubting.run(keep('a')), doubting.run(fails)]);
    expect(outcomes).toEqual([
      { status: 'rejected', reason: error },
      { status: 'rejected', reason: error },
    ]);
    expect(asked).toEqual([error]);
  });

  test('idle means that nothing waits any more', async () => {
    await queue.idle();
    void queue.run(keep('x'));
    await queue.idle();
    expect(kept('x')).toBe(true);
  });
});
