import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** Runs `npm start --` with these arguments and without a display. Stops the program once it runs. */
async function start(...words: string[]): Promise<{ code: number | null; output: string; errorOutput: string }> {
  const home = tempFolder();
  const child = spawn(process.execPath, ['src/main/roots/start.ts', ...words], {
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      HELMDECK_DATA_DIR: join(home, 'data'),
      HELMDECK_ADDR: '127.0.0.1:0',
      HELMDECK_MEANING: 'off',
      HELMDECK_MEMORY_KEY: A_KEY,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  let errorOutput = '';
  child.stderr.on('data', (text: Buffer) => (errorOutput += text.toString()));
  child.stdout.on('data', (text: Buffer) => {
    output += text.toString();
    if (output.includes('is running')) child.kill('SIGTERM');
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output, errorOutput };
}

describe.runIf(process.platform === 'linux')('npm start without a display (R-DESK-12)', () => {
  test('says in two lines why there is no desktop window, runs without it, and says how to open the window in a browser', async () => {
    const { code, output, errorOutput } = await start();
    expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
    expect(output).toMatch(/^Starting without the desktop window. This session has no display\.\n.*\.\n/);
    expect(output).toMatch(/^To open the window in a browser, run: npx helmdeck-memory window$/m);
    expect(output).not.toMatch('#link=');
    expect(output).toMatch(/^Helmdeck Memory is running at /m);
  });

  test('does not try the desktop with --headless', async () => {
    const { code, output } = await start('--headless');
    expect(code).toBe(0);
    expect(output).not.toMatch('No window');
  });

  test('fails with --desktop', async () => {
    const { code, output, errorOutput } = await start('--desktop');
    expect({ code, output }).toEqual({ code: 5, output: '' });
    expect(errorOutput).toMatch(/^Helmdeck Memory cannot start: This session has no display\. .*\n$/);
  });

  test.each([['--port'], ['--desktop', '--headless'], ['--headless=1']])('refuses %s', async (...words) => {
    expect(await start(...words)).toMatchObject({
      code: 2,
      output: '',
      errorOutput: expect.stringMatching(
        /^Helmdeck Memory cannot start: The only valid arguments are --desktop and --headless\./,
      ) as string,
    });
  });
});
