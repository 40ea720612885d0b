import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { keySql } from '../../../../src/core/store/postgres/sql.ts';
import { manualClock, MINUTE } from '../../../support/clock.ts';
import { startPostgres } from '../../../support/postgres.ts';
import { aDraft, withKey } from '../../../support/store.ts';
import { filesBelow } from '../../../support/temp-folder.ts';

const me = { subject: 'me' };
/** Every text that the server must not learn begins with this. */
const MARKER = 'qxmrkz';

test('the server learns no key, value, tag or client: not in its tables, its write-ahead log or its log (R-SEAL-01)', async () => {
  // The server logs every statement with its parameters.
  await using server = await startPostgres({ log_statement: 'all' });
  const database = server.newMemory();
  const clock = manualClock();
  const store = await PostgresStore.open({ database, clock, sources: withKey() });
  const facts = store.space(me, 'fact');
  const markers = Array.from({ length: 100 }, () =>
    Array.from({ length: 10 }, () => `${MARKER}${randomBytes(12).toString('hex')}`),
  );
  await Promise.all(
    markers.map(([key = '', value = '', tag = '', client = '', token = '', second = '', noteKey = '', note = '']) =>
      facts
        .put(aDraft({ key, value, tags: [tag], author: { client, origin: 'mcp', token } }), aDraft({ key: noteKey, value: note }))
        .then(() => facts.put(aDraft({ key, value: second, author: { client, origin: 'mcp', token } }))),
    ),
  );
  for (const [key = '', , , , , , , , text = '', session = ''] of markers.slice(0, 30)) {
    await store.vault.write('signing secret', text);
    expect((await facts.get(key))?.key).toBe(key);
    await store.space({ subject: 'me', session: 's' }, 'pack').put(aDraft({ key: session, value: text }));
    await store.forget('me', { kinds: ['fact'], key });
  }
  await clock.advance(MINUTE);
  await store[Symbol.asyncDispose]();
  await server.query('CHECKPOINT');
  const all = filesBelow(server.folder);
  expect(all.some(({ path }) => path.includes('pg_wal'))).toBe(true);
  expect(all.some(({ path, bytes }) => path.endsWith('.log') && bytes.includes('INSERT INTO entry'))).toBe(true);
  // The log shows bytes as hexadecimal digits.
  const forms = [MARKER, Buffer.from(MARKER).toString('hex')];
  const found = all.filter(({ bytes }) => forms.some((form) => bytes.includes(form))).map(({ path }) => path);
  expect(found).toEqual([]);
});

test('the server finds an entry by its key with one index, also before it has statistics', async () => {
  await using server = await startPostgres({ autovacuum: 'off' });
  const database = server.newMemory();
  await using store = await PostgresStore.open({ database, clock: manualClock(), sources: withKey() });
  await Promise.all(Array.from({ length: 300 }, (_, index) => store.space(me, 'fact').put(aDraft({ key: `k${index}` }))));
  const plan = await server.query(
    `SET search_path = "${database.schema}"; SET plan_cache_mode = force_generic_plan;
     PREPARE find (text, text, bytea) AS SELECT number FROM entry WHERE ${keySql('fact')}; EXPLAIN EXECUTE find ('me', '', '\\x00')`,
  );
  expect(JSON.stringify(plan)).toContain('entry_key');
});
