import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HISTORY_VERSIONS } from '../../../src/contract/limits.ts';
import { noteOf } from '../../../src/core/operations/activity.ts';
import { openDatabase } from '../../../src/core/store/database.ts';
import { sameContent } from '../../../src/core/store/entry.ts';
import { prepare } from '../../../src/core/store/statements.ts';
import type { Entry } from '../../../src/core/store/store.ts';
import { type RevertPlan, planRevert, restoredVersion } from '../../../src/core/store/undo.ts';
import { DAY, HOUR, MINUTE, START } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';
import { runs } from '../../support/runs.ts';
import { aDraft, anAuthor } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const clients = ['claude', 'codex', 'vandal'] as const;

/** The versions of one key, oldest first, and which of them still exist. */
const word = fc.record({
  client: fc.constantFrom(...clients),
  value: fc.constantFrom('one', 'two', 'three'),
  expired: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
});
const story = fc.record({
  words: fc.array(word, { minLength: 1, maxLength: HISTORY_VERSIONS + 6 }),
  client: fc.constantFrom(...clients),
  since: fc.nat(HISTORY_VERSIONS + 6),
});
type Story = typeof story extends fc.Arbitrary<infer One> ? One : never;

function tell({ words }: Story): { entry: Entry; versions: Entry[]; all: Entry[] } {
  const all = words.map(({ client, value }, index): Entry => ({
    key: 'k',
    value,
    category: 'x',
    tags: [],
    author: { ...anAuthor, client },
    createdAt: START,
    updatedAt: START + index,
    expiresAt: START + DAY + index,
  }));
  const earlier = all.slice(0, -1).slice(-HISTORY_VERSIONS);
  const known = earlier.filter((one) => !words[all.indexOf(one)]?.expired);
  return { entry: all.at(-1)!, versions: known.toReversed(), all };
}

describe("an undo of a client's writes to a fact", () => {
  test('depends on the last version, whatever was written before', () => {
    fc.assert(
      fc.property(story, (one) => {
        const { entry, versions, all } = tell(one);
        const unwanted = { client: one.client, since: START + one.since };
        const theirs = (said: Entry): boolean => said.author.client === one.client && said.updatedAt >= unwanted.since;
        const reversal = planRevert(entry, versions, unwanted);
        const allTheirs = [entry, ...versions].every(theirs);
        const fromTheBeginning = [entry, ...versions].some((said) => said === all[0]);
        const before = versions.find((version) => !theirs(version));
        const unchanged = before?.author.client === one.client && before.value === entry.value;
        const right = {
          // Another client wrote the last version, or it equals an earlier one of the client.
          untouched: !theirs(entry) || unchanged,
          // The newest remaining version that is not theirs.
          restored: theirs(entry) && !unchanged && 'to' in reversal && reversal.to === before,
          removed: allTheirs && fromTheBeginning,
          skipped: allTheirs && !fromTheBeginning,
        };
        expect({ what: reversal.what, right: right[reversal.what] }).toEqual({ what: reversal.what, right: true });
      }),
      { numRuns: 5000, seed: 20_261_118 },
    );
  });

  test('twice changes nothing the second time', () => {
    fc.assert(
      fc.property(story, fc.nat(30), (one, spared) => {
        const { entry, versions } = tell(one);
        const unwanted = { client: one.client, since: START + one.since };
        const first: RevertPlan = planRevert(entry, versions, unwanted);
        if (first.what !== 'restored') return;
        const back = restoredVersion(entry, first.to, START + HOUR);
        expect(sameContent(back, first.to)).toBe(true);
        // A full memory deletes some versions, the client's own earlier one last.
        const own = first.to.author.client === one.client;
        const gone = first.expendable.slice(0, spared).filter((version) => !own || version !== first.to);
        const rest = [entry, ...versions].slice(0, HISTORY_VERSIONS).filter((version) => !gone.includes(version));
        // If its own earlier version was deleted, it cannot be found any more.
        const known = !own || rest.includes(first.to);
        expect(planRevert(back, rest, unwanted).what).toBe(known ? 'untouched' : 'skipped');
      }),
      { numRuns: 5000, seed: 20_261_118 },
    );
  });

  test('restores author, end of life and creation time, with a later update time', () => {
    const { entry, versions } = tell({
      words: [
        { client: 'codex', value: 'one', expired: false },
        { client: 'vandal', value: 'two', expired: false },
      ],
      client: 'vandal',
      since: 1,
    });
    const reversal = planRevert(entry, versions, { client: 'vandal', since: START });
    expect(reversal).toMatchObject({ what: 'restored', to: versions[0], expendable: [versions[0]] });
    const to = versions[0]!;
    expect(restoredVersion(entry, to, START + HOUR)).toEqual({
      ...to,
      author: { ...to.author, origin: 'undo' },
      updatedAt: START + HOUR,
    });
    // Within the same millisecond, or while the clock is behind.
    expect(restoredVersion(entry, to, START)).toMatchObject({ value: to.value, updatedAt: entry.updatedAt + 1 });
  });

  test('removes a fact whose first version was written while the clock was wrong', () => {
    const [first, last] = tell({
      words: [
        { client: 'vandal', value: 'one', expired: false },
        { client: 'vandal', value: 'two', expired: false },
      ],
      client: 'vandal',
      since: 0,
    }).all;
    // The fact replaced one that seemed expired, and has a version older than itself.
    expect(planRevert({ ...last!, createdAt: last!.updatedAt }, [first!], { client: 'vandal', since: 0 })).toMatchObject({
      what: 'removed',
    });
  });
});

describe.each([
  { kept: 'in a file', keyless: false },
  { kept: 'in RAM', keyless: true },
])('undo of a memory $kept', ({ keyless }) => {
  test('undoes a flood of writes, and a second undo finds none', async () => {
    const memory = await openTestMemory({ keyless });
    const [good, vandal] = [memory.as(aCaller()), memory.as(aCaller({ client: 'vandal', token: 'token-2' }))];
    const owner = memory.as(theOwner);
    const many = Array.from({ length: 700 }, (_, index) => index);
    await Promise.all(many.map((index) => good('remember', { key: `k${index}`, value: `good ${index}` })));
    await memory.clock.advance(MINUTE);
    const since = new Date(memory.clock.now()).toISOString();
    await Promise.all(many.map((index) => vandal('remember', { key: `k${index + 300}`, value: 'bad' })));
    for (let turn = 0; turn <= HISTORY_VERSIONS; turn += 1) await vandal('remember', { key: 'k0', value: `bad ${turn}` });
    await memory.clock.advance(MINUTE);
    await good('remember', { key: 'k500', value: 'good again' });

    const wanted = { client: 'vandal', since, removed: 300, restored: 400, skipped: [] };
    expect(await owner('undo', { client: 'vandal', since, dry_run: true })).toEqual({ ...wanted, dry_run: true });
    expect(await owner('undo', { client: 'vandal', since })).toEqual(wanted);
    for (const index of [0, 1, 299, 300, 699]) expect((await good('recall', { key: `k${index}` })).value).toBe(`good ${index}`);
    expect((await good('recall', { key: 'k500' })).value).toBe('good again');
    await expect(good('recall', { key: 'k700' })).rejects.toMatchObject({ code: 'not_found' });
    expect((await good('history', { key: 'k300' })).versions.map(({ value }) => value)).toEqual(['bad', 'good 300']);
    expect(await owner('undo', { client: 'vandal', since })).toEqual({ ...wanted, removed: 0, restored: 0 });
  });
});

test('versions are found by the index on their key', () => {
  const db = openDatabase(join(tempFolder(), 'memory.db'));
  const plan = db.prepare(`EXPLAIN QUERY PLAN ${prepare(db).versions.source}`).all(1, Buffer.alloc(16), 0) as {
    detail: string;
  }[];
  db.close();
  expect(plan.map(({ detail }) => detail)).toEqual(['SEARCH entry USING INDEX entry_version (namespace=? AND key_hash=?)']);
});

test('undo of many facts', async () => {
  const many = runs(10_000);
  const memory = await openTestMemory();
  const [good, vandal, owner] = [
    memory.as(aCaller()),
    memory.as(aCaller({ client: 'vandal', token: 'token-2' })),
    memory.as(theOwner),
  ];
  const since = new Date(memory.clock.now() + MINUTE).toISOString();
  const write = async (as: typeof good, value: string, from: number, to: number): Promise<void> => {
    for (let start = from; start < to; start += 500) {
      await Promise.all(Array.from({ length: 500 }, (_, more) => as('remember', { key: `k${start + more}`, value })));
    }
  };
  await write(good, 'good', 0, many / 2);
  await memory.clock.advance(MINUTE);
  await write(vandal, 'bad', 0, many);
  const start = performance.now();
  expect(await owner('undo', { client: 'vandal', since })).toMatchObject({
    removed: many / 2,
    restored: many / 2,
    skipped: [],
  });
  // Only logged, because the time depends on the machine.
  console.log(`undo of ${many} facts: ${((performance.now() - start) / 1000).toFixed(2)} s`);
  expect((await owner('status', {})).facts).toBe(many / 2);
});

describe.each([
  { kept: 'in a file', keyless: false },
  { kept: 'in RAM', keyless: true },
])('undo from an activity row, in a memory $kept (R-OPS-07)', ({ keyless }) => {
  test('keeps what the client wrote before that row in the same millisecond', async () => {
    const memory = await openTestMemory({ keyless });
    const [good, vandal, owner] = [
      memory.as(aCaller()),
      memory.as(aCaller({ client: 'vandal', token: 'token-2' })),
      memory.as(theOwner),
    ];
    await good('remember', { key: 'old', value: 'good' });
    await memory.clock.advance(MINUTE);
    for (const value of ['one', 'two', 'three']) await vandal('remember', { key: 'same', value });
    await vandal('remember', { key: 'before', value: 'v' });
    await vandal('remember', { key: 'old', value: 'bad' });
    await vandal('remember', { key: 'same', value: 'four' });
    await vandal('remember', { key: 'after', value: 'v' });
    const { activity } = await owner('activity', {});
    const row = activity.find(({ key }) => key === 'old')!;
    const wanted = { removed: 1, restored: 2, skipped: [] };
    const input = { client: 'vandal', since: row.at, from: row.id };
    expect(await owner('undo', { ...input, dry_run: true })).toMatchObject(wanted);
    expect(await owner('undo', input)).toMatchObject(wanted);
    const { facts } = await owner('list', { values: true });
    expect(Object.fromEntries(facts.map(({ key, value }) => [key, value]))).toEqual({ old: 'good', same: 'three', before: 'v' });
    expect(await owner('undo', input)).toMatchObject({ removed: 0, restored: 0 });
  });

  test('keeps what others wrote before that row by running its pipeline, in the same millisecond', async () => {
    const { store, ...memory } = await openTestMemory({ keyless });
    const facts = store.space({ subject: 'me' }, 'fact');
    const author = { client: 'runner', origin: 'mcp', token: 'token-3', definedBy: 'vandal' };
    const runner = { ...aCaller({ client: 'runner', token: 'token-3' }), definedBy: 'vandal' };
    for (const key of ['before', 'after']) {
      await facts.put(aDraft({ key, author }), noteOf(runner, 'remember', { key }));
    }
    const owner = memory.as(theOwner);
    const { activity } = await owner('activity', {});
    const row = activity.find(({ key }) => key === 'after')!;
    expect(await owner('undo', { client: 'vandal', since: row.at, from: row.id })).toMatchObject({ removed: 1 });
    expect((await owner('list', {})).facts).toMatchObject([{ key: 'before' }]);
  });
});
