import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { KeyKeeper } from '../../../src/core/crypto/key-keeper.ts';
import { Connection } from '../../../src/core/store/connection.ts';
import { openDatabase } from '../../../src/core/store/database.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import { systemClock as clock } from '../../../src/core/time/clock.ts';
import { copyMemory } from '../../../src/core/upkeep/copy-memory.ts';
import { FileCopy } from '../../../src/core/upkeep/file-copy.ts';
import { aDraft, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** Creates a memory with this number of facts. */
async function aMemory(facts: number, value: string): Promise<FileCopy> {
  const folder = tempFolder();
  const store = await openStore({ folder, clock, sources: withKey() });
  const space = store.space({ subject: 'me' }, 'fact');
  await Promise.all(Array.from({ length: facts }, (_, index) => space.put(aDraft({ key: `k${index}`, value }))));
  await store[Symbol.asyncDispose]();
  const file = join(folder, 'memory.db');
  const connection = new Connection(file, openDatabase(file));
  onTestFinished(() => connection.close());
  const keys = new KeyKeeper(connection, clock, withKey()(String(connection.meta('memory'))));
  return new FileCopy(connection, keys);
}

const rowsOf = async (copy: FileCopy) => (await copy.rowsAfter(0, 10_000)).map(({ row, sealed }) => [row, sealed]);

test.each([
  [3, 900],
  [900, 3],
  [400, 400],
  [0, 900],
])('a copy of %i facts over %i others is equal, and loads a page at a time (R-PGUP-07)', async (facts, others) => {
  const [source, target] = [await aMemory(facts, 'new'), await aMemory(others, 'old')];
  const pages: number[] = [];
  const read = target.rowsAfter.bind(target);
  target.rowsAfter = async (...bounds) => {
    const rows = await read(...bounds);
    pages.push(rows.length);
    return rows;
  };
  expect((await copyMemory(source, target)).changes).toBeGreaterThan(0);
  expect(await copyMemory(source, target)).toEqual({ entries: 0, broken: facts, changes: 0 });
  expect(Math.max(...pages)).toBeLessThanOrEqual(200);
  expect(await rowsOf(target)).toEqual(await rowsOf(source));
});
