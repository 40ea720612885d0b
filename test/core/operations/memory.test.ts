import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { OperationOutput } from '../../../src/contract/operations.ts';
import { DAY, HOUR, MINUTE, START } from '../../support/clock.ts';
import { aCaller, type TestMemory, openTestMemory, theOwner } from '../../support/memory.ts';

const credential = `ghp_${'a1B2c3D4e5'.repeat(3)}F6g7h8`;

const iso = (ms: number): string => new Date(ms).toISOString();

describe('the life of a fact', () => {
  test('from storing to forgetting, with the client of every step (R-VIEW-01, R-VIEW-05, R-OPS-07, R-OPS-08, R-FORGET-04)', async () => {
    const memory = await openTestMemory();
    const claude = memory.as(aCaller());
    const codex = memory.as(aCaller({ client: 'codex', token: 'token-2' }));
    const key = 'preferences/frontend-framework';

    // Claude Code stores a fact for 90 days.
    expect(
      await claude('remember', { key, value: 'React over Vue', category: 'Preferences', tags: ['frontend', 'frontend'] }),
    ).toEqual({
      key,
      category: 'preferences',
      tags: ['frontend'],
      status: 'created',
      expires_at: iso(START + 90 * DAY),
    });

    // Another agent of the same user reads it, and sees which client wrote it.
    expect(await codex('recall', { key })).toEqual({
      key,
      value: 'React over Vue',
      category: 'preferences',
      tags: ['frontend'],
      client: 'claude-code',
      created_at: iso(START),
      updated_at: iso(START),
      expires_at: iso(START + 90 * DAY),
    });

    // That agent overwrites the value. The earlier version is kept.
    await memory.clock.advance(HOUR);
    expect(await codex('remember', { key, value: 'Svelte', category: 'preferences' })).toMatchObject({ status: 'updated' });
    expect(await claude('history', { key })).toEqual({
      key,
      versions: [
        {
          value: 'React over Vue',
          category: 'preferences',
          tags: ['frontend'],
          client: 'claude-code',
          written_at: iso(START),
          expires_at: iso(START + 90 * DAY),
        },
      ],
    });

    // The owner undoes the change of codex.
    const owner = memory.as(theOwner);
    expect(await owner('undo', { client: 'codex', since: iso(START + MINUTE) })).toMatchObject({ removed: 0, restored: 1 });
    expect(await claude('recall', { key })).toMatchObject({ value: 'React over Vue', client: 'claude-code' });

    // Setting a new lifetime changes nothing else.
    expect(await claude('patch', { key, ttl_seconds: 3600 })).toMatchObject({
      category: 'preferences',
      expires_at: iso(memory.clock.now() + HOUR),
    });

    // The overview lists the fact without its value.
    expect(await claude('myMemory', {})).toEqual({
      scope: 'caller=me',
      fetched_at: iso(memory.clock.now()),
      categories: [{ name: 'preferences', count: 1, recent_keys: [key] }],
    });

    // The activity names the client of each operation.
    const { activity } = await owner('activity', {});
    expect(activity.map(({ operation, client }) => `${client}: ${operation}`)).toEqual([
      'claude-code: patch',
      'command-line: undo',
      'codex: remember',
      'claude-code: remember',
    ]);
    expect(activity.every((row) => row.key === key)).toBe(true);

    // A forget deletes the fact and its history.
    expect(await claude('forget', { scope: `key:${key}` })).toEqual({
      scope: `key:${key}`,
      deleted: 1,
      purged: true,
      older_backups: 0,
    });
    await expect(claude('recall', { key })).rejects.toMatchObject({ code: 'not_found' });
    await expect(claude('history', { key })).rejects.toMatchObject({ code: 'not_found' });
    expect((await claude('myMemory', {})).note).toMatch(/^No facts are stored/);

    // A forget of everything leaves one activity row, even if nothing was stored.
    for (let turn = 0; turn < 2; turn += 1) {
      await memory.clock.advance(MINUTE);
      await owner('forget', { scope: 'all' });
      expect(await owner('activity', {})).toEqual({
        activity: [
          { id: expect.any(String), at: iso(memory.clock.now()), operation: 'forget', client: 'command-line', scope: 'all' },
        ],
      });
    }
  });

  test('ends at its expiry for every operation, unless it is renewed (R-TIME-01)', async () => {
    const memory = await openTestMemory();
    const me = memory.as(aCaller());
    await me('remember', { key: 'short', value: 'an hour', ttl_seconds: 3600 });
    memory.clock.jump(HOUR);
    await expect(me('recall', { key: 'short' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(me('patch', { key: 'short', ttl_seconds: 0 })).rejects.toMatchObject({ code: 'not_found' });
    expect(await me('list', {})).toEqual({ facts: [] });
    expect((await me('myMemory', {})).categories).toEqual([]);
    expect((await me('context', {})).categories).toEqual([]);
    expect((await me('export', {})).facts).toEqual([]);
    expect((await me('forget', { scope: 'key:short', dry_run: true })).deleted).toBe(0);
  });
});

describe('the scope of each operation (R-OPS-11)', () => {
  const reading = ['recall', 'list', 'history', 'activity', 'context', 'myMemory', 'callers', 'export', 'status'];
  const writing = ['remember', 'patch', 'forget', 'undo', 'import'];
  const owning = [
    'mintToken',
    'tokens',
    'revokeToken',
    'pauseToken',
    'clients',
    'planConnection',
    'connectClient',
    'disconnectClient',
    'verifyClient',
    'credentials',
    'setCredential',
    'dropCredential',
    'lock',
    'unlock',
    'rotateKey',
    'makeRecoveryKey',
    'backup',
    'backups',
    'verify',
  ];

  test.each([
    ...reading.map((name) => ({ name, scope: 'memory:read' as const })),
    ...writing.map((name) => ({ name, scope: 'memory:write' as const })),
    ...owning.map((name) => ({ name, scope: 'admin' as const })),
  ])('$name requires $scope, which is checked before the input', async ({ name, scope }) => {
    const { perform } = await openTestMemory({ keyless: true });
    const others = (['memory:read', 'memory:write', 'packs:run'] as const).filter((one) => one !== scope);
    await expect(perform(aCaller({ may: others }), name, 42)).rejects.toMatchObject({
      code: 'insufficient_scope',
      message: expect.stringContaining(scope),
    });
    await expect(perform(aCaller({ may: [scope] }), name, 42)).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(perform(theOwner, name, 42)).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test.each(['', 'constructor', 'toString', '__proto__', 'Remember', 'remember '])('there is no operation "%s"', async (name) => {
    const { perform } = await openTestMemory({ keyless: true });
    await expect(perform(theOwner, name, {})).rejects.toMatchObject({ code: 'not_found' });
  });

  test('an author named in a request is ignored (R-ISO-02)', async () => {
    const { perform } = await openTestMemory();
    const forged = { key: 'k', value: 'v', client: 'codex', subject: 'somebody', namespace: 'somebody' };
    await expect(perform(aCaller(), 'remember', forged)).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('no subject sees another subject, or learns that another one exists (R-ISO-01, R-OPS-09)', async () => {
    const memory = await openTestMemory();
    const ada = memory.as(aCaller({ subject: 'ada' }));
    const bob = memory.as(aCaller({ subject: 'bob' }));
    await ada('remember', { key: 'k', value: 'of ada' });
    await bob('remember', { key: 'k', value: 'of bob' });
    await bob('remember', { key: 'k2', value: 'of bob' });
    expect((await ada('recall', { key: 'k' })).value).toBe('of ada');
    expect(await ada('callers', {})).toEqual({ callers: [{ namespace: 'ada', count: 1 }] });
    expect(await memory.as(aCaller({ subject: 'eve' }))('callers', {})).toEqual({ callers: [{ namespace: 'eve', count: 0 }] });
    expect((await memory.as(theOwner)('callers', {})).callers).toEqual([
      { namespace: 'ada', count: 1 },
      { namespace: 'bob', count: 2 },
    ]);
    await ada('forget', { scope: 'all' });
    await ada('undo', { client: 'claude-code', since: iso(0) });
    expect((await bob('list', {})).facts).toHaveLength(2);
    expect((await bob('activity', {})).activity).toHaveLength(2);
  });

  test('a session reaches its own memory only, also when it forgets (R-ISO-04)', async () => {
    const memory = await openTestMemory();
    const me = memory.as(aCaller());
    const inSession = memory.as(aCaller({ session: 's1' }));
    await me('remember', { key: 'k', value: 'lasting' });
    await inSession('remember', { key: 'k', value: 'for now' });
    expect((await inSession('myMemory', {})).scope).toBe('caller=me:s1');
    await inSession('forget', { scope: 'facts' });
    expect((await me('recall', { key: 'k' })).value).toBe('lasting');
    await inSession('remember', { key: 'k', value: 'for now' });
    expect((await me('forget', { scope: 'facts' })).deleted).toBe(2);
  });
});

describe('listing', () => {
  const filled = async () => {
    const memory = await openTestMemory();
    const claude = memory.as(aCaller());
    const codex = memory.as(aCaller({ client: 'codex' }));
    for (let index = 0; index < 130; index += 1) {
      const send = index % 3 === 0 ? codex : claude;
      await send('remember', {
        key: `${index % 2 === 0 ? 'even' : 'odd'}/${index}`,
        value: `value ${index}`,
        category: index % 10 === 0 ? 'tens' : 'rest',
        tags: index % 7 === 0 ? ['seven', '100%_\\'] : [],
        ttl_seconds: 3600 + (130 - index) * 60,
      });
      await memory.clock.advance(1000);
    }
    return memory;
  };

  test('lists every fact once, newest first or by expiry (R-OPS-05)', async () => {
    const memory = await filled();
    const me = memory.as(aCaller());
    for (const sort of ['updated', 'expires'] as const) {
      const seen: string[] = [];
      for (let cursor: string | undefined; ;) {
        const page = await me('list', { sort, limit: 33, ...(cursor && { cursor }) });
        seen.push(...page.facts.map(({ key }) => key));
        cursor = page.next_cursor;
        if (cursor === undefined) break;
      }
      expect(seen).toHaveLength(130);
      expect(new Set(seen).size).toBe(130);
      expect(seen[0]).toBe('odd/129');
    }
  });

  test.each([
    { by: 'prefix', filter: { prefix: 'even/' }, count: 65 },
    { by: 'a prefix in which % is not a wildcard', filter: { prefix: 'even/%' }, count: 0 },
    { by: 'a prefix in another case', filter: { prefix: 'Even/' }, count: 0 },
    { by: 'category in any letter case', filter: { category: ' TENS ' }, count: 13 },
    { by: 'tag', filter: { tag: 'seven' }, count: 19 },
    { by: 'a tag with special characters', filter: { tag: '100%_\\' }, count: 19 },
    { by: 'client', filter: { client: 'codex' }, count: 44 },
    { by: 'expiry within a time', filter: { expiring_within: 3659 }, count: 1 },
    { by: 'several filters', filter: { prefix: 'even/', category: 'tens', client: 'codex', tag: 'seven' }, count: 1 },
    { by: 'a client without facts', filter: { client: 'nobody' }, count: 0 },
  ])('filters by $by (R-OPS-05)', async ({ filter, count }) => {
    const memory = await filled();
    const me = memory.as(aCaller());
    const all = await me('list', { ...filter, limit: 200 });
    expect(all.facts).toHaveLength(count);
    const first = await me('list', { ...filter, limit: 1 });
    expect(first.facts).toHaveLength(Math.min(1, count));
  });

  test('ends a page early if values are long, and still lists every fact once (R-STORE-10)', async () => {
    const { as } = await openTestMemory();
    const me = as(aCaller());
    const value = 'x'.repeat(60_000);
    const all = Array.from({ length: 60 }, (_, index) => `k${index}`);
    for (const key of all) await me('remember', { key, value, tags: [key === 'k3' ? 'rare' : 'usual'] });
    const walk = async (input: object): Promise<number[]> => {
      const seen: string[] = [];
      const sizes: number[] = [];
      for (let cursor = {}; ;) {
        const { facts, next_cursor: next } = await me('list', { limit: 200, ...input, ...cursor });
        seen.push(...facts.map(({ key }) => key));
        sizes.push(facts.length);
        if (next === undefined) break;
        cursor = { cursor: next };
      }
      expect(seen).toEqual('tag' in input ? all.filter((key) => key !== 'k3').toReversed() : all.toReversed());
      return sizes;
    };
    // Without values, all facts fit in one page.
    expect(await walk({})).toEqual([60]);
    for (const sizes of [await walk({ values: true }), await walk({ values: true, tag: 'usual' })])
      expect(Math.max(...sizes)).toBeLessThan(4);
    expect((await me('list', { values: true, tag: 'rare' })).facts).toHaveLength(1);
  });

  test('returns values only if requested', async () => {
    const memory = await filled();
    const me = memory.as(aCaller());
    expect((await me('list', { limit: 1 })).facts[0]).not.toHaveProperty('value');
    expect((await me('list', { limit: 1, values: true })).facts[0]).toMatchObject({ value: 'value 129' });
  });

  test.each([
    '',
    'x',
    'bnVsbA',
    Buffer.from('["updated",1,2,3]').toString('base64url'),
    Buffer.from('["expires",1,2]').toString('base64url'),
  ])('an invalid cursor, or one of another list, is refused: "%s"', async (cursor) => {
    const memory = await openTestMemory();
    await expect(memory.as(aCaller())('list', { cursor })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/^cursor/),
    });
  });
});

describe('context (R-OPS-10)', () => {
  test('is the newest 50 by category, with at most 32 kB of values', async () => {
    const memory = await openTestMemory();
    const me = memory.as(aCaller());
    for (let index = 0; index < 55; index += 1) {
      await me('remember', {
        key: `k${index}`,
        value: 'x'.repeat(index === 54 ? 31_990 : 5),
        category: index % 2 ? 'odd' : 'even',
      });
      await memory.clock.advance(1);
    }
    const context = await me('context', {});
    expect(context.partial).toBe(true);
    expect(context.categories.map(({ name }) => name)).toEqual(['even', 'odd']);
    const facts = context.categories.flatMap((category) => category.facts);
    expect(facts.map(({ key }) => key)).toEqual(['k54', 'k52', 'k53']);
    await me('forget', { scope: 'key:k54' });
    const after = await me('context', {});
    expect(after.categories.flatMap((category) => category.facts)).toHaveLength(50);
  });
});

describe('an import returns the input for its undo (R-BRING-07)', () => {
  test('which reverts exactly that import, and no other write of the same client', async () => {
    const { as, clock } = await openTestMemory();
    const owner = as(theOwner);
    await owner('remember', { key: 'before', value: 'b' });
    await clock.advance(MINUTE);
    const lines = ['before', 'edited', 'one', 'two'].map((key) => JSON.stringify({ key, value: 'imported' }));
    const { written } = await owner('import', { lines });
    const since = new Date(START + MINUTE).toISOString();
    expect(written).toEqual({ client: 'command-line', since, until: expect.any(String) });
    await clock.advance(HOUR);
    await owner('remember', { key: 'after', value: 'a' });
    await owner('remember', { key: 'edited', value: 'by hand' });
    const which = written ?? { client: '', since };
    expect(await owner('undo', { ...which, dry_run: true })).toMatchObject({ removed: 2, restored: 1, dry_run: true });
    expect(await owner('undo', which)).toEqual({ ...which, removed: 2, restored: 1, skipped: [] });
    const { facts } = await owner('list', { values: true });
    expect(Object.fromEntries(facts.map(({ key, value }) => [key, value]))).toEqual({
      before: 'b',
      after: 'a',
      edited: 'by hand',
    });
    expect(await owner('undo', which)).toMatchObject({ removed: 0, restored: 0, skipped: [] });
  });

  test('unless it wrote nothing', async () => {
    const { as } = await openTestMemory();
    const lines = ['{"key":"a","value":"b"}'];
    expect(await as(theOwner)('import', { lines, dry_run: true })).not.toHaveProperty('written');
    await as(theOwner)('import', { lines });
    expect(await as(theOwner)('import', { lines })).not.toHaveProperty('written');
  });
});

describe('export and import (R-OPS-06)', () => {
  const exported = async (memory: TestMemory, limit: number) => {
    const ask = memory.as(aCaller());
    const lines: string[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await ask('export', { limit, ...(cursor && { cursor }) });
      lines.push(...page.facts.map((fact) => JSON.stringify(fact)));
      cursor = page.next_cursor;
      if (cursor === undefined) return lines;
    }
  };

  test('copies every fact to another memory, in order and with its remaining lifetime', async () => {
    const [from, to] = [await openTestMemory(), await openTestMemory()];
    const me = from.as(aCaller());
    for (let index = 0; index < 25; index += 1) {
      await me('remember', { key: `k${index}`, value: `v${index}\n"quoted" ünïcode 🎈`, tags: ['t'], ttl_seconds: 7200 + index });
      await from.clock.advance(1);
    }
    await to.clock.advance(HOUR / 2);
    const lines = await exported(from, 10);
    expect(lines).toHaveLength(25);
    const importer = to.as(aCaller({ client: 'importer' }));
    expect(await importer('import', { lines, dry_run: true })).toMatchObject({ created: 25, dry_run: true });
    expect((await importer('list', {})).facts).toEqual([]);
    expect(await importer('import', { lines })).toEqual({
      created: 25,
      updated: 0,
      unchanged: 0,
      dropped: 0,
      errors: [],
      written: { client: 'importer', since: expect.any(String), until: expect.any(String) },
    });
    const before = await me('list', { values: true });
    const after = await importer('list', { values: true });
    expect(after.facts.map(({ key, value, tags, expires_at }) => ({ key, value, tags, expires_at }))).toEqual(
      before.facts.map(({ key, value, tags, expires_at }) => ({ key, value, tags, expires_at })),
    );
    // The importing client is recorded as the author, whatever the lines say.
    expect(new Set(after.facts.map(({ client }) => client))).toEqual(new Set(['importer']));
    expect(await importer('import', { lines })).toMatchObject({ created: 0, unchanged: 25 });
  });

  test('previews the outcome of the lines in order', async () => {
    const memory = await openTestMemory();
    const me = memory.as(aCaller());
    await me('remember', { key: 'a', value: '1' });
    const lines = ['{"key":"a","value":"1"}', '{"key":"a","value":"2"}', '{"key":"b","value":"1"}', '{"key":"b","value":"1"}'];
    const preview = await me('import', { lines, dry_run: true });
    expect(preview).toMatchObject({ created: 1, updated: 1, unchanged: 2 });
    expect(await me('import', { lines })).toMatchObject({ created: 1, updated: 1, unchanged: 2 });
  });

  test('previews refusals with the same messages (R-SEEK-04)', async () => {
    const memory = await openTestMemory();
    const me = memory.as(aCaller());
    const facts = [
      { key: 'a', value: `the token is ${credential}` },
      { key: `tokens/${credential}`, value: 'v' },
      { key: 'b', value: 'v', tags: [credential] },
      { key: 'c', value: 'v', category: 'cache' },
      { key: 'd', value: 'v' },
    ];
    const lines = facts.map((fact) => JSON.stringify(fact));
    const { dry_run: dry, ...preview } = await me('import', { lines, dry_run: true });
    expect([dry, preview.created, preview.errors.map(({ line }) => line)]).toEqual([true, 1, [1, 2, 3, 4]]);
    const { written: _span, ...done } = await me('import', { lines });
    expect(done).toEqual(preview);
  });

  test('reports errors by line number, and imports the other lines', async () => {
    const memory = await openTestMemory();
    const soon = iso(memory.clock.now() + HOUR - 1);
    const lines = [
      '{"key":"a","value":"1"}',
      '',
      'not json',
      '{"key":"b"}',
      '[]',
      '{"key":"c","value":"3","category":"pack_history"}',
      `{"key":"d","value":"4","expires_at":"${soon}"}`,
      '{"key":"e","value":"5","ttl_seconds":60}',
      '{"key":"f","value":"6","color":"red"}',
      '{"key":"g","value":"7","__proto__":{"admin":true}}',
      '{"key":"a","value":"2"}',
    ];
    const me = memory.as(aCaller());
    const receipt = await me('import', { lines, first_line: 101 });
    expect(receipt).toMatchObject({ created: 1, updated: 1, unchanged: 0, dropped: 1 });
    expect(receipt.errors.map(({ line }) => line)).toEqual([103, 104, 105, 106, 108, 109, 110]);
    expect(receipt.errors.map(({ message }) => message)).toEqual([
      expect.stringMatching(/not JSON/),
      expect.stringMatching(/^value/),
      expect.stringMatching(/JSON object/),
      expect.stringMatching(/^category/),
      expect.stringMatching(/^ttl_seconds/),
      expect.stringMatching(/unknown field/),
      expect.stringMatching(/unknown field/),
    ]);
    expect((await me('recall', { key: 'a' })).value).toBe('2');
  });

  test('limits lifetimes to a year (R-TIME-02)', async () => {
    const memory = await openTestMemory();
    const me = memory.as(aCaller());
    await me('import', { lines: [JSON.stringify({ key: 'k', value: 'v', expires_at: iso(START + 9000 * DAY) })] });
    expect((await me('recall', { key: 'k' })).expires_at).toBe(iso(START + 365 * DAY));
  });
});

describe('a subject with long calls (R-HTTP-14)', () => {
  const line = (index: number): string => JSON.stringify({ key: `k${index}`, value: `${index} ${'long '.repeat(400)}` });

  test.each([
    { what: 'imports', name: 'import', input: { lines: Array.from({ length: 500 }, (_, index) => line(index)) }, facts: 0 },
    { what: 'filters everything', name: 'list', input: { tag: 'nowhere' }, facts: 2000 },
  ] as const)('that $what does not block other subjects', async ({ name, input, facts }) => {
    const { as } = await openTestMemory();
    const [greedy, modest] = [as(aCaller()), as(aCaller({ subject: 'modest' }))];
    await modest('remember', { key: 'mine', value: 'short' });
    for (let first = 0; first < facts; first += 500)
      await greedy('import', { lines: Array.from({ length: 500 }, (_, index) => line(first + index)) });
    const order: string[] = [];
    const longCalls = Promise.all(Array.from({ length: 3 }, () => greedy(name, input))).then(() => order.push('long calls'));
    // Call in the next turn of the event loop, as a network request does.
    await nextTurn();
    await Promise.all([longCalls, modest('recall', { key: 'mine' }).then(() => order.push('short call'))]);
    expect(order).toEqual(['short call', 'long calls']);
  });
});

describe('undoing what a client wrote (R-OPS-07)', () => {
  test('removes facts it created, restores facts it changed, and names those it could not restore', async () => {
    const memory = await openTestMemory();
    const good = memory.as(aCaller());
    const bad = memory.as(aCaller({ client: 'bad' }));
    const owner = memory.as(theOwner);
    await bad('remember', { key: 'before the moment', value: 'stays' });
    for (const key of ['changed', 'changed twice', 'mended since', 'retagged']) await good('remember', { key, value: 'good' });
    await good('remember', { key: 'lost', value: 'good', ttl_seconds: 3600 });
    await memory.clock.advance(MINUTE);
    const since = iso(memory.clock.now());
    await bad('remember', { key: 'made', value: 'bad' });
    await bad('remember', { key: 'made', value: 'worse' });
    await bad('remember', { key: 'changed', value: 'bad', category: 'other', ttl_seconds: 7200 });
    await bad('remember', { key: 'changed twice', value: 'bad' });
    await bad('remember', { key: 'changed twice', value: 'worse' });
    await bad('patch', { key: 'retagged', tags: ['bad'] });
    await bad('remember', { key: 'mended since', value: 'bad' });
    await good('remember', { key: 'mended since', value: 'mended' });
    await bad('remember', { key: 'lost', value: 'bad' });
    // The earlier version of `lost` expires.
    await memory.clock.advance(HOUR);

    const asked = { client: 'bad', since };
    expect(await owner('undo', { ...asked, dry_run: true })).toEqual({
      ...asked,
      removed: 1,
      restored: 3,
      skipped: ['lost'],
      dry_run: true,
    });
    expect((await good('recall', { key: 'changed' })).value).toBe('bad');
    expect(await owner('undo', asked)).toEqual({ ...asked, removed: 1, restored: 3, skipped: ['lost'] });

    await expect(good('recall', { key: 'made' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await good('recall', { key: 'changed' })).toMatchObject({
      value: 'good',
      category: 'user_facts',
      client: 'claude-code',
      created_at: iso(START),
      expires_at: iso(START + 90 * DAY),
    });
    expect((await good('recall', { key: 'changed twice' })).value).toBe('good');
    expect((await good('recall', { key: 'retagged' })).tags).toEqual([]);
    expect((await good('recall', { key: 'mended since' })).value).toBe('mended');
    expect((await good('recall', { key: 'before the moment' })).value).toBe('stays');
    expect((await good('recall', { key: 'lost' })).value).toBe('bad');
    // A second undo finds only the fact that it cannot restore.
    expect(await owner('undo', asked)).toEqual({ ...asked, removed: 0, restored: 0, skipped: ['lost'] });
  });
});

describe('undo after undo (R-OPS-07)', () => {
  const setUp = async () => {
    const memory = await openTestMemory();
    const by = (client: string) => memory.as(aCaller({ client }));
    const moment = async (): Promise<string> => {
      await memory.clock.advance(MINUTE);
      return iso(memory.clock.now());
    };
    return { memory, by, moment, owner: memory.as(theOwner), key: 'k' };
  };

  test('never restores what another undo removed', async () => {
    const { by, moment, owner, key } = await setUp();
    await by('yan')('remember', { key, value: 'good' });
    const since = await moment();
    await by('xin')('remember', { key, value: 'poison' });
    expect(await owner('undo', { client: 'xin', since })).toMatchObject({ restored: 1 });
    expect(await owner('undo', { client: 'yan', since })).toMatchObject({ restored: 0, removed: 0, skipped: [] });
    expect(await owner('recall', { key })).toMatchObject({ value: 'good', client: 'yan' });
  });

  test('never restores it for a second undo of the same client from a later time', async () => {
    const { by, moment, owner, key } = await setUp();
    await by('xin')('remember', { key, value: 'good' });
    const since = await moment();
    await by('xin')('remember', { key, value: 'poison' });
    const later = await moment();
    await owner('undo', { client: 'xin', since });
    await owner('undo', { client: 'xin', since: later });
    expect(await owner('recall', { key })).toMatchObject({ value: 'good' });
  });

  test('reverts a restored version that is itself unwanted', async () => {
    const { by, moment, owner, key } = await setUp();
    const before = await moment();
    await by('yan')('remember', { key, value: 'good' });
    const since = await moment();
    await by('xin')('remember', { key, value: 'poison' });
    await owner('undo', { client: 'xin', since });
    expect(await owner('undo', { client: 'yan', since: before })).toMatchObject({ removed: 1, skipped: [] });
  });
});

describe('limits', () => {
  test('a subject over its quota is refused until it forgets something, and other subjects are not (R-FACT-16)', async () => {
    const memory = await openTestMemory({ quota: { facts: 3, bytes: 1_000_000 } });
    const me = memory.as(aCaller());
    const all = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => me('remember', { key: `k${n}`, value: 'v' })));
    expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected']);
    await expect(me('remember', { key: 'k6', value: 'v' })).rejects.toMatchObject({ code: 'quota_exceeded' });
    expect(await me('remember', { key: 'k1', value: 'another' })).toMatchObject({ status: 'updated' });
    await memory.as(aCaller({ subject: 'other' }))('remember', { key: 'k', value: 'v' });
    await me('forget', { scope: 'key:k2' });
    expect(await me('remember', { key: 'k6', value: 'v' })).toMatchObject({ status: 'created' });
    // Refused requests are not recorded in the activity, either.
    expect((await me('activity', {})).activity.filter(({ operation }) => operation === 'remember')).toHaveLength(5);
  });

  test('a request above the limit is accepted once, and a dry run does not count (R-FACT-17)', async () => {
    const memory = await openTestMemory({ writesPerMinute: 2 });
    const me = memory.as(aCaller());
    const lines = [1, 2, 3, 4].map((n) => `{"key":"k${n}","value":"v"}`);
    for (let turn = 0; turn < 5; turn += 1) await me('import', { lines, dry_run: true });
    expect(await me('import', { lines })).toMatchObject({ created: 4 });
    await expect(me('import', { lines })).rejects.toMatchObject({ code: 'rate_limited' });
  });

  test('the owner can limit the writes per minute of each token (R-FACT-17)', async () => {
    const memory = await openTestMemory({ writesPerMinute: 3 });
    const me = memory.as(aCaller());
    await me('import', { lines: ['{"key":"a","value":"1"}', '{"key":"b","value":"1"}'] });
    await me('remember', { key: 'c', value: '1' });
    await expect(me('forget', { scope: 'key:c' })).rejects.toMatchObject({ code: 'rate_limited', retryAfter: 60 });
    expect((await me('list', {})).facts).toHaveLength(3);
    await memory.as(aCaller({ token: 'token-2' }))('remember', { key: 'd', value: '1' });
    await memory.clock.advance(MINUTE);
    await me('forget', { scope: 'key:c' });
  });

  test('a credential in value, key, tags or category is refused with a hint where to store it (R-FACT-18)', async () => {
    const memory = await openTestMemory();
    const me = memory.as(aCaller());
    const secret = credential;
    for (const [field, fact] of Object.entries({
      value: { key: 'k', value: `the token is ${secret}` },
      key: { key: `tokens/${secret}`, value: 'v' },
      tags: { key: 'k', value: 'v', tags: [secret] },
    })) {
      const refused = me('remember', fact);
      await expect(refused).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringMatching(new RegExp(`^${field} looks like .*vault`)),
      });
      await expect(refused).rejects.not.toMatchObject({ message: expect.stringContaining(secret) });
    }
    const category = `sbp_${'93f8a1c0'.repeat(5)}`;
    await expect(me('remember', { key: 'k', value: 'v', category })).rejects.toMatchObject({
      message: expect.stringMatching(/^category looks like/),
    });
    await me('remember', { key: 'k', value: 'v' });
    await expect(me('patch', { key: 'k', category })).rejects.toMatchObject({
      message: expect.stringMatching(/^category looks like/),
    });
    await expect(me('remember', { key: 'wifi/password', value: 'Tr0ub4dor33' })).rejects.toMatchObject({ code: 'invalid_input' });
    expect((await me('import', { lines: [JSON.stringify({ key: 'k', value: secret })] })).errors).toHaveLength(1);
    const warned = (await openTestMemory({ secrets: 'warn' })).as(aCaller());
    expect((await warned('remember', { key: 'k', value: secret })).note).toMatch(/^value looks like/);
  });

  test('a memory without a key says in every receipt that it is stored in RAM only (R-KEY-12)', async () => {
    const memory = await openTestMemory({ keyless: true });
    expect((await memory.as(aCaller())('remember', { key: 'k', value: 'v' })).note).toMatch(/lost when the program exits/);
  });
});

describe('the owner', () => {
  test('alone sees the activity of all memories, page by page (R-OPS-08)', async () => {
    const memory = await openTestMemory();
    for (const [turn, subject] of ['ada', 'bob', 'ada', 'bob', 'ada'].entries()) {
      await memory.as(aCaller({ subject }))('remember', { key: `k${turn}`, value: 'v' });
      await memory.clock.advance(1);
    }
    const owner = memory.as(theOwner);
    const seen: string[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await owner('activity', { all: true, limit: 2, ...(cursor && { cursor }) });
      seen.push(...page.activity.map(({ namespace, key }) => `${namespace} ${key}`));
      cursor = page.next_cursor;
      if (cursor === undefined) break;
    }
    expect(seen).toEqual(['ada k4', 'bob k3', 'ada k2', 'bob k1', 'ada k0']);
    expect((await owner('activity', {})).activity).toEqual([]);
    await expect(memory.as(aCaller())('activity', { all: true })).rejects.toMatchObject({ code: 'insufficient_scope' });
  });

  test.each([{ keyless: false }, { keyless: true }])(
    'sees every row, even if a step decrypts only part of a page (R-REST-12, R-STORE-10), keyless: $keyless',
    async ({ keyless }) => {
      const memory = await openTestMemory({ keyless });
      const written = Array.from({ length: 300 }, (_, turn) => `${turn}/${'k'.repeat(500)}`);
      for (const key of written) {
        for (const subject of ['ada', 'bob']) await memory.as(aCaller({ subject }))('remember', { key, value: 'v' });
        await memory.clock.advance(1);
      }
      const walk = async (ask: (input: object) => Promise<OperationOutput<'activity'>>): Promise<unknown[]> => {
        const seen: unknown[] = [];
        for (let cursor: string | undefined; ;) {
          const page = await ask({ limit: 200, ...(cursor && { cursor }) });
          seen.push(...page.activity.map(({ key }) => key));
          cursor = page.next_cursor;
          if (cursor === undefined) return seen;
        }
      };
      const newest = written.toReversed();
      const ada = memory.as(aCaller({ subject: 'ada' }));
      expect(await walk((input) => ada('activity', input))).toEqual(newest);
      const owner = memory.as(theOwner);
      expect(await walk((input) => owner('activity', { ...input, all: true }))).toEqual(newest.flatMap((key) => [key, key]));
    },
  );

  test('locks and unlocks; while locked, every call gets the reason (R-KEY-04, R-KEY-08)', async () => {
    const memory = await openTestMemory();
    const [me, owner] = [memory.as(aCaller()), memory.as(theOwner)];
    await me('remember', { key: 'k', value: 'v' });
    expect((await owner('lock', {})).key.at).toBe('locked');
    await expect(me('recall', { key: 'k' })).rejects.toMatchObject({ code: 'key_unavailable' });
    await expect(me('myMemory', {})).rejects.toMatchObject({ code: 'key_unavailable' });
    expect((await me('status', {})).store.key.at).toBe('locked');
    expect((await owner('unlock', {})).key.at).toBe('ok');
    expect((await me('recall', { key: 'k' })).value).toBe('v');
  });

  test('makes backups and verifies', async () => {
    const memory = await openTestMemory();
    const [me, owner] = [memory.as(aCaller()), memory.as(theOwner)];
    await me('remember', { key: 'k', value: 'v' });
    const { file, broken } = await owner('backup', {});
    expect(broken).toBe(0);
    expect(await owner('backups', {})).toEqual({ backups: [{ file, at: iso(START) }], recovery_key: false });
    expect((await owner('makeRecoveryKey', {})).recovery_key).toMatch(/^(\w{4}-){13}\w{4}$/);
    expect((await owner('backups', {})).recovery_key).toBe(true);
    // The fact, and activity rows of the fact, the backup and the recovery key.
    expect(await owner('verify', {})).toEqual({ entries: 4, broken: 0, structure: [] });
    expect((await me('forget', { scope: 'key:k' })).older_backups).toBe(1);
  });

  test.each(['rotateKey', 'makeRecoveryKey', 'backup', 'verify'] as const)(
    '%s of a memory in RAM is refused with the remedy',
    async (name) => {
      const memory = await openTestMemory({ keyless: true });
      await expect(memory.as(theOwner)(name, {})).rejects.toMatchObject({ code: 'key_unavailable' });
    },
  );
});

describe('a change listener (R-OPS-12)', () => {
  test('receives kind and namespace of each change, once per turn of the event loop, after the change is durable', async () => {
    const memory = await openTestMemory();
    const [me, other] = [memory.as(aCaller()), memory.as(aCaller({ subject: 'other' }))];
    const received: string[] = [];
    const listening = memory.store.onChange(({ namespace, kind }) => received.push(`${namespace.subject} ${kind}`));
    const settle = async (): Promise<string[]> => {
      for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      return received.splice(0).toSorted();
    };
    await Promise.all([1, 2, 3].map((n) => me('remember', { key: `k${n}`, value: 'v', ttl_seconds: 3600 })));
    expect(await settle()).toEqual(['me activity', 'me fact']);
    await other('remember', { key: 'k', value: 'v' });
    expect(await settle()).toEqual(['other activity', 'other fact']);
    await me('recall', { key: 'k1' });
    await me('forget', { scope: 'key:nothing' });
    await expect(me('patch', { key: 'nothing', tags: [] })).rejects.toMatchObject({ code: 'not_found' });
    expect(await settle()).toEqual([]);
    await memory.clock.advance(HOUR);
    expect(await settle()).toEqual(['me fact']);
    listening[Symbol.dispose]();
    await other('forget', { scope: 'facts' });
    expect(await settle()).toEqual([]);
  });
});
