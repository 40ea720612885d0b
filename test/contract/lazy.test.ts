import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lazy } from '../../src/contract/schema.ts';

const SOURCES = join(import.meta.dirname, '../../src');

/** Matches a line that creates a schema while its module loads. */
const AT_LOAD = /^(?:export )?const \w+(?:: [^=]+)? =\s+(?:z\s*\.|ask\()/m;

describe('lazy values', () => {
  test('are created once, on first use', () => {
    const made: number[] = [];
    const thing = lazy(() => ({ number: made.push(1) }));
    expect(made).toEqual([]);
    expect(thing()).toBe(thing());
    expect(made).toEqual([1]);
  });

  test('are created again after a failure', () => {
    let tries = 0;
    const thing = lazy(() => {
      tries += 1;
      if (tries === 1) throw new Error('not yet');
      return tries;
    });
    expect(thing).toThrow('not yet');
    expect(thing()).toBe(2);
  });

  test('include all schemas that start-up could wait for', async () => {
    const early: string[] = [];
    for await (const file of glob('{contract,core,listeners,main}/**/*.ts', { cwd: SOURCES })) {
      // Command line modules and their records load only what they need, so they may create schemas at once.
      if (/^main\/(?:cli|connect)\//.test(file)) continue;
      if (AT_LOAD.test(readFileSync(join(SOURCES, file), 'utf8'))) early.push(file);
    }
    expect(early).toEqual([]);
  });

  test.each(['const Key = z.string();', 'export const Key = z\n  .string()', 'export const Input = ask({'])(
    'would find %j',
    (line) => {
      expect(line).toMatch(AT_LOAD);
    },
  );
});
