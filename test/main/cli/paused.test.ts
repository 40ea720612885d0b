import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished, test, expect } from 'vitest';
import { readConfig } from '../../../src/main/config/config.ts';
import { assemble } from '../../../src/main/roots/assemble.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { runCli } from './run-cli.ts';

/** The desktop program, paused as its tray menu does it. */
async function paused() {
  const folder = tempFolder();
  const environment = {
    HELMDECK_DATA_DIR: folder,
    HELMDECK_MEMORY_KEY: A_KEY,
    HELMDECK_ADDR: '127.0.0.1:0',
    HELMDECK_MEANING: 'off',
  };
  const config = readConfig({ environment, platform: process.platform, home: () => '/nowhere' });
  const program = await assemble(config, { environment, desktop: false, version: '1.2.3' });
  let open = true;
  const end = async (): Promise<void> => {
    if (open) await program[Symbol.asyncDispose]();
    open = false;
  };
  onTestFinished(end);
  await program.listening.resume();
  await program.listening.pause();
  return { folder, program, end, say: (...args: string[]) => runCli(args, { folder }) };
}

test('status says that the program is paused, and what to do', async () => {
  const { say, program, end, folder } = await paused();
  const { code, out, err } = await say('status');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(new RegExp(`^program +running \\(process ${process.pid}\\), paused$`, 'm'));
  expect(out).toContain('Resume it in its window or its tray menu');
  expect(JSON.parse((await say('status', '--json')).out)).toMatchObject({ program: { at: 'paused', pid: process.pid } });
  await program.listening.resume();
  expect((await say('status')).out).toMatch(/^program +running at http/m);
  await program.listening.pause();
  await end();
  expect((await say('status')).out).toMatch(/^program +not running$/m);
  expect(existsSync(join(folder, 'unreachable.json'))).toBe(false);
});

test('every other command and the doctor also say so, without waiting', async () => {
  const { say } = await paused();
  expect(await say('recall', 'k')).toEqual({
    code: 5,
    out: '',
    err: `Helmdeck Memory is running (process ${process.pid}) but paused. Resume it in its window or its tray menu, or quit it.\n`,
  });
  const { findings } = JSON.parse((await say('doctor', '--json')).out) as {
    findings: { check: string; state: string; says: string }[];
  };
  expect(findings.filter(({ check }) => check === 'program')).toMatchObject([
    { state: 'warn', says: expect.stringContaining('paused') as string },
  ]);
  expect(findings.map(({ check }) => check)).not.toContain('memory');
});

test('a paused program that was killed does not count as running', async () => {
  const folder = tempFolder();
  await runCli(['remember', 'k', 'v'], { folder });
  // No process has this pid.
  writeFileSync(join(folder, 'unreachable.json'), JSON.stringify({ pid: 2 ** 30, at: 'paused' }), { mode: 0o600 });
  expect((await runCli(['status'], { folder })).out).toMatch(/^program +not running$/m);
  expect((await runCli(['recall', 'k'], { folder })).out).toBe('v\n');
});
