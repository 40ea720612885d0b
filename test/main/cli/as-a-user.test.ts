import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { nodes } from './nodes.ts';
import { runCli } from './run-cli.ts';

/** An installation without the build, because other tests rebuild it at the same time. */
let commands: string;
let folder: string;
let environment: Record<string, string>;

beforeEach(() => {
  const root = join(tempFolder(), 'a package');
  mkdirSync(join(root, 'bin'), { recursive: true });
  copyFileSync('bin/helmdeck-memory.js', join(root, 'bin/helmdeck-memory.js'));
  for (const name of ['src', 'node_modules', 'package.json']) symlinkSync(join(process.cwd(), name), join(root, name));
  commands = join(root, '.bin');
  mkdirSync(commands);
  symlinkSync(join(root, 'bin/helmdeck-memory.js'), join(commands, 'helmdeck-memory'));
  folder = join(tempFolder(), 'data of mine');
  environment = { HOME: tempFolder(), HELMDECK_DATA_DIR: folder, HELMDECK_MEANING: 'off' };
});

/** Runs a line in a shell, where `node` is the Node under test. */
function shell(line: string, { node = process.execPath, more = {} }: { node?: string; more?: Record<string, string> } = {}) {
  const path = [commands, dirname(node), '/usr/bin', '/bin'].join(delimiter);
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', line], {
    encoding: 'utf8',
    cwd: tempFolder(),
    env: { ...environment, ...more, PATH: path },
  });
  return { status, out: stdout, err: stderr };
}

test.each(nodes)('a new user with $name stores and recalls a fact within five commands', ({ node }) => {
  const { status, out } = shell('helmdeck-memory --help', { node });
  expect(status).toBe(0);
  const steps = /^First steps.*\n((?: {2}helmdeck-memory .*\n)+)\n/m.exec(out)?.[1]?.trim().split(/\n */) ?? [];
  let given = 1;
  const follow = (line: string) => {
    given += 1;
    return shell(line, { node });
  };
  const answers = steps.map((step) => {
    const answer = follow(step);
    const remedy = /No OS keychain.*To use a key file instead, run: (helmdeck-memory [\w -]+)/.exec(answer.err)?.[1];
    return remedy === undefined ? answer : follow(remedy);
  });
  expect(answers).toMatchObject(steps.map(() => ({ status: 0, err: '' })));
  expect(answers.at(-1)?.out).toBe(/remember \S+ "(.*)"/.exec(out)?.[1]?.concat('\n'));
  expect(given).toBeLessThanOrEqual(5);
});

describe('in a shell', () => {
  beforeEach(() => {
    environment['HELMDECK_MEMORY_KEY'] = A_KEY;
  });

  test('values pass through pipes and quotes unchanged', () => {
    expect(
      shell(String.raw`printf '%s' "it's \$HOME" | helmdeck-memory remember "a key" && helmdeck-memory recall "a key" | cat`),
    ).toEqual({
      status: 0,
      out: "Remembered a key, 90 days left (DATE)\nit's $HOME\n".replace('DATE', expiry()),
      err: '',
    });
    expect(shell('helmdeck-memory remember note < /dev/null')).toMatchObject({
      status: 1,
      err: expect.stringMatching(/^value is missing/) as string,
    });
    expect(shell('helmdeck-memory export | helmdeck-memory import - --json')).toMatchObject({ status: 0 });
  });

  test('a closed output is not a failure, and a full disk is one', async () => {
    const lines = Array.from({ length: 3000 }, (_, index) => JSON.stringify({ key: `k${index}`, value: 'x'.repeat(200) }));
    await runCli(['import', '-'], { folder, input: lines.join('\n') });
    expect(shell('set -e; helmdeck-memory list --all --json --values | head -n 1')).toEqual({
      status: 0,
      out: expect.stringMatching(/^\{.*\}\n$/) as string,
      err: '',
    });
    if (!existsSync('/dev/full')) return;
    expect(shell('helmdeck-memory list > /dev/full')).toMatchObject({
      status: 7,
      err: expect.stringMatching(/^The output could not be written/) as string,
    });
  });

  test('simultaneous commands wait for each other', () => {
    const line =
      'for n in 1 2 3 4; do helmdeck-memory remember k$n v & all="$all $!"; done; for one in $all; do wait $one; echo $?; done';
    const { out } = shell(`{ ${line}; } | grep -v Remembered`);
    expect(out).toBe('0\n0\n0\n0\n');
    expect(shell('helmdeck-memory callers').out).toBe('me  4 facts\n');
  });

  test('a refusal is one line, with an exit code', () => {
    expect(shell('helmdeck-memory recall nothing')).toEqual({
      status: 3,
      out: '',
      err: expect.stringMatching(/^No fact is .*\n$/) as string,
    });
    expect(shell('helmdeck-memory recall')).toMatchObject({ status: 2 });
  });
});

/** A command that waits for its standard input. */
async function waiting(
  node: string,
  args: readonly string[],
  until: () => boolean,
  input = '',
): Promise<ChildProcessWithoutNullStreams> {
  const child = spawn(node, [join(commands, 'helmdeck-memory'), ...args], {
    env: { ...environment, HELMDECK_MEMORY_KEY: A_KEY, PATH: dirname(process.execPath) },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdin.write(input);
  while (!until()) await wait(20);
  return child;
}

describe.each(nodes)('with $name', ({ node }) => {
  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends an import in order, with exit code %i', async (signal, code) => {
    const child = await waiting(node, ['import', '-'], () => existsSync(join(folder, 'memory.db-wal')), '\n'.repeat(600));
    const complained = text(child.stderr);
    await wait(300);
    child.kill(signal);
    expect((await once(child, 'close'))[0]).toBe(code);
    expect(await complained).toMatch(/^(The import stopped after 500 lines\. Import the same file again to continue\.\n)?$/);
    expect(readdirSync(folder)).not.toContain('memory.db-wal');
  });

  test.skipIf(process.platform !== 'linux')('a value from standard input does not appear in the process list', async () => {
    const secret = 'in-no-argument-4711';
    const seen = (): string =>
      readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map(argumentsOf)
        .join('\n');
    const running = (): boolean => seen().includes('remember\0quietly');
    const child = await waiting(node, ['remember', 'quietly', '-'], running);
    child.stdin.write(secret);
    await wait(200);
    expect(running()).toBe(true);
    expect(seen()).not.toContain(secret);
    child.stdin.end();
    expect((await once(child, 'close'))[0]).toBe(0);
    expect((await runCli(['recall', 'quietly'], { folder })).out).toBe(`${secret}\n`);
  });
});

function argumentsOf(process: string): string {
  try {
    return readFileSync(join('/proc', process, 'cmdline'), 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
}

const expiry = (): string => new Date(Date.now() + 90 * 86_400_000).toLocaleDateString('sv-SE');
