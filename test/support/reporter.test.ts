import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const vitest = resolve('node_modules/vitest/vitest.mjs');
const reporter = resolve('test/support/reporter.ts');

/** Runs vitest on the given test files. Returns its exit code and its last line of output. */
function run(files: Record<string, string>) {
  using root = mkdtempDisposableSync(join(tmpdir(), 'reporter-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root.path, name), text);
  const args = [vitest, 'run', '--globals', '--root', root.path, '--reporter', 'default', '--reporter', reporter];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { status, last: stdout.trimEnd().split('\n').at(-1) };
}

describe('the last line of a test run', () => {
  test('counts the passed tests', () => {
    expect(run({ 'a.test.js': `test('one', () => {}); test('two', () => {});` })).toEqual({
      status: 0,
      last: '2 passed, 0 failed',
    });
  });

  test('counts failed tests, failed hooks, files that do not load and uncaught errors as failures', () => {
    const files = {
      'test.test.js': `test('passes', () => {}); test('fails', () => { expect(1).toBe(2); });`,
      'hook.test.js': `describe('suite', () => { beforeAll(() => { throw new Error('hook'); }); test('unrun', () => {}); });`,
      'file.test.js': `import './missing.js'; test('unrun', () => {});`,
      'late.test.js': `test('passes', async () => { Promise.reject(new Error('late')); await new Promise((done) => setTimeout(done, 50)); });`,
      'skip.test.js': `test.skip('skipped', () => {}); test.todo('later');`,
    };
    expect(run(files)).toEqual({ status: 1, last: '2 passed, 4 failed, 3 skipped' });
  });
});
