import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { QUOTA } from '../../../src/contract/limits.ts';
import { Connection } from '../../../src/core/store/connection.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import { quotaExceeded } from '../../../src/core/store/quota.ts';
import type { EntryDraft, MemoryStore, Namespace, Quota, Space } from '../../../src/core/store/store.ts';
import { DAY, type ManualClock, manualClock, HOUR, MINUTE } from '../../support/clock.ts';
import { aDraft, anAuthor, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const me: Namespace = { subject: 'me' };
const tooMuch = { code: 'quota_exceeded' };
const aNote = (key: string): EntryDraft => aDraft({ key, category: 'activity', lifetime: 30 * DAY });
const vandal = { ...anAuthor, client: 'vandal' };

interface Opened {
  readonly store: MemoryStore;
  readonly facts: Space;
  readonly clock: ManualClock;
  readonly folder: string;
}

async function opened(quota: Partial<Quota> = {}, folder = tempFolder(), clock = manualClock()): Promise<Opened> {
  const store = await openStore({ folder, clock, sources: withKey(), quota: { ...QUOTA, ...quota } });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return { store, facts: store.space(me, 'fact'), clock, folder };
}

/** Opens the same memory with another quota. */
async function reopened({ store, folder, clock }: Opened, quota: Partial<Quota>): Promise<Opened> {
  await store[Symbol.asyncDispose]();
  return opened(quota, folder, clock);
}

/** The room of facts and versions, counted in the file. */
function bytesIn(folder: string): number {
  const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  const bytes = db.prepare('SELECT coalesce(sum(length(sealed)), 0) FROM entry WHERE kind IN (1, 2)').pluck().get() as number;
  db.close();
  return bytes;
}

describe('a quota in the file (R-FACT-16)', () => {
  test('is exact with many writers and any changes in between', async () => {
    const { store, facts } = await opened({ facts: 7 });
    const hers = store.space({ subject: 'ada' }, 'fact');
    for (let index = 0; index < 7; index += 1) {
      await facts.put(aDraft({ key: `k${index}` }));
      await facts.put(aDraft({ key: `k${index}`, value: 'said again' }));
      if (index % 3 === 0) await hers.put(aDraft({ key: `k${index}` }));
    }
    await expect(facts.put(aDraft({ key: 'one more' }))).rejects.toMatchObject(tooMuch);
    await store.forget('me', { kinds: ['fact', 'history'], key: 'k0' });
    await facts.put(aDraft({ key: 'one more' }));
    await expect(facts.put(aDraft({ key: 'and another' }))).rejects.toMatchObject(tooMuch);
    for (let index = 3; index < 7; index += 1) await hers.put(aDraft({ key: `more${index}` }));
    await expect(hers.put(aDraft({ key: 'one more' }))).rejects.toMatchObject(tooMuch);
  });

  test('is exact after a rolled back transaction that deleted facts', async () => {
    const { store, facts } = await opened({ facts: 3 });
    const keys = ['a', 'b', 'c'];
    for (const key of keys) await facts.put(aDraft({ key }));
    // The commit of all four jobs fails twice, and then the commit of each forget alone.
    const commit = vi.spyOn(Connection.prototype, 'commit');
    onTestFinished(() => commit.mockRestore());
    for (let turn = 0; turn < 2 + keys.length; turn += 1) {
      commit.mockImplementationOnce(() => {
        throw new Sqlite.SqliteError('database is locked', 'SQLITE_BUSY');
      });
    }
    const forgets = keys.map((key) => store.forget('me', { kinds: ['fact', 'history'], key }));
    const put = facts.put(aDraft({ key: 'd' }));
    const outcomes = await Promise.allSettled([...forgets, put]);
    const codes = outcomes.map((outcome) => outcome.status === 'rejected' && (outcome.reason as { code: string }).code);
    expect(codes).toEqual([...keys.map(() => 'store_unavailable'), 'quota_exceeded']);
    expect(await facts.count()).toBe(3);
  });

  test('is exact to the byte, for a new fact and for a new version', async () => {
    let memory = await opened();
    await memory.facts.put(aDraft({ key: 'a', value: 'v'.repeat(1000) }));
    await memory.facts.put(aDraft({ key: 'a', value: 'w'.repeat(1000) }));
    const used = bytesIn(memory.folder);
    await memory.facts.put(aDraft({ key: 'b', value: 'v'.repeat(77) }));
    const one = bytesIn(memory.folder) - used;
    for (const key of ['c', 'b']) {
      const put = () => memory.facts.put(aDraft({ key, value: 'x'.repeat(77) }));
      const full = bytesIn(memory.folder);
      memory = await reopened(memory, { bytes: full + one - 1 });
      await expect(put()).rejects.toMatchObject(tooMuch);
      expect(bytesIn(memory.folder)).toBe(full);
      memory = await reopened(memory, { bytes: full + one });
      await put();
      expect(bytesIn(memory.folder)).toBe(full + one);
    }
  });

  test('lowered below the use refuses only writes that add to it', async () => {
    const before = await opened();
    for (const key of ['a', 'b', 'c', 'd']) await before.facts.put(aDraft({ key }));
    const { store, facts } = await reopened(before, { facts: 2 });
    await expect(facts.put(aDraft({ key: 'e' }))).rejects.toMatchObject(tooMuch);
    expect((await facts.put(aDraft({ key: 'a' }))).status).toBe('unchanged');
    expect((await facts.put(aDraft({ key: 'a', value: 'another' }))).status).toBe('updated');
    expect(await facts.change('b', { lifetime: DAY, author: anAuthor })).toBeDefined();
    for (const key of ['c', 'd']) {
      await store.forget('me', { kinds: ['fact'], key });
      await expect(facts.put(aDraft({ key: 'e' })), key).rejects.toMatchObject(tooMuch);
    }
    await store.forget('me', { kinds: ['fact'], key: 'b' });
    await facts.put(aDraft({ key: 'e' }));
    expect(await facts.count()).toBe(2);
  });

  test('of bytes accepts a write that lowers the use', async () => {
    const before = await opened();
    // One large fact with twenty large versions.
    for (let turn = 0; turn <= 20; turn += 1) await before.facts.put(aDraft({ key: 'a', value: `${turn}`.padEnd(1000, 'v') }));
    const { facts, folder } = await reopened(before, { bytes: 5000 });
    const full = bytesIn(folder);
    await expect(facts.put(aDraft({ key: 'b', value: 'v' }))).rejects.toMatchObject(tooMuch);
    await expect(facts.put(aDraft({ key: 'a', value: 'v'.repeat(1100) }))).rejects.toMatchObject(tooMuch);
    expect((await facts.put(aDraft({ key: 'a', value: 'v' }))).status).toBe('updated');
    expect(bytesIn(folder)).toBeLessThan(full);
    expect((await facts.put(aDraft({ key: 'a', value: 'v' }))).status).toBe('unchanged');
  });

  test('counts entries of an earlier run, except expired ones', async () => {
    const before = await opened({ facts: 2 });
    await before.facts.put(aDraft({ key: 'a', lifetime: HOUR }));
    await before.facts.put(aDraft({ key: 'b' }));
    const after = await reopened(before, { facts: 2 });
    await expect(after.facts.put(aDraft({ key: 'c' }))).rejects.toMatchObject(tooMuch);
    after.clock.jump(HOUR);
    await after.facts.put(aDraft({ key: 'c' }));
  });

  test('is not exceeded by repeated undos', async () => {
    const before = await opened();
    const big = (letter: string): string => letter.repeat(4000);
    await before.facts.put(aDraft({ key: 'a', value: big('g') }));
    await before.clock.advance(MINUTE);
    await before.facts.put(aDraft({ key: 'a', value: big('b'), author: vandal }));
    const full = bytesIn(before.folder);
    const { facts, folder } = await reopened(before, { bytes: full });
    for (let turn = 0; turn < 30; turn += 1) {
      await facts.revert('a', { client: turn % 2 ? anAuthor.client : 'vandal', since: 0 }, aNote(`${turn}`));
      // The transport of the restored version is one character longer.
      expect(bytesIn(folder)).toBeLessThanOrEqual(full + 2);
    }
  });

  test('holds for each subject, however many of its clients write at once', async () => {
    const { store, folder } = await opened({ facts: 100, bytes: 60_000 });
    const subjects = ['a', 'b', 'c', 'd'];
    const refused: string[] = [];
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(
        Array.from({ length: 32 }, async (_, index) => {
          const subject = subjects[index % 4]!;
          const namespace = index % 3 ? { subject } : { subject, session: 's' };
          const draft = aDraft({
            key: `${round % 7}/${index}`,
            value: `${round}`.padEnd(1 + ((round * 37 + index * 101) % 1500), 'v'),
            author: { ...anAuthor, client: `client ${index % 5}` },
          });
          try {
            await store.space(namespace, 'fact').put(draft, aNote(`${round} ${index}`));
          } catch (error) {
            refused.push((error as { code: string }).code);
          }
        }),
      );
    }
    expect(new Set(refused)).toEqual(new Set(['quota_exceeded']));
    expect(refused.length).toBeGreaterThan(100);
    const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
    const used = db
      .prepare(
        `SELECT subject, sum(kind = 1) AS facts, sum(length(sealed)) AS bytes
           FROM entry JOIN namespace ON namespace.id = entry.namespace WHERE kind IN (1, 2) GROUP BY subject`,
      )
      .all() as ({ subject: string } & Quota)[];
    const noted = db.prepare('SELECT count(*) FROM entry WHERE kind = 6').pluck().get();
    db.close();
    expect(used.map(({ subject }) => subject)).toEqual(subjects);
    for (const { bytes } of used) {
      expect(bytes).toBeLessThanOrEqual(60_000);
      // The smallest fact still fits, so the refused ones were too large.
      expect(bytes).toBeGreaterThan(55_000);
    }
    expect(noted).toBe(20 * 32 - refused.length);
  });
});

describe('the last 100 MiB of a disk (R-DUR-03)', () => {
  const MIB = 2 ** 20;
  const filled = async (size: number) => {
    const disk = { bsize: 1, blocks: size, bavail: 100 * MIB };
    const [clock, folder] = [manualClock(), tempFolder()];
    const store = await openStore({ folder, clock, sources: withKey(), quota: QUOTA, statDisk: () => disk });
    onTestFinished(() => store[Symbol.asyncDispose]());
    const facts = store.space(me, 'fact');
    const become = async (bavail: number): Promise<void> => {
      disk.bavail = bavail;
      await clock.advance(1000);
    };
    return { facts, become };
  };

  test('are left to other programs: only writes that add bytes fail, until there is space again', async () => {
    const { facts, become } = await filled(1024 * MIB);
    await facts.put(aDraft({ key: 'a', value: 'one' }));
    await facts.put(aDraft({ key: 'b', value: 'one' }));
    await become(100 * MIB - 1);
    const refused = { code: 'disk_full', message: expect.stringMatching(/100 MiB .* free some space/) as string };
    await expect(facts.put(aDraft({ key: 'c', value: 'one' }))).rejects.toMatchObject(refused);
    await expect(facts.put(aDraft({ key: 'a', value: 'two' }))).rejects.toMatchObject(refused);
    expect(await facts.put(aDraft({ key: 'a', value: 'one' }))).toMatchObject({ status: 'unchanged' });
    expect(await facts.get('a')).toMatchObject({ value: 'one' });
    expect(await facts.count()).toBe(2);
    await become(100 * MIB);
    expect(await facts.put(aDraft({ key: 'c', value: 'one' }))).toMatchObject({ status: 'created' });
  });

  test('may be used on a small disk', async () => {
    const { facts, become } = await filled(1024 * MIB - 1);
    await become(MIB);
    expect(await facts.put(aDraft({ key: 'a', value: 'one' }))).toMatchObject({ status: 'created' });
  });
});

describe('the message of a refusal', () => {
  test.each([
    { kind: 'fact', what: 'facts', quota: { facts: 10_000, bytes: 1 }, says: /10000 facts.*Forget.*HELMDECK_QUOTA_FACTS/ },
    {
      kind: 'fact',
      what: 'bytes',
      quota: { facts: 1, bytes: QUOTA.bytes },
      says: /64 MiB, including earlier.*Forget.*HELMDECK_QUOTA_BYTES/,
    },
    { kind: 'fact', what: 'bytes', quota: { facts: 1, bytes: 5000 }, says: /5000 bytes, including earlier/ },
    { kind: 'pack', what: 'facts', quota: { facts: 10_000, bytes: 1 }, says: /10000 entries.*End sessions/ },
    { kind: 'pack', what: 'bytes', quota: QUOTA, says: /64 MiB for this subject.*End sessions/ },
  ] as const)('names it and the remedy: $kind, $what', ({ kind, what, quota, says }) => {
    expect(quotaExceeded(kind, what, quota)).toMatchObject({ ...tooMuch, message: expect.stringMatching(says) as string });
  });
});
