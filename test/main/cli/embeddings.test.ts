import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../../src/main/config/config.ts';
import { assemble } from '../../../src/main/roots/assemble.ts';
import { EVENTUALLY } from '../../support/listener.ts';
import { isAlive, type StandIn } from '../../support/ollama-program.ts';
import { createStandIn } from '../../support/ollama.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { type CommandResult, runCli } from './run-cli.ts';

async function aProgram(ollama: StandIn, more: Record<string, string> = {}) {
  const environment = {
    ...more,
    HELMDECK_MEMORY_KEY: A_KEY,
    HELMDECK_DATA_DIR: join(tempFolder(), 'data'),
    HELMDECK_ADDR: '127.0.0.1:0',
    HELMDECK_MEANING: 'off',
    HELMDECK_OLLAMA: ollama.path,
  };
  const folder = environment.HELMDECK_DATA_DIR;
  const say = (args: readonly string[], over: Parameters<typeof runCli>[1] = {}): Promise<CommandResult> =>
    runCli(args, { folder, environment, ...over });
  const start = async () => {
    const config = readConfig({ environment, platform: process.platform, home: () => '/nowhere' });
    const program = await assemble(config, { environment, desktop: false, version: '1.2.3' });
    onTestFinished(() => program[Symbol.asyncDispose]());
    await program.listening.resume();
    return program;
  };
  return { say, start };
}

describe('embeddings in the command line', () => {
  test('are turned on, approved, downloaded, tested and turned off (R-EMB-01, R-EMB-06, R-EMB-07)', async () => {
    const ollama = createStandIn({ models: [], quick: false, pullMs: 40 });
    const { say, start } = await aProgram(ollama);

    // Without a running program, the choice is saved for the next start.
    expect(await say(['embeddings', 'status'])).toMatchObject({ code: 0, out: expect.stringMatching(/^embeddings +off\n/) });
    expect((await say(['embeddings', 'on'])).out).toMatch(/waiting for Helmdeck Memory/);
    expect(await say(['embeddings', 'pull', '--yes'])).toMatchObject({
      code: 5,
      err: expect.stringContaining('helmdeck-memory serve'),
    });

    const program = await start();
    await vi.waitFor(() => expect(program.sidecar.state).toMatchObject({ at: 'unapproved' }), EVENTUALLY);
    expect(await say(['embeddings', 'approve'])).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
    const no = await say(['embeddings', 'approve'], { terminal: true, input: 'n\n' });
    expect(no.err + no.out).toMatch(/SHA-256 [0-9a-f]{64}/);
    expect(ollama.pids()).toEqual([]);
    expect(await say(['embeddings', 'approve', '--yes'])).toMatchObject({
      code: 5,
      out: expect.stringContaining('embeddings pull'),
    });

    const asked = await say(['embeddings', 'pull'], { terminal: true, input: 'y\n' });
    expect(asked.err + asked.out).toMatch(/needs 275 MB of disk space \([\d,]+ MB free\), and about 600 MB of RAM/);
    expect(asked.err + asked.out).toMatch(/\d+ MB of 46 MB/);
    expect(asked).toMatchObject({ code: 0, out: expect.stringContaining('ready, with an Ollama that Helmdeck Memory started') });

    const near = await say(['embeddings', 'test', 'when do we ship new versions?', 'we deploy on Tuesdays', '--json']);
    const far = await say(['embeddings', 'test', 'when do we ship new versions?', 'the cat sleeps', '--json']);
    const nearness = ({ out }: CommandResult): number => (JSON.parse(out) as { nearness: number }).nearness;
    expect(nearness(near)).toBeGreaterThan(nearness(far) + 0.1);
    expect(JSON.parse((await say(['status', '--json'])).out)).toMatchObject({ embeddings: { at: 'ready', whose: 'own' } });

    expect(await say(['embeddings', 'off'])).toMatchObject({ code: 0, out: expect.stringMatching(/^embeddings +off\n/) });
    expect(ollama.pids().filter(isAlive)).toEqual([]);
    expect(await say(['embeddings', 'test', 'a', 'b'])).toMatchObject({ code: 5, err: expect.stringContaining('embeddings on') });
    expect(await say(['embeddings', 'on', '--adopt', '--own'])).toMatchObject({ code: 2 });
  });

  test('serve the search of OpenClaw only while they are ready, and say what happens to it without them (R-EMB-10)', async () => {
    const ollama = createStandIn();
    const home = tempFolder();
    const config = join(home, '.openclaw/openclaw.json');
    mkdirSync(join(home, '.openclaw'));
    writeFileSync(config, '{}\n');
    const { say, start } = await aProgram(ollama, { OPENCLAW_HOME: home, HELMDECK_EMBEDDINGS_MODEL: 'all-minilm' });
    const program = await start();
    expect((await say(['embeddings', 'on'])).code).toBe(5);
    await vi.waitFor(() => expect(program.sidecar.state).toMatchObject({ at: 'unapproved' }), EVENTUALLY);
    const [early, shown] = [
      await say(['embeddings', 'openclaw', 'on', '--yes']),
      await say(['embeddings', 'openclaw', 'on', '--show']),
    ];
    expect(early).toMatchObject({ code: 5, out: '', err: expect.stringContaining('embeddings status') });
    expect(shown).toMatchObject({ code: 0, out: expect.stringContaining('openai-compatible') });
    expect(readFileSync(config, 'utf8')).toBe('{}\n');

    expect((await say(['embeddings', 'approve', '--yes'])).code).toBe(0);
    ollama.behave({ fault: '500' });
    const failed = await say(['embeddings', 'openclaw', 'on', '--yes']);
    expect(failed).toMatchObject({
      code: 1,
      out: expect.stringMatching(/connection test failed.*\n.*embeddings openclaw off\n/),
    });
    expect(failed.out).not.toContain('now searches');
    ollama.behave({});
    const done = await say(['embeddings', 'openclaw', 'on', '--yes']);
    expect(done).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^OpenClaw now searches.*\nConnection tested\.\n/),
    });

    expect((await say(['embeddings', 'off'])).out).toMatch(/does not work until .*: helmdeck-memory embeddings openclaw off\n$/);
    expect((await say(['embeddings', 'openclaw', 'off'])).code).toBe(0);
    expect((await say(['embeddings', 'off'])).out).not.toContain('OpenClaw');
    expect(readFileSync(config, 'utf8')).toBe('{}\n');
    expect(program.sidecar.state).toEqual({ at: 'off' });
  });
});
