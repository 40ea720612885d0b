import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { findConfinement } from '../../../src/main/own-packs/confinement.ts';
import { launchPackProcess } from '../../../src/main/own-packs/pack-process.ts';
import { runTask } from '../../../src/main/own-packs/run-task.ts';
import { findRuntime } from '../../../src/main/own-packs/runtime.ts';
import { SECOND } from '../../support/clock.ts';
import { aCaller } from '../../support/memory.ts';
import { openMemoryWithOwnPack, OWN_PACK, packText, writePack } from '../../support/own-packs.ts';
import { packProcesses } from '../../support/pack-process.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const linux = process.platform === 'linux';

const TRUNCATED = 'Further log lines of this run are dropped. The limit is 500 lines and 256 KiB per run.';

const NEVER_RETURN = 'await new Promise(() => undefined);';

/** Writes to the channel directly. The runtime uses the realm's JSON object, which the pack can change. */
const RAW = `const raw = (text) => { JSON.stringify = () => text; ec.doNotCache(); };`;

/** Faults: what the pack does, and the failure the caller receives. */
const faults: [what: string, handler: string, code: string, says: RegExp][] = [
  [
    'throws in a timer',
    `setTimeout(() => { throw new Error('late') }, 1); ${NEVER_RETURN}`,
    'handler_failed',
    /: late \(line \d+\)$/,
  ],
  ['does not handle a rejection', `Promise.reject(new Error('alone')); ${NEVER_RETURN}`, 'handler_failed', /: alone/],
  ['calls process.exit', 'process.exit(0);', 'handler_failed', /process is not defined/],
  [
    'throws an object that is not an error',
    `throw { get message() { throw new Error('again'); } };`,
    'handler_failed',
    /\[object Object\]/,
  ],
  [
    'fills its heap',
    'const all = []; for (;;) all.push(new Array(1e5).fill(Math.random()));',
    'handler_failed',
    /more than 256 MiB/,
  ],
  [
    'fills memory outside its heap',
    `const all = []; for (let n = 0; n < 64; n += 1) all.push(new Uint8Array(16 << 20).fill(1)); ${NEVER_RETURN}`,
    'handler_failed',
    // If the memory monitor is delayed, the limit of the data segment makes an allocation fail first.
    /more than 256 MiB|Array buffer allocation failed/,
  ],
  ['returns an output that does not match its schema', 'return { said: 5 };', 'invalid_output', /said is invalid/],
  ['returns nothing', 'return;', 'invalid_output', /is invalid/],
  ['returns 10 MB', `return { said: 'x'.repeat(10 << 20) };`, 'invalid_output', /more than 1024 KiB/],
  [
    'floods its channel with one message',
    `${RAW} raw('x'.repeat(16 << 20)); ${NEVER_RETURN}`,
    'invalid_output',
    /more than 1024 KiB/,
  ],
  [
    'floods its channel with many messages',
    `${RAW} for (;;) raw('{"is":"log","text":""}');`,
    'handler_failed',
    /too many messages/,
  ],
  ['sends an invalid message', `${RAW} raw('Hello.'); ${NEVER_RETURN}`, 'handler_failed', /sent an invalid message/],
  [
    'sends requests without reading the responses',
    // Sent in one write: otherwise the program could respond to each request before the next, which is allowed.
    `const asks = Array.from({ length: 500 }, (_, id) => JSON.stringify({ is: 'request', id, operation: 'list', parameters: [''] }) + '\\n');
     ${RAW} raw(asks.join('')); ${NEVER_RETURN}`,
    'handler_failed',
    /sent an invalid message/,
  ],
  [
    'requests an unknown memory operation',
    `const { stringify } = JSON;
     ${RAW} raw(stringify({ is: 'request', id: 900, operation: 'constructor', parameters: [] }));
     JSON.stringify = stringify;
     await ec.memory.recall('k'); throw new Error('continued');`,
    'handler_failed',
    /continued/,
  ],
];

describe('a pack that (R-PACK-08, R-PACK-10)', () => {
  test.each(faults)('%s fails that run, and the next run succeeds', async (_what, handler, code, says) => {
    const { run, as } = await openMemoryWithOwnPack({
      more: 'memory: {},',
      handler: `if (input.what === 'well') return { said: 'well' };\n${handler}`,
    });
    await expect(run()).rejects.toMatchObject({ code, message: expect.stringMatching(says) as string });
    expect(await run({ what: 'well' })).toMatchObject({ output: { said: 'well' } });
    expect(await as(aCaller())('list', {})).toMatchObject({ facts: [] });
  });

  test.skipIf(!linux)('fills memory while the program is busy is ended', async () => {
    const handler = `
      ec.log("runs");
      await new Promise((resolve) => setTimeout(resolve, 50));
      const all = [];
      for (let n = 0; n < 256; n += 1) all.push(new Uint8Array(16 << 20).fill(1));
      ${NEVER_RETURN}`;
    let most = 0;
    const busy = (): void => {
      const [pid = ''] = packProcesses();
      // Stay busy until the pack has ended, or has slept for a second because its runtime refused more memory.
      let awake = performance.now();
      for (let peak = peakOf(pid); peak > 0 && performance.now() < awake + 1000; peak = peakOf(pid)) {
        if (peak > most || stateOf(pid) !== 'S') awake = performance.now();
        most = Math.max(most, peak);
      }
    };
    const { run } = await openMemoryWithOwnPack({ handler }, { hear: busy });
    await expect(run()).rejects.toMatchObject({ code: 'handler_failed' });
    expect(most).toBeGreaterThan(256 * 1024);
    expect(most).toBeLessThan(1024 * 1024);
  });

  test('returns a value that JSON cannot represent gets an error', async () => {
    const { run } = await openMemoryWithOwnPack({ output: 'z.unknown()', handler: 'return { a: 1n };' });
    await expect(run()).rejects.toMatchObject({ code: 'invalid_output' });
  });

  test('logs without end has its log truncated, and returns its output', async () => {
    const { run, logged } = await openMemoryWithOwnPack({
      handler: `for (let n = 0; n < 50_000; n += 1) { ec.log('x'); ec.progress(n); } return { said: 'done' };`,
    });
    expect(await run()).toMatchObject({ output: { said: 'done' } });
    expect(logged.slice(0, 500)).toEqual(Array.from({ length: 500 }, () => 'x'));
    expect(logged.slice(500)).toEqual([TRUNCATED]);
  });

  test.each([
    ['lines', 9000, 1, 500],
    ['bytes', 400, 2500, 131],
  ])(
    'bypasses its runtime to flood the log with many %s is truncated by the program (R-PACK-35)',
    async (_what, count, length, most) => {
      const { run, logged } = await openMemoryWithOwnPack({
        handler: `
        const { stringify } = JSON;
        const line = stringify({ is: 'log', text: 'x'.repeat(${length}) });
        ${RAW} for (let n = 0; n < ${count}; n += 1) raw(line);
        JSON.stringify = stringify;
        return { said: 'done' };`,
      });
      expect(await run()).toMatchObject({ output: { said: 'done' } });
      expect(logged.length).toBeLessThanOrEqual(most + 1);
      expect(Buffer.byteLength(logged.join(''))).toBeLessThan(257 * 1024);
      expect(Math.max(...logged.map((line) => line.length))).toBeLessThanOrEqual(2001);
      expect(logged[0]).toBe(length > 2000 ? `${'x'.repeat(2000)}…` : 'x');
      expect(logged.at(-1)).toBe(TRUNCATED);
    },
  );

  test('loops forever is ended at its time limit', async () => {
    const { run, clock, logged } = await openMemoryWithOwnPack({
      more: 'seconds: 2,',
      handler: 'ec.log("runs"); await 1; for (;;);',
    });
    const answer = run().catch((error: unknown) => error);
    await vi.waitUntil(() => logged.length > 0, 10_000);
    const [pid = ''] = packProcesses();
    expect(pid).not.toBe('');
    expect(lives(pid)).toBe(true);
    await clock.advance(2 * SECOND);
    expect(await answer).toMatchObject({ code: 'timeout' });
    await vi.waitUntil(() => !lives(pid), 5000);
  });

  test('is cancelled is notified, and ended shortly after', async () => {
    const memory = await openMemoryWithOwnPack({
      handler: `ec.log("runs"); ec.signal.addEventListener('abort', () => ec.log('notified')); ${NEVER_RETURN}`,
    });
    const controller = new AbortController();
    const answer = memory
      .perform(aCaller(), 'runPack', { name: OWN_PACK }, { signal: controller.signal })
      .catch((error: unknown) => error);
    await vi.waitUntil(() => memory.logged.length > 0, 10_000);
    const [pid = ''] = packProcesses();
    expect(lives(pid)).toBe(true);
    controller.abort();
    expect(await answer).toMatchObject({ code: 'cancelled' });
    await vi.waitUntil(() => !lives(pid), 5000);
    expect(memory.logged).toContain('notified');
  });
});

describe.skipIf(process.platform === 'win32')('a process that closes its channel (R-PACK-10)', () => {
  /** Starts a shell script instead of Node. The script closes the channel first, as the operating system does for a process. */
  const start = (script: string, signal = new AbortController().signal) => {
    const wrap = (): string[] => ['/bin/sh', '-c', `exec 3>&-; ${script}`];
    const process = launchPackProcess({ name: 'none', wrap }, findRuntime);
    const task = { to: 'describe', name: OWN_PACK, source: '' } as const;
    return { process, result: runTask({ process, task, signal, onMessage: () => undefined }) };
  };

  test('is reported with the signal that the sandbox program reports later', async () => {
    // 134 is 128 plus SIGABRT, with which Node exits when its heap is full.
    const { result } = start('sleep 0.3; exit 134');
    await expect(result).rejects.toMatchObject({
      code: 'handler_failed',
      message: expect.stringMatching(/more than 256 MiB/) as string,
    });
  });

  test('but continues is killed when the run is cancelled', async () => {
    const controller = new AbortController();
    const { process, result } = start('sleep 600', controller.signal);
    process.channel.once('close', () => controller.abort());
    await expect(result).rejects.toMatchObject({ code: 'handler_failed', message: expect.stringMatching(/stopped/) as string });
    expect(await process.ended).toBe('SIGKILL');
  });
});

describe.skipIf(process.platform === 'win32')('no process of a pack outlives the program (R-PACK-21)', () => {
  test('when it closes', async () => {
    const { run, own, logged } = await openMemoryWithOwnPack({ handler: 'ec.log("runs"); await 1; for (;;);' });
    const answer = run().catch((error: unknown) => error);
    await vi.waitUntil(() => logged.length > 0, 10_000);
    const [pid = ''] = packProcesses();
    expect(pid).not.toBe('');
    own[Symbol.dispose]();
    expect(await answer).toMatchObject({ code: 'handler_failed' });
    await vi.waitUntil(() => !lives(pid), 5000);
  });

  test.each(['SIGKILL', 'SIGTERM'] as const)('when it is ended with %s while the pack is in a loop', async (signal) => {
    const folder = tempFolder();
    writePack(folder, packText({ handler: 'ec.log("runs"); await 1; for (;;);' }));
    const program = join(tempFolder(), 'program.ts');
    const from = (path: string): string => JSON.stringify(resolve(path));
    writeFileSync(
      program,
      `import { OwnPacks } from ${from('src/main/own-packs/own-packs.ts')};
       import { readListedPack } from ${from('src/main/own-packs/pack-file.ts')};
       const pack = await new OwnPacks().describe(readListedPack(${JSON.stringify(folder)}, '${OWN_PACK}'));
       await pack.handler({ input: {}, caller: { subject: 'me', client: 'x' }, signal: new AbortController().signal, log: console.log } as never);`,
    );
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    const [pid = ''] = packProcesses(child.pid);
    expect(lives(pid)).toBe(true);
    const group = groupOf(pid);
    // The process, its guard shell and the sandbox program; Linux only.
    expect(membersOf(group)).toBe(linux ? ((await findConfinement()).name === 'none' ? 2 : 4) : 0);
    child.kill(signal);
    await vi.waitUntil(() => !lives(pid), 5000);
    // The waiting guard shell has also exited.
    await vi.waitUntil(() => membersOf(group) === 0, 5000);
  });

  test('and none outlives its run', async () => {
    const { run } = await openMemoryWithOwnPack({ handler: `ec.log("runs"); return { said: 'done' };` });
    await run();
    await vi.waitUntil(() => packProcesses().length === 0, 5000);
    expect(packProcesses()).toEqual([]);
  });
});

function lives(pid: string): boolean {
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
}

/** Peak resident memory in KiB. */
function peakOf(pid: string): number {
  try {
    return Number(/^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** The state of a process in `/proc`: `S` while its main thread sleeps. Empty if the process has ended. */
function stateOf(pid: string): string {
  try {
    return statOf(pid)[0] ?? '';
  } catch {
    return '';
  }
}

const statOf = (pid: string): string[] =>
  readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');

/** Its process group; Linux only. */
const groupOf = (pid: string): string => (linux ? (statOf(pid)[2] ?? '') : '');

/** The number of processes in a group; Linux only. */
function membersOf(group: string): number {
  if (!linux) return 0;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const [state, , of] = statOf(name);
        return of === group && state !== 'Z';
      } catch {
        return false;
      }
    }).length;
}
