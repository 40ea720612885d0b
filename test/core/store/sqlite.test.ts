import Package from 'better-sqlite3';
import { expect, test } from 'vitest';
import { Sqlite } from '../../../src/core/store/sqlite.ts';

test('loads the same binary as the package', () => {
  const version = 'SELECT sqlite_version() || sqlite_source_id()';
  const ours = new Sqlite(':memory:');
  const theirs = new Package(':memory:');
  expect(ours.prepare(version).pluck().get()).toBe(theirs.prepare(version).pluck().get());
  ours.close();
  theirs.close();
});
