import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Sidecar } from '../../../src/main/sidecar/sidecar.ts';
import { SIDECAR_TIMEOUTS } from '../../../src/main/sidecar/timeouts.ts';
import { listenAsUser } from '../../support/another-user.ts';
import { manualClock, HOUR, MINUTE } from '../../support/clock.ts';
import { sendRequest, serve, EVENTUALLY } from '../../support/listener.ts';
import { isAlive, writeProgram } from '../../support/ollama-program.ts';
import { openSidecar, createStandIn, turnOn, waitForState } from '../../support/ollama.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const linux = process.platform === 'linux';

const nearness = (one: readonly number[] = [], other: readonly number[] = []): number =>
  one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);

const refused = (sidecar: Sidecar): Promise<Error> =>
  sidecar.embed('me', ['Deploy on Fridays']).then(
    () => new Error('It was answered.'),
    (error: Error) => error,
  );

describe('an Ollama that the program starts', () => {
  test('embeds texts, and leaves nothing behind when it is turned off (R-EMB-01, R-EMB-04, R-EMB-05)', async () => {
    const ollama = createStandIn({ quick: false });
    const { sidecar, folder, states } = openSidecar({
      path: ollama.path,
      environment: {
        HELMDECK_MEMORY_KEY: 'secret',
        OLLAMA_ORIGINS: '*',
        OLLAMA_HOST: '0.0.0.0',
        PATH: '/tmp',
        https_proxy: 'http://proxy',
      },
    });
    expect(sidecar.state).toEqual({ at: 'off' });
    await turnOn(sidecar);
    await waitForState(sidecar, 'ready');
    expect(states.map(({ at }) => at)).toEqual(['starting', 'unapproved', 'starting', 'ready']);

    const { vectors, tokens } = await sidecar.embed('me', [
      'This is an example sentence',
      'when do we ship new versions?',
      'We deploy on Tuesdays',
      'The cat sleeps',
    ]);
    expect(vectors[0]?.slice(0, 3).map((value) => value.toFixed(4))).toEqual(['0.0677', '0.0636', '0.0487']);
    expect(nearness(vectors[1], vectors[2])).toBeGreaterThan(nearness(vectors[1], vectors[3]) + 0.1);
    expect(tokens).toBe(18);

    const { HELMDECK_SIDECAR, ...environment } = ollama.environment();
    expect(HELMDECK_SIDECAR).toMatch(/^[0-9a-f]{32}$/);
    expect(environment).toMatchObject({ OLLAMA_ORIGINS: '', HOME: join(folder, 'embeddings'), https_proxy: 'http://proxy' });
    expect(environment['OLLAMA_HOST']).toMatch(/^127\.0\.0\.1:\d{4,5}$/);
    expect(JSON.stringify(environment)).not.toContain('secret');

    const { log, version } = await sidecar.report();
    expect(version).toBe('0.35.2');
    expect(log.join('\n')).toContain('POST /api/embed');
    // Although it logs its requests.
    expect(log.join('\n')).not.toMatch(/cat|deploy|example/i);

    await sidecar.configure({ on: false });
    expect(sidecar.state).toEqual({ at: 'off' });
    expect(ollama.pids().filter(isAlive)).toEqual([]);
    expect(await refused(sidecar)).toMatchObject({
      code: 'embeddings_unavailable',
      message: expect.stringContaining('embeddings on'),
    });
  });

  test('downloads its model with progress, can be cancelled, and resumes (R-EMB-06)', async () => {
    const ollama = createStandIn({ models: [], pullMs: 60 });
    const { sidecar, states } = openSidecar({ path: ollama.path, model: 'nomic-embed-text' });
    await turnOn(sidecar);
    expect(await waitForState(sidecar, 'no_model')).toMatchObject({
      model: 'nomic-embed-text',
      remedy: expect.stringContaining('pull'),
    });
    const { model, free } = await sidecar.report();
    expect(model).toEqual({ name: 'nomic-embed-text', disk: 275_000_000, memory: 600_000_000 });
    expect(free.disk).toBeGreaterThan(0);

    // A second pull joins the first.
    await Promise.all([sidecar.pull(), sidecar.pull()]);
    const { of } = await waitForState(sidecar, 'pulling', ({ done }) => done > 0);
    expect(of).toBe(45_960_996);
    await sidecar.cancelPull();
    expect(sidecar.state).toMatchObject({ at: 'no_model' });
    expect(ollama.lines('pulls')).toHaveLength(1);

    await sidecar.pull();
    await waitForState(sidecar, 'pulling', ({ done }) => done > 0);
    // Also for a caller that does not wait for the cancellation to finish.
    const cancelled = sidecar.cancelPull();
    ollama.behave({ models: [], pullMs: 1 });
    await sidecar.pull();
    await cancelled;
    await waitForState(sidecar, 'ready');
    const [, ...gone] = ollama.lines('pulls').map(Number);
    expect(gone).toEqual([expect.any(Number), expect.any(Number)]);
    expect(Math.min(...gone)).toBeGreaterThan(0);
    const done = states.flatMap((state) => (state.at === 'pulling' ? [state.done] : []));
    expect(done.length).toBeGreaterThan(2);
    expect((await sidecar.embed('me', ['one text'])).vectors[0]).toHaveLength(768);
  });

  test('stays on across starts, and needs a new approval after it changes (R-EMB-03, R-EMB-07)', async () => {
    const ollama = createStandIn();
    const { sidecar, folder } = openSidecar({ path: ollama.path });
    await turnOn(sidecar);
    await waitForState(sidecar, 'ready');
    await sidecar[Symbol.asyncDispose]();
    expect(ollama.pids().filter(isAlive)).toEqual([]);

    const again = openSidecar({ path: ollama.path, folder }).sidecar;
    expect(again.state).toMatchObject({ at: 'asleep' });
    again.wake();
    await waitForState(again, 'ready');
    await again[Symbol.asyncDispose]();

    const started = ollama.pids().length;
    writeFileSync(ollama.path, `${readFileSync(ollama.path, 'utf8')}# an update\n`);
    const changed = openSidecar({ path: ollama.path, folder }).sidecar;
    changed.wake();
    expect(await waitForState(changed, 'unapproved')).toMatchObject({ changed: true });
    await expect(changed.approve('0'.repeat(64))).rejects.toMatchObject({ code: 'invalid_input' });
    expect(ollama.pids()).toHaveLength(started);
  });

  test('refuses requests as soon as it is turned off, including those that wait (R-EMB-02)', async () => {
    const ollama = createStandIn();
    const { sidecar } = openSidecar({ path: ollama.path });
    await turnOn(sidecar);
    await waitForState(sidecar, 'ready');
    ollama.behave({ fault: 'hangs' });
    const waiting = refused(sidecar);
    await vi.waitFor(() => expect(ollama.requests().at(-1)).toBe('POST /api/embed'), EVENTUALLY);
    const off = sidecar.configure({ on: false });
    const told = { code: 'embeddings_unavailable', message: expect.stringMatching(/^Embeddings are off/) };
    expect(await waiting).toMatchObject(told);
    expect(await refused(sidecar)).toMatchObject(told);
    await off;
  });

  test('leaves no process and no timer when it is turned off (R-EMB-04)', async () => {
    const mine = (): string[] => process.getActiveResourcesInfo().filter((kind) => /^(Process|Pipe|FSReq)/.test(kind));
    const before = mine().toSorted();
    const ollama = createStandIn();
    const clock = manualClock();
    const { sidecar } = openSidecar({ path: ollama.path, clock });
    await turnOn(sidecar);
    await waitForState(sidecar, 'ready');
    expect(mine()).toContain('ProcessWrap');
    ollama.behave({ fault: 'crashes' });
    await refused(sidecar);
    await waitForState(sidecar, 'failed');
    // The next restart.
    expect(clock.pendingTimers).toBe(1);
    await sidecar.configure({ on: false });
    expect(clock.pendingTimers).toBe(0);
    await vi.waitFor(() => expect(mine().toSorted()).toEqual(before), EVENTUALLY);
  });

  test.runIf(linux)('ends with all processes that it forked, in its group and outside (R-EMB-04)', async () => {
    const ollama = createStandIn({ fault: 'forks' });
    const { sidecar } = openSidecar({ path: ollama.path });
    await turnOn(sidecar);
    await waitForState(sidecar, 'ready');
    expect(ollama.pids().filter(isAlive)).toHaveLength(3);
    await sidecar.configure({ on: false });
    await vi.waitFor(() => expect(ollama.pids().filter(isAlive)).toEqual([]), EVENTUALLY);
  });
});

describe('Ollama is never searched', () => {
  test('in the PATH (R-EMB-03)', async () => {
    const planted = tempFolder();
    writeProgram(join(planted, 'ollama'), `touch '${planted}/ran'`);
    const { sidecar } = openSidecar({ environment: { PATH: planted } });
    sidecar.wake();
    await sidecar.configure({ on: true });
    expect(await waitForState(sidecar, 'failed')).toMatchObject({
      trouble: 'not_installed',
      remedy: expect.stringMatching(/https:\/\/ollama\.com\/download/),
    });
    expect(() => readFileSync(`${planted}/ran`)).toThrow('ENOENT');
  });

  test.runIf(linux && process.getuid !== undefined)(
    'in a folder that other users can change at any level (R-EMB-03)',
    async () => {
      const ollama = createStandIn();
      for (const [place, mode] of [
        [ollama.path, 0o702],
        [join(ollama.path, '..'), 0o703],
        [join(ollama.path, '../..'), 0o707],
      ] as const) {
        chmodSync(place, mode);
        const { sidecar } = openSidecar({ path: ollama.path });
        sidecar.wake();
        await sidecar.configure({ on: true });
        expect(await waitForState(sidecar, 'failed')).toMatchObject({ trouble: 'unsafe' });
        expect((await sidecar.report()).ollama).toEqual({ path: place, approved: false });
        chmodSync(place, 0o700);
      }
      expect(ollama.pids()).toEqual([]);
    },
  );
});

test('an unreadable file at Ollama’s path is reported once and not retried (R-EMB-08)', async () => {
  const path = join(tempFolder(), 'ollama');
  symlinkSync(path, path);
  const { sidecar } = openSidecar({ path });
  sidecar.wake();
  await sidecar.configure({ on: true });
  const failed = await waitForState(sidecar, 'failed');
  expect(failed).toMatchObject({ trouble: 'not_installed', why: expect.stringContaining('could not be read') });
  expect(failed).not.toHaveProperty('retry_at');
});

describe('a fault becomes a state with a remedy (R-EMB-08)', () => {
  const faults = [
    // A single failure may be caused by its request.
    { fault: 'crashes', times: 1, trouble: 'crashed', mends: true },
    { fault: 'hangs', times: 1, trouble: 'hanging', mends: true },
    { fault: '500', times: 3, trouble: 'broken', mends: true },
    { fault: 'other-dimension', times: 1, trouble: 'wrong_dimension', mends: false },
  ] as const;

  test.for(faults)('$fault', async ({ fault, times, trouble, mends }) => {
    const ollama = createStandIn();
    const { sidecar, states } = openSidecar({ path: ollama.path, times: { embed: fault === 'hangs' ? 300 : 15_000 } });
    await turnOn(sidecar);
    await waitForState(sidecar, 'ready');
    ollama.behave({ fault });
    for (let time = 1; time <= times; time += 1) {
      expect(sidecar.state.at).toBe('ready');
      expect(await refused(sidecar)).toMatchObject({ code: 'embeddings_unavailable' });
    }
    const failed = states.findLast(({ at }) => at === 'failed');
    expect(failed).toMatchObject({ trouble, why: expect.stringMatching(/\.$/), remedy: expect.stringMatching(/\w/) });
    expect(failed !== undefined && 'retry_at' in failed).toBe(mends);
    ollama.behave({});
    // A temporary failure recovers without the owner.
    await (mends ? undefined : sidecar.configure({ on: true }));
    await waitForState(sidecar, 'ready');
    expect((await sidecar.embed('me', ['again'])).vectors).toHaveLength(1);
  });

  test('a model that was removed', async () => {
    const ollama = createStandIn();
    const { sidecar } = openSidecar({ path: ollama.path });
    await turnOn(sidecar);
    await waitForState(sidecar, 'ready');
    ollama.behave({ fault: 'forgets' });
    expect((await refused(sidecar)).message).toContain('embeddings pull');
    expect(sidecar.state).toMatchObject({ at: 'no_model' });
  });

  test('an unknown model, and a full disk', async () => {
    const ollama = createStandIn({ models: [] });
    const { sidecar } = openSidecar({ path: ollama.path, model: 'no-such-model' });
    await turnOn(sidecar);
    await waitForState(sidecar, 'no_model');
    await sidecar.pull();
    expect(await waitForState(sidecar, 'failed')).toMatchObject({
      trouble: 'pull_failed',
      remedy: expect.stringContaining('name'),
    });

    const full = createStandIn({ models: [], fault: 'no-space' });
    const other = openSidecar({ path: full.path }).sidecar;
    await turnOn(other);
    await waitForState(other, 'no_model');
    await other.pull();
    expect(await waitForState(other, 'failed')).toMatchObject({ trouble: 'pull_failed', why: 'The disk is full.' });
  });

  test('a flooded log, and a program that never listens', async () => {
    const ollama = createStandIn({ fault: 'floods' });
    const { sidecar } = openSidecar({ path: ollama.path, times: { retryDelays: [60_000] } });
    await turnOn(sidecar);
    expect(await waitForState(sidecar, 'failed')).toMatchObject({ trouble: 'flooding' });
    await vi.waitFor(() => expect(ollama.pids().filter(isAlive)).toEqual([]), EVENTUALLY);

    const deaf = createStandIn({ fault: 'deaf' });
    const other = openSidecar({ path: deaf.path, times: { ready: 300, retryDelays: [60_000] } }).sidecar;
    await turnOn(other);
    expect(await waitForState(other, 'failed')).toMatchObject({ trouble: 'hanging' });
  });

  test('facts can be stored while Ollama floods its log or hangs', async () => {
    const ollama = createStandIn();
    const { sidecar, states } = openSidecar({ path: ollama.path, times: { retryDelays: [60_000] } });
    await turnOn(sidecar);
    await waitForState(sidecar, 'ready');
    const { url, token } = await serve({ embeddings: sidecar });
    const bearer = await token('me');
    const store = async (key: string): Promise<void> => {
      const { status } = await sendRequest(url, '/api/v1/memory/store', { token: bearer, body: { key, value: 'a value' } });
      expect(status).toBe(200);
    };

    ollama.behave({ fault: 'hangs' });
    const hanging = sendRequest(url, '/v1/embeddings', { token: bearer, body: { model: 'all-minilm', input: 'a text' } });
    await vi.waitFor(() => expect(ollama.requests().at(-1)).toBe('POST /api/embed'), EVENTUALLY);
    for (let at = 0; at < 20; at += 1) await store(`hanging ${at}`);
    expect(sidecar.state).toMatchObject({ at: 'ready' });

    await sidecar.configure({ on: false });
    expect((await hanging).status).toBe(503);
    // Short lines are the most expensive to process.
    ollama.behave({ fault: 'floods', line: '' });
    await sidecar.configure({ on: true });
    for (let at = 0; sidecar.state.at === 'starting'; at += 1) await store(`flooding ${at}`);
    expect(states.at(-1)).toMatchObject({ at: 'failed', trouble: 'flooding' });
    await store('afterwards');
  });

  test('a version with known vulnerabilities', async () => {
    const ollama = createStandIn({ version: '0.34.9' });
    const { sidecar } = openSidecar({ path: ollama.path });
    await turnOn(sidecar);
    expect(await waitForState(sidecar, 'failed')).toMatchObject({
      trouble: 'too_old',
      remedy: expect.stringContaining('Update'),
    });
    // Its process has ended, so it cannot pull either, and its state stays.
    await expect(sidecar.pull()).rejects.toMatchObject({ code: 'embeddings_unavailable' });
    expect(sidecar.state).toMatchObject({ at: 'failed', trouble: 'too_old' });
    await vi.waitFor(() => expect(ollama.pids().filter(isAlive)).toEqual([]), EVENTUALLY);
  });

  test('at most five restarts in ten minutes', async () => {
    const ollama = createStandIn();
    const { sidecar, states } = openSidecar({ path: ollama.path, times: { retryDelays: [1, 1, 1, 1, 60_000] } });
    await turnOn(sidecar);
    for (let time = 0; time < 5; time += 1) {
      await waitForState(sidecar, 'ready');
      ollama.behave({ fault: 'crashes' });
      await refused(sidecar);
      ollama.behave({});
    }
    expect(ollama.pids()).toHaveLength(5);
    expect(states.at(-1)).toMatchObject({ at: 'failed', trouble: 'crashed' });
  });
});

/** An Ollama that reports its models and closes the connection on each embed request. */
async function runsAlready(models: readonly string[]): Promise<string> {
  const server = createServer(({ url }, response) => {
    if (url === '/api/version') response.end('{"version":"0.35.2"}');
    else if (url === '/api/tags') response.end(JSON.stringify({ models: models.map((name) => ({ name })) }));
    else response.destroy();
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a program that keeps exiting is started at most five times in ten minutes (R-EMB-08)', async () => {
  const clock = manualClock();
  const { retryDelays: again, resetFailuresAfter: settled } = SIDECAR_TIMEOUTS;
  const { sidecar } = openSidecar({
    url: await runsAlready(['all-minilm']),
    clock,
    times: { retryDelays: again, resetFailuresAfter: settled },
  });
  sidecar.wake();
  await sidecar.configure({ on: true, adopt: true });
  const started: number[] = [];
  while (clock.steady() < 2 * HOUR) {
    await waitForState(sidecar, 'ready');
    await refused(sidecar);
    const { retry_at: retryAt = '' } = await waitForState(sidecar, 'failed');
    await clock.advance(Date.parse(retryAt) - clock.now());
    started.push(clock.steady());
    expect(started.filter((at) => at > clock.steady() - 10 * MINUTE).length).toBeLessThanOrEqual(5);
  }
  // It does not stop retrying.
  expect(started.length).toBeGreaterThan(20);
});

describe('another program on the port of Ollama (R-EMB-05)', () => {
  async function squat() {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.end(JSON.stringify({ version: '0.99.0', models: [{ name: 'all-minilm' }], embeddings: [[1]] }));
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return { asked, port: (server.address() as AddressInfo).port };
  }

  test.for([{ fault: undefined }, { fault: 'stays' }] as const)(
    'gets no request, and another port is tried',
    async ({ fault }) => {
      const { asked, port } = await squat();
      const ollama = createStandIn(fault ? { fault } : {});
      let tries = 0;
      const { sidecar, states } = openSidecar({
        path: ollama.path,
        port: async () => ((tries += 1) === 1 ? port : 20_000 + Math.floor(Math.random() * 10_000)),
      });
      await turnOn(sidecar);
      await waitForState(sidecar, 'ready');
      expect(states.find(({ at }) => at === 'failed')).toMatchObject({ trouble: 'port_taken', remedy: expect.any(String) });
      expect(asked).toEqual([]);
    },
  );
});

describe('an adopted Ollama', () => {
  test('is used if the owner chose it, and is neither started nor stopped (R-EMB-01, R-EMB-07)', async () => {
    const ollama = createStandIn();
    const folder = tempFolder();
    mkdirSync(join(folder, 'models'));
    const { spawn } = await import('node:child_process');
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const running = spawn(ollama.path, ['serve'], {
      env: { OLLAMA_HOST: `127.0.0.1:${port}`, OLLAMA_MODELS: join(folder, 'models') },
      stdio: 'ignore',
    });
    onTestFinished(() => void running.kill('SIGKILL'));

    const { sidecar } = openSidecar({ url: `http://127.0.0.1:${port}`, times: { retryDelays: [50] } });
    sidecar.wake();
    await sidecar.configure({ on: true, adopt: true });
    expect(await waitForState(sidecar, 'ready')).toMatchObject({ whose: 'adopted' });
    expect((await sidecar.embed('me', ['a text'])).vectors[0]).toHaveLength(384);
    await sidecar.configure({ on: false });
    expect(isAlive(running.pid ?? 0)).toBe(true);

    await sidecar.configure({ on: true });
    await waitForState(sidecar, 'ready');
    running.kill('SIGKILL');
    await vi.waitFor(() => expect(isAlive(running.pid ?? 0)).toBe(false), EVENTUALLY);
    await refused(sidecar);
    expect(sidecar.state).toMatchObject({ at: 'failed', trouble: 'gone' });
  });

  test('is checked again for a model that the owner installed (R-EMB-07)', async () => {
    const models: string[] = [];
    const { sidecar, states } = openSidecar({ url: await runsAlready(models) });
    sidecar.wake();
    await sidecar.configure({ on: true, adopt: true });
    await waitForState(sidecar, 'no_model');
    await sidecar.configure({ on: true });
    expect(sidecar.state).toMatchObject({ at: 'no_model' });
    models.push('all-minilm:latest');
    await sidecar.configure({ on: true });
    expect(sidecar.state).toMatchObject({ at: 'ready', whose: 'adopted' });
    expect(states.filter(({ at }) => at === 'starting')).toHaveLength(1);
  });

  test.runIf(linux && process.getuid?.() === 0)('gets no request if it belongs to another user (R-EMB-07)', async () => {
    const port = await listenAsUser(65_534);
    const { sidecar } = openSidecar({ url: `http://127.0.0.1:${port}`, times: { retryDelays: [60_000] } });
    sidecar.wake();
    await sidecar.configure({ on: true, adopt: true });
    expect(await waitForState(sidecar, 'failed')).toMatchObject({ trouble: 'foreign', remedy: expect.stringContaining('--own') });
    expect(await (await fetch(`http://127.0.0.1:${port}/asked`)).json()).toEqual([]);
  });
});

test('too many concurrent requests are refused, with a limit per subject (R-EMB-02)', async () => {
  const ollama = createStandIn();
  const { sidecar } = openSidecar({ path: ollama.path });
  await turnOn(sidecar);
  await waitForState(sidecar, 'ready');
  const mine = Array.from({ length: 20 }, () =>
    sidecar.embed('me', ['mine']).then(
      () => 'answered',
      (error: Error) => error,
    ),
  );
  const others = sidecar.embed('another', ['theirs']);
  const answers = await Promise.all(mine);
  expect(answers.filter((answer) => answer === 'answered')).toHaveLength(16);
  expect(answers.at(-1)).toMatchObject({ code: 'rate_limited', retryAfter: 1 });
  expect((await others).vectors).toHaveLength(1);
});

test('a request in several batches returns the vectors in order (R-EMB-01, R-EMB-02)', async () => {
  const ollama = createStandIn({ quick: false });
  const { sidecar } = openSidecar({ path: ollama.path });
  await turnOn(sidecar);
  await waitForState(sidecar, 'ready');
  const texts = Array.from({ length: 40 }, (_, at) => `Service ${at} is deployed on day ${at % 7} by team ${at * 3}`);
  const { vectors } = await sidecar.embed('me', texts);
  const alone: (readonly number[] | undefined)[] = [];
  for (const text of texts) alone.push((await sidecar.embed('me', [text])).vectors[0]);
  expect(vectors).toHaveLength(40);
  const nearest = vectors.map((vector) => alone.map((one) => nearness(vector, one))).map((all) => all.indexOf(Math.max(...all)));
  expect(nearest).toEqual(texts.map((_, at) => at));
});

test('a request has a total timeout, and other requests run between its batches (R-EMB-02)', async () => {
  const ollama = createStandIn();
  const { sidecar } = openSidecar({ path: ollama.path, times: { request: 1500 } });
  await turnOn(sidecar);
  await waitForState(sidecar, 'ready');
  ollama.behave({ slowMs: 300 });
  const many = Array.from({ length: 256 }, (_, at) => `text ${at}`);
  let over = false;
  const long = sidecar
    .embed('greedy', many)
    .then(
      () => new Error('It was answered.'),
      (error: Error) => error,
    )
    .finally(() => (over = true));
  expect((await sidecar.embed('another', ['a text'])).vectors).toHaveLength(1);
  expect(over).toBe(false);
  expect(await long).toMatchObject({
    code: 'embeddings_unavailable',
    message: expect.stringContaining('send fewer texts per request'),
  });
  // A request that is too large is not a failure of Ollama.
  expect(sidecar.state).toMatchObject({ at: 'ready' });
});
