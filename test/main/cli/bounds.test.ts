import { expect, test } from 'vitest';
import { tempFolder } from '../../support/temp-folder.ts';
import { runCli } from './run-cli.ts';

test.each([
  { args: ['renew', 'x', '--ttl', '30m'], says: '--ttl must be between 1h and 365d, or 0 for the default of 90d.' },
  {
    args: ['remember', 'x', 'y', '--ttl', '2y'],
    says: '--ttl must be between 1h and 365d, or 0 for the default of 90d.',
  },
  { args: ['list', '--expiring-within', '9999d'], says: '--expiring-within must be between 1s and 365d.' },
  { args: ['search', 'x', '--limit', '101'], says: '--limit must be a whole number from 1 to 100.' },
  { args: ['token', 'mint', 'x', '--days', '366'], says: '--days must be a whole number from 1 to 365.' },
])('$args is refused in the units of the command line', async ({ args, says }) => {
  const { code, err } = await runCli(args, { folder: tempFolder() });
  expect({ code, err }).toEqual({ code: 1, err: `${says}\n` });
});

test.each([
  { args: ['forget', 'preferences/x'], says: /^scope must say what to forget/ },
  { args: ['forget', 'category:Ä x'], says: /^scope names a category/ },
  { args: ['undo', '', '--since', '2h'], says: /^client is missing/ },
  { args: ['restore', '/nowhere/memory.db'], says: /^The file/ },
])('$args is refused before the confirmation', async ({ args, says }) => {
  const { code, err } = await runCli(args, { folder: tempFolder() });
  expect(code).toBe(1);
  expect(err).toMatch(says);
});
