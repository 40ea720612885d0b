import { expect, test } from 'vitest';
import { manualClock } from '../../support/clock.ts';
import { aCaller, openTestMemory } from '../../support/memory.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { runCli } from './run-cli.ts';

const stranger = aCaller({ client: 'stranger', quarantined: true });

test('shows, accepts and drops what waits in the Inbox (R-INBOX-03, R-INBOX-04, R-INBOX-05)', async () => {
  const folder = tempFolder();
  const { as, store, tokens } = await openTestMemory({ folder, clock: manualClock(Date.now()) });
  await as(aCaller())('remember', { key: 'editor', value: 'helix' });
  await as(stranger)('remember', { key: 'editor', value: 'vim\u202e\nand more' });
  await as(stranger)('remember', { key: 'shell', value: 'fish' });
  await as(stranger)('forget', { scope: 'category:user_facts' });
  await as(stranger)('undo', { client: 'claude-code', since: '2026-01-01T00:00:00Z' });
  await tokens[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
  const say = (...args: string[]) => runCli(args, { folder });

  expect((await say('status')).out).toMatch(/^inbox +4 writes waiting; see: helmdeck-memory inbox$/m);
  const { out, err } = await say('inbox');
  expect(out).toMatch(
    /^[0-9a-f]{32} {2}remember editor\n {2}by stranger, .*\n {4}vim\\u\{202e\}\n {4}and more\n {2}Suspicious: it has hidden or misleading characters\n {2}stored now:\n {4}helix\n/,
  );
  expect(out).toMatch(/^[0-9a-f]{32} {2}forget category:user_facts\n {2}by stranger, /m);
  expect(out).toMatch(/^[0-9a-f]{32} {2}undo\n {2}by stranger, .*\n {4}\{"client":"claude-code"/m);
  expect(err).toContain('inbox accept <id>');
  const { items } = JSON.parse((await say('inbox', '--json')).out) as { items: { id: string; key?: string }[] };
  const idOf = (key: string): string => items.find((item) => item.key === key)?.id ?? '';

  expect(await say('inbox', 'accept', idOf('editor'), '--value', 'vi', '--tag', 'x')).toMatchObject({
    code: 0,
    out: 'Accepted: remember by stranger.\nIt replaced this value, which is in the history of the fact:\n  helix\n',
  });
  expect((await say('recall', 'editor')).out).toBe('vi\n');
  expect(await say('inbox', 'accept', idOf('editor'))).toMatchObject({
    code: 3,
    err: expect.stringContaining('not in the Inbox') as string,
  });
  expect(await say('inbox', 'drop', idOf('shell'))).toMatchObject({ code: 0, out: 'Dropped 1 write.\n' });
  expect(await say('inbox', 'drop', '--all')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') as string });
  expect(await say('inbox', 'drop')).toMatchObject({ code: 2 });
  expect(await say('inbox', 'drop', '--client', 'another', '--yes')).toMatchObject({ out: 'Dropped 0 writes.\n' });
  expect(await say('inbox', 'drop', '--all', '--yes')).toMatchObject({ code: 0, out: 'Dropped 2 writes.\n' });
  expect(await say('inbox')).toMatchObject({ code: 0, out: '', err: 'Nothing waits for your approval.\n' });
  expect((await say('status')).out).not.toContain('inbox');
});
