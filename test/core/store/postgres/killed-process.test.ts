import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import type { Entry, Space } from '../../../../src/core/store/store.ts';
import { systemClock } from '../../../../src/core/time/clock.ts';
import { startPostgres } from '../../../support/postgres.ts';
import { A_KEY, withKey } from '../../../support/store.ts';

/** The lane kills more. */
const KILLS = Math.ceil((3 * Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 50)) / 50);

async function everything(space: Space): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let after = {}; ;) {
    const page = await space.page({ sort: 'oldest', limit: 500, ...after });
    entries.push(...page.entries);
    if (!page.next) return entries;
    after = { after: page.next };
  }
}

test('a process that is killed under eight writers loses no acknowledged write and stores none twice (R-DUR-01)', async () => {
  const server = await startPostgres();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const database = server.newMemory();
  const acknowledged: string[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const program = join(import.meta.dirname, 'writing-process.ts');
    const child = spawn(process.execPath, [program, String(server.port), database.schema, `run ${kill}`], {
      env: { ...process.env, HELMDECK_MEMORY_KEY: A_KEY },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let printed = '';
    const enough = 40 + ((kill * 37) % 100);
    await new Promise<void>((resolve) => {
      child.stdout.on('data', (text: Buffer) => {
        printed += String(text);
        if (printed.split('\n').length > enough) resolve();
      });
    });
    child.kill('SIGKILL');
    await once(child, 'close');
    // The last line may be cut.
    acknowledged.push(...printed.split('\n').slice(0, -1));
  }
  await using store = await PostgresStore.open({ database, clock: systemClock, sources: withKey() });
  const stored: string[] = [];
  const notes: string[] = [];
  for (const subject of ['subject 0', 'subject 1', 'subject 2']) {
    for (const { key, value } of await everything(store.space({ subject }, 'fact'))) {
      expect(value).toBe(`value of ${key}`);
      stored.push(key);
    }
    notes.push(...(await everything(store.space({ subject }, 'activity'))).map(({ key }) => key));
  }
  const all = new Set([...stored, ...notes]);
  expect(acknowledged.flatMap((key) => [key, `note ${key}`]).filter((key) => !all.has(key))).toEqual([]);
  // A fact replaces another fact with its key, but every note has a row of its own, so a repeated write would show.
  expect(all.size).toBe(stored.length + notes.length);
  expect(acknowledged.length).toBeGreaterThan(KILLS * 40);
});
