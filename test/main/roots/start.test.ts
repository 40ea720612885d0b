import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** `npm start --` with these words, where no screen is; it is ended when it runs. */
async function start(...words: string[]): Promise<{ code: number | null; said: string; complained: string }> {
  const home = tempFolder();
  const child = spawn(process.execPath, ['src/main/roots/start.ts', ...words], {
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      HELMDECK_DATA_DIR: join(home, 'data'),
      HELMDECK_ADDR: '127.0.0.1:0',
      HELMDECK_MEMORY_KEY: A_KEY,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  let complained = '';
  child.stderr.on('data', (text: Buffer) => (complained += text.toString()));
  child.stdout.on('data', (text: Buffer) => {
    said += text.toString();
    if (said.includes('is running')) child.kill('SIGTERM');
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, said, complained };
}

describe.runIf(process.platform === 'linux')('npm start, without a screen (R-DESK-12)', () => {
  test('says in two lines why there is no window, and runs without, with how to open one', async () => {
    const { code, said, complained } = await start();
    expect({ code, complained }).toEqual({ code: 0, complained: '' });
    expect(said).toMatch(/^Starting without the desktop window. This session has no display\.\n.*\.\n/);
    expect(said).toMatch(/^To open the window in a browser, run: npx helmdeck-memory window$/m);
    expect(said).not.toMatch('#link=');
    expect(said).toMatch(/^Helmdeck Memory is running at /m);
  });

  test('does not look for a window where none is wanted', async () => {
    const { code, said } = await start('--headless');
    expect(code).toBe(0);
    expect(said).not.toMatch('No window');
  });

  test('fails where a window must be', async () => {
    const { code, said, complained } = await start('--desktop');
    expect({ code, said }).toEqual({ code: 5, said: '' });
    expect(complained).toMatch(/^Helmdeck Memory cannot start: This session has no display\. .*\n$/);
  });

  test.each([['--port'], ['--desktop', '--headless'], ['--headless=1']])('refuses %s', async (...words) => {
    expect(await start(...words)).toMatchObject({
      code: 2,
      said: '',
      complained: expect.stringMatching(
        /^Helmdeck Memory cannot start: The only arguments are --desktop and --headless\./,
      ) as string,
    });
  });
});
