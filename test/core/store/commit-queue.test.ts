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
    doubt = false;
    const counted = {
      begin: () => connection.begin(),
      commit: () => {
        commits += 1;
        connection.commit();
      },
      rollback: () => connection.rollback(),
      savepoint: () => connection.savepoint(),
      releaseSavepoint: () => connection.releaseSavepoint(),
      rollbackToSavepoint: () => connection.rollbackToSavepoint(),
      get inTransaction() {
        return connection.inTransaction;
      },
    };
    queue = new CommitQueue(counted, { explain: (told) => ({ told, doubtful: doubt }) });
  });

  test('are committed together, and each gets its own answer', async () => {
    const names = Array.from({ length: 32 }, (_, index) => `n${index}`);
    expect(await Promise.all(names.map((name) => queue.run(keep(name))))).toEqual(names);
    expect(commits).toBe(1);
  });

  test('so are those that come one turn after the other, as from writers who were answered together', async () => {
    await queue.run(() => spend(300));
    const jobs: Promise<unknown>[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      jobs.push(queue.run(keep(`n${turn}`)));
      await nextTurn();
    }
    await Promise.all(jobs);
    expect(commits).toBe(2);
  });

  test('nobody waits longer for others than the last commit took', async () => {
    await queue.run(() => spend(5));
    let turn = 0;
    const first = queue.run(keep('first')).then(() => turn);
    const others: Promise<unknown>[] = [];
    // In turns of a millisecond at least: a machine that is busy makes them longer, and none of them more.
    for (; turn < 100; turn += 1) {
      others.push(queue.run(() => 1));
      spend(1);
      await nextTurn();
    }
    await Promise.all(others);
    expect(await first).toBeLessThan(50);
    expect(commits).toBeLessThan(90);
  });

  test('nobody is answered before the commit', async () => {
    let answered = false;
    const job = queue.run(() => connection.setMeta('x', 1)).then(() => (answered = true));
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

  describe('in lanes (R-FACT-17)', () => {
    /** Hands in so many jobs of a lane and tells in which order they were done, by the number of the commit. */
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

    test('whoever has very many keeps nobody waiting longer than a batch', async () => {
      const flood = send('flood', 10_000);
      const other = send('other', 1);
      await other;
      expect(commits).toBe(1);
      expect(of('other')).toEqual([{ lane: 'other', job: 0, commit: 0 }]);
      // And again in the midst of it.
      const before = commits;
      await send('another', 1);
      expect(commits - before).toBeLessThanOrEqual(2);
      await flood;
      expect(of('flood').map(({ job }) => job)).toEqual(Array.from({ length: 10_000 }, (_, job) => job));
    });

    test('each keeps its order, and all that fit go in one commit', async () => {
      await Promise.all(['a', 'b', 'c'].map((lane) => send(lane, 80)));
      expect(commits).toBe(1);
      for (const lane of ['a', 'b', 'c'])
        expect(of(lane).map(({ job }) => job)).toEqual(Array.from({ length: 80 }, (_, job) => job));
    });

    test('each keeps its order when jobs of it come while others of it wait', async () => {
      const first = send('a', 700);
      await send('b', 1);
      const second = send('a', 3);
      await Promise.all([first, second]);
      expect(of('a').map(({ job }) => job)).toEqual([...Array.from({ length: 700 }, (_, job) => job), 0, 1, 2]);
    });

    test('more lanes than fit in a commit take turns, and none is left out', async () => {
      const lanes = Array.from({ length: 600 }, (_, index) => `lane ${index}`);
      await Promise.all(lanes.map((lane) => send(lane, 3)));
      const rounds = Math.ceil(600 / 256);
      for (const lane of lanes) {
        expect(of(lane).map(({ job }) => job)).toEqual([0, 1, 2]);
        expect(of(lane)[0]?.commit).toBeLessThan(rounds);
      }
    });

    test('a job that fails is told in its lane, and those behind it are done', async () => {
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

  describe('behind all others', () => {
    test('a job is done at once when nobody waits, one in a commit, and knows that it is alone', async () => {
      const told: boolean[] = [];
      await Promise.all(Array.from({ length: 3 }, () => queue.runInBackground((alone) => told.push(alone))));
      expect(told).toEqual([true, true, true]);
      expect(commits).toBe(3);
    });

    test('it rests while others have jobs, many times as long as it took, and gets its turn all the same', async () => {
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

    test('one that fails is told, and so is one behind it; idle waits for both', async () => {
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

    test('one that is tried again alone, because another exhausted the disk, is done once', async () => {
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
        releaseSavepoint: () => connection.releaseSavepoint(),
        rollbackToSavepoint: () => connection.rollbackToSavepoint(),
        inTransaction: true,
      },
      { explain: (told) => ({ told, doubtful: true }) },
    );
    const fails = (): never => {
      throw new Error('no');
    };
    await expect(broken.run(fails)).rejects.toThrow('no');
    expect(await broken.run(keep('next'))).toBe('next');
    await broken.whenIdle();
  });

  test('an error that leaves the disk in doubt is asked about once', async () => {
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
        explain: (told) => {
          asked.push(told);
          return { told, doubtful: true };
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

  test('idle means that nothing waits any more', async () => {
    await queue.whenIdle();
    void queue.run(keep('x'));
    await queue.whenIdle();
    expect(kept('x')).toBe(true);
  });
});

test('one client that floods a memory keeps neither another subject nor another client waiting (R-FACT-17)', async () => {
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
