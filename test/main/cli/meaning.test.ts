import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { runCli } from './run-cli.ts';

/** The command line in an empty folder. Without HELMDECK_MEANING, the setting comes from the configuration file. */
function opened(environment: Record<string, string | undefined> = {}) {
  const folder = join(tempFolder(), 'data');
  const given = { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEANING: undefined, ...environment };
  return (...args: string[]) => runCli(args, { folder, environment: given });
}

describe('search by meaning in the command line', () => {
  test('is turned off and on, and its choice persists (R-MEAN-26)', async () => {
    const say = opened();
    expect(await say('meaning', 'status')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^meaning +on, with the bundled model minilm-l6-v2\n/),
    });
    expect(await say('meaning', 'off')).toMatchObject({ code: 0, out: 'meaning  off\n' });
    expect(await say('meaning', 'status')).toMatchObject({ code: 0, out: 'meaning  off\n' });
    expect(await say('meaning', 'on')).toMatchObject({ code: 0, out: expect.stringContaining('bundled') });
    expect(JSON.parse((await say('meaning', 'status', '--json')).out)).toMatchObject({ choice: 'bundled', installed: true });
  });

  test('with Ollama says what is missing (R-MEAN-27)', async () => {
    const say = opened();
    const { code, out } = await say('meaning', 'on', '--ollama');
    expect(code).toBe(5);
    expect(out).toContain('helmdeck-memory embeddings on');
  });

  test('names the environment variable that decides (R-MEAN-26)', async () => {
    const say = opened({ HELMDECK_MEANING: 'off' });
    expect(await say('meaning', 'on')).toMatchObject({ code: 1, err: expect.stringContaining('HELMDECK_MEANING') });
  });

  test('appears in status if the model is unavailable, and in doctor if it is on (R-MEAN-29)', async () => {
    const say = opened();
    await say('remember', 'a', 'b');
    expect((await say('status')).out).not.toContain('meaning');
    expect((await say('doctor')).out).toMatch(/ok +meaning +Search by meaning uses the model minilm-l6-v2/);
    await say('meaning', 'on', '--ollama');
    expect((await say('status')).out).toMatch(/meaning +Ollama is (off|not ready)/);
    expect((await say('doctor')).out).toMatch(/meaning +Search works by words only/);
    await say('meaning', 'off');
    expect((await say('doctor')).out).not.toContain('meaning');
  });
});
