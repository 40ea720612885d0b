import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { CommitQueue } from '../../../src/core/store/commit-queue.ts';
import { Connection } from '../../../src/core/store/connection.ts';
import { openDatabase } from '../../../src/core/store/database.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import { manualClock } from '../../support/clock.ts';
import { aDraft, anAuthor, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const spend = (ms: number): void => {
  for (const until = performance.now() + ms; performance.now() < until;) continue;
};

describe('writes that arrive together (R-DUR-01)', () => {
  let connection: Connection;
  let commits: number;
  let savepoints: number;
  let queue: CommitQueue;
  let doubt: boolean;

  const keep = (name: string) => (): string => {
    connection.setMeta(name, 'kept');
    return name;
  };
  const kept = (name: string): boolean => connection.meta(name) !== undefined;

  beforeEach(() => {
    const file = join(tempFolder(), 'memory.db');
    connection = new Connection(file, openDatabase(file));
    const one = connection;
    onTestFinished(() => one.close());
    commits = 0;
    savepoints = 0;
    doubt = false;
    const counted = {
      begin: () => connection.begin(),
      commit: () => {
        commits += 1;
        connection.commit();
      },
      rollback: () => connection.rollback(),
      savepoint: () => {
        savepoints += 1;
        connection.savepoint();
      },
      releaseSavepoint: () => connection.releaseSavepoint(),
      rollbackToSavepoint: () => connection.rollbackToSavepoint(),
      get inTransaction() {
        return connection.inTransaction;
      },
    };
    queue = new CommitQueue(counted, { explain: (failure) => ({ failure, doubtful: doubt }) });
  });

  test('are committed together, and each gets its own result', async () => {
    const names = Array.from({ length: 32 }, (_, index) => `n${index}`);
    expect(await Promise.all(names.map((name) => queue.run(keep(name))))).toEqual(names);
    expect(commits).toBe(1);
  });

  test('so do those of successive turns, as from writers that were answered together', async () => {
    await queue.run(() => spend(300));
    const jobs: Promise<unknown>[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      jobs.push(queue.run(keep(`n${turn}`)));
      await nextTurn();
    }
    await Promise.all(jobs);
    expect(commits).toBe(2);
  });

  test('no write waits longer for others than the last commit took', async () => {
    await queue.run(() => spend(5));
    let turn = 0;
    const first = queue.run(keep('first')).then(() => turn);
    const others: Promise<unknown>[] = [];
    // Each turn takes at least a millisecond, and more on a busy machine.
    for (; turn < 100; turn += 1) {
      others.push(queue.run(() => 1));
      spend(1);
      await nextTurn();
    }
    await Promise.all(others);
    expect(await first).toBeLessThan(50);
    expect(commits).toBeLessThan(90);
  });

  test('no write is answered before the commit', async () => {
    let answered = false;
    const job = queue.run(() => connection.setMeta('x', 1)).then(() => (answered = true));
    // Another connection sees only committed changes.
    const other = new Sqlite(connection.db.name, { readonly: true });
    expect(answered).toBe(false);
    await job;
    expect(other.prepare("SELECT count(*) FROM meta WHERE name = 'x'").pluck().get()).toBe(1);
    other.close();
  });

  test('a write that fails rolls back only its own changes', async () => {
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

  test('a single write that fails is rolled back', async () => {
    await expect(
      queue.run(() => {
        keep('torn')();
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(kept('torn')).toBe(false);
    expect(await queue.run(keep('next'))).toBe('next');
  });

  test('each is tried alone when SQLite rolls back the whole transaction', async () => {
    let runs = 0;
    const givesUp = (): never => {
      runs += 1;
      if (connection.inTransaction && runs <= 2) connection.rollback();
      throw new Error('full');
    };
    const [kept1, failed, kept2] = await Promise.allSettled([queue.run(keep('a')), queue.run(givesUp), queue.run(keep('b'))]);
    expect([kept1.status, failed.status, kept2.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect([kept('a'), kept('b')]).toEqual([true, true]);
    expect([runs, commits]).toEqual([3, 2]);
  });

  test('writes after a failed one run once, and later without savepoints again', async () => {
    const fails = (): never => {
      throw new Error('no');
    };
    let runs = 0;
    const counts = (): number => (runs += 1);
    const pair = (job: () => unknown) => Promise.allSettled([queue.run(counts), queue.run(job)]);
    await pair(fails);
    expect(runs).toBe(2);
    for (let turn = 0; turn < 64; turn += 1) await pair(turn % 2 === 0 ? fails : keep(`n${turn}`));
    expect(runs).toBe(66);
    const before = savepoints;
    await pair(keep('last'));
    expect([runs, savepoints - before]).toEqual([67, 0]);
  });

  test('all fail when the contents of the disk are in doubt (R-DUR-04)', async () => {
    doubt = true;
    const fails = (): never => {
      throw new Error('flush failed');
    };
    const outcomes = await Promise.allSettled([queue.run(keep('a')), queue.run(fails), queue.run(keep('b'))]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect([kept('a'), kept('b')]).toEqual([false, false]);
  });

  test('a large number is split into several commits', async () => {
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

  describe('in lanes (R-FACT-17)', () => {
    /** Queues jobs of a lane and records the commit that ran each. */
    const done: { lane: string; job: number; commit: number }[] = [];
    const send = (lane: string, count: number): Promise<unknown> =>
      Promise.all(
        Array.from({ length: count }, (_, job) =>
          queue.run(() => {
            done.push({ lane, job, commit: commits });
          }, lane),
        ),
      );
    const of = (lane: string) => done.filter((one) => one.lane === lane);
    beforeEach(() => done.splice(0));

    test('a lane with many jobs delays others by one commit at most', async () => {
      const flood = send('flood', 10_000);
      const other = send('other', 1);
      await other;
      expect(commits).toBe(1);
      expect(of('other')).toEqual([{ lane: 'other', job: 0, commit: 0 }]);
      // Again while the first jobs run.
      const before = commits;
      await send('another', 1);
      expect(commits - before).toBeLessThanOrEqual(2);
      await flood;
      expect(of('flood').map(({ job }) => job)).toEqual(Array.from({ length: 10_000 }, (_, job) => job));
    });

    test('each lane keeps its order, and one commit runs as many jobs as fit', async () => {
      await Promise.all(['a', 'b', 'c'].map((lane) => send(lane, 80)));
      expect(commits).toBe(1);
      for (const lane of ['a', 'b', 'c'])
        expect(of(lane).map(({ job }) => job)).toEqual(Array.from({ length: 80 }, (_, job) => job));
    });

    test('each lane keeps its order when more of its jobs arrive', async () => {
      const first = send('a', 700);
      await send('b', 1);
      const second = send('a', 3);
      await Promise.all([first, second]);
      expect(of('a').map(({ job }) => job)).toEqual([...Array.from({ length: 700 }, (_, job) => job), 0, 1, 2]);
    });

    test('lanes take turns when there are more than one commit can run', async () => {
      const lanes = Array.from({ length: 600 }, (_, index) => `lane ${index}`);
      await Promise.all(lanes.map((lane) => send(lane, 3)));
      const rounds = Math.ceil(600 / 256);
      for (const lane of lanes) {
        expect(of(lane).map(({ job }) => job)).toEqual([0, 1, 2]);
        expect(of(lane)[0]?.commit).toBeLessThan(rounds);
      }
    });

    test('a job that fails does not stop the jobs behind it', async () => {
      const outcomes = await Promise.allSettled([
        queue.run(keep('before'), 'a'),
        queue.run(() => {
          keep('torn')();
          throw new Error('no');
        }, 'a'),
        queue.run(keep('beside'), 'b'),
        queue.run(keep('after'), 'a'),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
      expect(['before', 'torn', 'beside', 'after'].map(kept)).toEqual([true, false, true, true]);
    });
  });

  describe('in the background', () => {
    test('a job runs at once in an empty queue, one per commit, and knows that it is alone', async () => {
      const told: boolean[] = [];
      await Promise.all(Array.from({ length: 3 }, () => queue.runInBackground((alone) => told.push(alone))));
      expect(told).toEqual([true, true, true]);
      expect(commits).toBe(3);
    });

    test('jobs pause while others wait, and still run', async () => {
      let over = false;
      let others = 0;
      const busy = async (): Promise<void> => {
        others += await queue.run(() => 1);
        if (!over) await busy();
      };
      const writing = busy();
      const turns: { alone: boolean; from: number; to: number; others: number }[] = [];
      await Promise.all(
        Array.from({ length: 4 }, () =>
          queue.runInBackground((alone) => {
            const from = performance.now();
            spend(1);
            turns.push({ alone, from, to: performance.now(), others });
          }),
        ),
      );
      over = true;
      await writing;
      for (const [index, turn] of turns.entries()) {
        expect(turn.alone).toBe(false);
        const before = turns[index - 1];
        if (!before) continue;
        expect(turn.from - before.to).toBeGreaterThan(10 * (before.to - before.from));
        expect(turn.others).toBeGreaterThan(before.others);
      }
    });

    test('a job that fails does not stop the next, and whenIdle waits for both', async () => {
      const fails = queue.runInBackground(() => {
        keep('torn')();
        throw new Error('no');
      });
      const next = queue.runInBackground(keep('next'));
      const told = Promise.allSettled([fails, next]);
      await queue.whenIdle();
      expect([kept('torn'), kept('next')]).toEqual([false, true]);
      expect((await told).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    });

    test('a job that is repeated alone after a full disk has its effect once', async () => {
      let first = true;
      let runs = 0;
      const exhausts = (): void => {
        if (!first) return;
        first = false;
        connection.rollback();
        throw new Error('full');
      };
      const outcomes = await Promise.allSettled([
        queue.run(exhausts),
        queue.runInBackground(() => {
          runs += 1;
          return keep('behind')();
        }),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
      expect(runs).toBe(1);
      expect(kept('behind')).toBe(true);
    });
  });

  test('all fail when even the rollback fails, and later ones work', async () => {
    const broken = new CommitQueue(
      {
        begin: () => connection.begin(),
        commit: () => connection.commit(),
        rollback: () => {
          connection.rollback();
          throw new Error('gone');
        },
        savepoint: () => connection.savepoint(),
        releaseSavepoint: () => connection.releaseSavepoint(),
        rollbackToSavepoint: () => connection.rollbackToSavepoint(),
        inTransaction: true,
      },
      { explain: (failure) => ({ failure, doubtful: true }) },
    );
    const fails = (): never => {
      throw new Error('no');
    };
    await expect(broken.run(fails)).rejects.toThrow('no');
    expect(await broken.run(keep('next'))).toBe('next');
    await broken.whenIdle();
  });

  test('an error that leaves the disk in doubt is explained once', async () => {
    const asked: unknown[] = [];
    const doubting = new CommitQueue(
      {
        begin: () => connection.begin(),
        commit: () => connection.commit(),
        rollback: () => connection.rollback(),
        savepoint: () => connection.savepoint(),
        releaseSavepoint: () => connection.releaseSavepoint(),
        rollbackToSavepoint: () => connection.rollbackToSavepoint(),
        get inTransaction() {
          return connection.inTransaction;
        },
      },
      {
        explain: (failure) => {
          asked.push(failure);
          return { failure, doubtful: true };
        },
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

  test('whenIdle resolves when no job waits', async () => {
    await queue.whenIdle();
    void queue.run(keep('x'));
    await queue.whenIdle();
    expect(kept('x')).toBe(true);
  });
});

test('a client that floods a memory delays neither other subjects nor other clients (R-FACT-17)', async () => {
  await using store = await openStore({ folder: tempFolder(), clock: manualClock(), sources: withKey() });
  const facts = store.space({ subject: 'me' }, 'fact');
  let flooded = 0;
  const flood = Array.from({ length: 10_000 }, async (_, index) => {
    await facts.put(aDraft({ key: `k${index % 50}`, value: `${index}`, lifetime: 3_600_000 }));
    flooded += 1;
  });
  const another = { ...anAuthor, client: 'codex', token: 'token-2' };
  const waits = [
    () => facts.put(aDraft({ key: 'of another client', author: another })),
    () => store.space({ subject: 'you' }, 'fact').put(aDraft()),
    () => store.forget('you', { kinds: ['fact'] }),
    () => facts.revert('of another client', { client: 'codex', since: 0 }, aDraft({ category: 'activity', author: another })),
  ];
  for (const wait of waits) {
    const before = flooded;
    await wait();
    expect(flooded - before).toBeLessThanOrEqual(512);
  }
  expect(flooded).toBeLessThan(4000);
  await Promise.all(flood);
  expect((await facts.get('k49'))?.value).toBe('9999');
});
