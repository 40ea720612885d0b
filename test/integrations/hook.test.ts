import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { measureWait } from '../support/work.ts';
import { writePrivate } from './bridge.ts';

const SCRIPT = 'integrations/hook/helmdeck-memory-hook.mjs';
const KEY = 'ab'.repeat(32);
const TOKEN = 'a.token.for-hooks';
const BRIEF = 'From Helmdeck Memory.\n- editor (codex): "Helix <b>"';

interface RecordedRequest {
  readonly path: string;
  readonly token: string | undefined;
  readonly body: unknown;
}

interface Behaviour {
  /** Defaults to the right key. */
  readonly key?: string;
  readonly status?: number;
  readonly answer?: string;
  /** Sends the response in chunks. */
  readonly chunked?: boolean;
}

/** A program that answers as Helmdeck Memory does, and records what it was sent. */
async function standIn({ key = KEY, status = 200, answer = JSON.stringify({ text: BRIEF, keys: [] }), chunked }: Behaviour = {}) {
  const requests: RecordedRequest[] = [];
  const server = createServer((request, response) => {
    void readText(request).then((sent) => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://127.0.0.1');
      const challenge = searchParams.get('challenge');
      if (pathname === '/healthz' && challenge !== null) {
        const proof = createHmac('sha256', Buffer.from(key, 'hex')).update(challenge).digest('hex');
        response.end(JSON.stringify({ status: 'ok', proof }));
        return;
      }
      requests.push({ path: pathname, token: request.headers.authorization, body: JSON.parse(sent) });
      response.statusCode = status;
      if (chunked) for (const part of [answer.slice(0, 5), answer.slice(5)]) response.write(part);
      response.end(chunked ? undefined : answer);
    });
  });
  return { requests, port: await portOf(server) };
}

async function portOf(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A data folder with the installed hook, a token, and the address of a program. */
function dataFolder({ port, pid = process.pid }: { port: number; pid?: number }): string {
  const folder = tempFolder();
  writePrivate(join(folder, 'clients', 'codex.hook.token'), `${TOKEN}\n`);
  for (const client of ['claude-code', 'gemini-cli', 'cursor', 'vscode'])
    copyFileSync(join(folder, 'clients', 'codex.hook.token'), join(folder, 'clients', `${client}.hook.token`));
  writePrivate(join(folder, 'endpoint.json'), JSON.stringify({ url: `http://127.0.0.1:${port}`, pid, proof_key: KEY }));
  copyFileSync(SCRIPT, join(folder, 'helmdeck-memory-hook.mjs'));
  return folder;
}

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

/** Text, or an object that is sent as JSON. Undefined means that there is no input, and null that stdin is never closed. */
type Input = object | string | undefined | null;

/** Runs the hook as an agent does. */
async function runHook(
  folder: string,
  [client, event]: readonly [string, string],
  input: Input,
  environment: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  let child!: ChildProcess;
  let stdout = '';
  let stderr = '';
  const ms = await measureWait(async () => {
    const script = join(folder, 'helmdeck-memory-hook.mjs');
    child = spawn(process.execPath, [script, client, event], {
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    // On a busy machine, the hook can end before it has read a long input.
    child.stdin?.on('error', () => undefined);
    if (input !== null) child.stdin?.end(typeof input === 'string' ? input : JSON.stringify(input));
    await once(child, 'close');
  });
  return { code: child.exitCode, stdout, stderr, ms };
}

/** A machine can be so busy that Node alone takes longer to start than the hook may take. */
const BUSY_MS = 120_000;

/** Runs the hook until it has had enough time on a busy machine. */
async function hearHook(...asked: Parameters<typeof runHook>): Promise<Outcome> {
  const end = performance.now() + BUSY_MS;
  while (performance.now() < end) {
    const outcome = await runHook(...asked);
    if (outcome.stdout !== '') return outcome;
    expect(outcome.ms).toBeGreaterThan(100);
  }
  throw new Error('The hook said nothing.');
}

const SILENT = { code: 0, stdout: '', stderr: '' };
/** The hook ends itself 270 ms after its start. The rest is for a busy machine. */
const ENDED_MS = 800;

const aPrompt = { session_id: 'session-1', cwd: '/', hook_event_name: 'UserPromptSubmit', prompt: 'Which editor do I use?' };

describe('the hook asks for a brief and prints it', () => {
  test.each([
    {
      client: 'claude-code',
      event: 'session',
      input: { session_id: 's', cwd: '/nowhere', hook_event_name: 'SessionStart', source: 'startup' },
      asks: { session: 's', folder: '/nowhere' },
      name: 'SessionStart',
    },
    {
      client: 'claude-code',
      event: 'session',
      input: { session_id: 's', hook_event_name: 'SessionStart', source: 'compact' },
      asks: { session: 's', repeat: true },
      name: 'SessionStart',
    },
    {
      client: 'codex',
      event: 'session',
      input: { session_id: 's', source: 'clear' },
      asks: { session: 's', repeat: true },
      name: 'SessionStart',
    },
    { client: 'codex', event: 'session', input: { source: 'resume' }, asks: {}, name: 'SessionStart' },
    { client: 'gemini-cli', event: 'session', input: { source: 'resume' }, asks: { repeat: true }, name: 'SessionStart' },
    {
      client: 'codex',
      event: 'prompt',
      input: aPrompt,
      asks: { session: 'session-1', prompt: 'Which editor do I use?' },
      name: 'UserPromptSubmit',
    },
    {
      client: 'gemini-cli',
      event: 'prompt',
      input: { prompt: '<hook_context>Ours &lt;b&gt;\n</hook_context>\n\nWhich editor? \ud83d' },
      asks: { prompt: 'Which editor? \uFFFD' },
      name: 'BeforeAgent',
    },
    {
      client: 'codex',
      event: 'prompt',
      input: { session_id: 'two words', cwd: 'relative', prompt: 'é'.repeat(9000) },
      asks: { prompt: 'é'.repeat(8000) },
      name: 'UserPromptSubmit',
    },
  ])('$client, $event, $input.source (R-HOOK-01)', async ({ client, event, input, asks, name }) => {
    const program = await standIn();
    const outcome = await hearHook(dataFolder(program), [client, event], input);
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(outcome.stdout)).toEqual({ hookSpecificOutput: { hookEventName: name, additionalContext: BRIEF } });
    expect(program.requests.at(-1)).toEqual({ path: '/api/v1/brief', token: `Bearer ${TOKEN}`, body: asks });
  });

  // The inputs and outputs that the documentation of these editors describes.
  test.each([
    {
      client: 'cursor',
      input: {
        conversation_id: 'c-1',
        session_id: 'c-1',
        hook_event_name: 'sessionStart',
        cursor_version: '3.20.17',
        workspace_roots: ['/nowhere'],
        is_background_agent: false,
      },
      asks: { session: 'c-1', folder: '/nowhere' },
      says: { additional_context: BRIEF },
    },
    {
      client: 'vscode',
      input: {
        sessionId: 'v-1',
        hookEventName: 'SessionStart',
        cwd: '/nowhere',
        source: 'new',
        timestamp: '2026-02-09T10:30:00Z',
      },
      asks: { session: 'v-1', folder: '/nowhere' },
      says: { hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext: BRIEF } },
    },
  ])('$client, by its documentation (R-HOOK-01)', async ({ client, input, asks, says }) => {
    const program = await standIn();
    const { stdout } = await hearHook(dataFolder(program), [client, 'session'], input);
    expect(JSON.parse(stdout)).toEqual(says);
    expect(program.requests.at(-1)).toMatchObject({ body: asks });
  });

  test('a response in chunks is read too', async () => {
    const { stdout } = await hearHook(dataFolder(await standIn({ chunked: true })), ['codex', 'prompt'], aPrompt);
    expect(stdout).toContain('Helix <b>');
  });
});

describe('the hook says nothing and exits with 0 (R-HOOK-02)', () => {
  test.each<[string, Behaviour, Input]>([
    ['if there is nothing to say', { answer: '{"text":"","keys":[]}' }, aPrompt],
    ['if the memory is locked', { status: 503, answer: '{"error":"key_unavailable","message":"It is locked."}' }, aPrompt],
    ['if the token is paused or revoked', { status: 401, answer: '{"error":"invalid_token","message":"No."}' }, aPrompt],
    ['if the response is not JSON', { answer: '<html>' }, aPrompt],
    ['if the response is too long', { answer: JSON.stringify({ text: 'x'.repeat(100_000) }) }, aPrompt],
    ['if the response has no text', { answer: 'null' }, aPrompt],
    ['if the prompt is empty', {}, { ...aPrompt, prompt: '<hook_context>ours</hook_context>\n\n' }],
    ['if the input is not JSON', {}, 'not JSON'],
    ['if the input has no prompt', {}, '[1]'],
    ['if the input is too long', {}, { ...aPrompt, more: 'x'.repeat(9 * 1024 * 1024) }],
    ['if there is no input', {}, undefined],
  ])('%s', async (_why, behaviour, input) => {
    const outcome = await runHook(dataFolder(await standIn(behaviour)), ['codex', 'prompt'], input);
    expect(outcome).toMatchObject(SILENT);
  });

  test('if a prompt begins many of our texts and ends none, without minutes of work', async () => {
    const input = { ...aPrompt, prompt: '<hook_context>'.repeat(200_000) };
    const outcome = await runHook(dataFolder(await standIn()), ['codex', 'prompt'], input);
    expect(outcome).toMatchObject(SILENT);
    expect(outcome.ms).toBeLessThan(5 * ENDED_MS);
  });

  test('if stdin is never closed, within its time', async () => {
    const outcome = await runHook(dataFolder(await standIn()), ['codex', 'prompt'], null);
    expect(outcome).toMatchObject(SILENT);
    expect(outcome.ms).toBeLessThan(ENDED_MS);
  });

  test('if the program is stopped, or its process is gone', async () => {
    const folder = dataFolder(await standIn());
    rmSync(join(folder, 'endpoint.json'));
    expect(await runHook(folder, ['codex', 'prompt'], aPrompt)).toMatchObject(SILENT);
    const { pid = 0 } = spawn(process.execPath, ['-e', '0']).on('exit', () => undefined);
    await expect.poll(() => isAlive(pid)).toBe(false);
    const program = await standIn();
    expect(await runHook(dataFolder({ port: program.port, pid }), ['codex', 'prompt'], aPrompt)).toMatchObject(SILENT);
    expect(program.requests).toEqual([]);
  });

  test.each(['token', 'endpoint'])('if other users can read the file of the %s, or it is missing', async (what) => {
    const program = await standIn();
    const folder = dataFolder(program);
    const path = what === 'token' ? join(folder, 'clients', 'codex.hook.token') : join(folder, 'endpoint.json');
    chmodSync(path, 0o644);
    expect(await runHook(folder, ['codex', 'prompt'], aPrompt)).toMatchObject(SILENT);
    rmSync(path);
    expect(await runHook(folder, ['codex', 'prompt'], { ...aPrompt, more: 'x'.repeat(2_000_000) })).toMatchObject(SILENT);
    expect(program.requests).toEqual([]);
  });

  test.each([
    ['claude-code', 'session', { session_id: 's', source: 'new' }],
    ['claude-code', 'session', { sessionId: 's', hookEventName: 'SessionStart' }],
    ['claude-code', 'prompt', { ...aPrompt, cursor_version: '3.20.17' }],
    ['cursor', 'prompt', { ...aPrompt, cursor_version: '3.20.17' }],
    ['vscode', 'prompt', aPrompt],
  ] as const)(
    'if another agent runs the hook of %s, or would not show the text (%s, R-PLUG-04)',
    async (client, event, input) => {
      const program = await standIn();
      expect(await runHook(dataFolder(program), [client, event], input)).toMatchObject(SILENT);
      expect(program.requests.filter(({ path }) => path.includes('brief'))).toEqual([]);
    },
  );

  test('for an unknown event or an invalid name', async () => {
    const folder = dataFolder(await standIn());
    for (const [client, event] of [
      ['codex', 'stop'],
      ['../codex', 'prompt'],
      ['', ''],
    ] as const)
      expect(await runHook(folder, [client, event], undefined)).toMatchObject(SILENT);
  });
});

test('a program that does not respond costs the agent less than a third of a second (R-HOOK-02)', async () => {
  const accepts = createTcpServer((socket) => void socket.on('error', () => undefined));
  const silent = await runHook(dataFolder({ port: await portOf(accepts) }), ['codex', 'prompt'], aPrompt);
  expect(silent).toMatchObject(SILENT);
  expect(silent.ms).toBeLessThan(ENDED_MS);
  const program = spawn(
    process.execPath,
    ['-e', "require('net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port) })"],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  onTestFinished(() => void program.kill('SIGKILL'));
  const [port] = (await once(program.stdout, 'data')) as [Buffer];
  program.kill('SIGSTOP');
  const frozen = await runHook(dataFolder({ port: Number(port), pid: program.pid ?? 0 }), ['codex', 'session'], aPrompt);
  expect(frozen).toMatchObject(SILENT);
  expect(frozen.ms).toBeLessThan(ENDED_MS);
});

test('another program on the port gets neither token nor prompt (R-HOOK-03)', async () => {
  const impostor = await standIn({ key: 'cd'.repeat(32) });
  expect(await runHook(dataFolder(impostor), ['codex', 'prompt'], aPrompt)).toMatchObject(SILENT);
  expect(impostor.requests).toEqual([]);
  let received = '';
  const raw = createTcpServer((socket) => {
    socket
      .on('error', () => undefined)
      .on('data', (chunk) => {
        received += chunk.toString();
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
      });
  });
  const folder = dataFolder({ port: await portOf(raw) });
  // On a busy machine, the hook can give up before it has connected.
  const hear = async (): Promise<string> => {
    received = '';
    expect(await runHook(folder, ['codex', 'prompt'], aPrompt)).toMatchObject(SILENT);
    return received;
  };
  await expect.poll(hear).toMatch(/^GET \/healthz\?challenge=[0-9a-f]{64} HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n\r\n$/);
});

test('the copy in a plugin speaks unless the configuration has the hook too, or the owner chose other events (R-HOOK-06)', async () => {
  const program = await standIn();
  const data = dataFolder(program);
  const plugin = tempFolder();
  copyFileSync(SCRIPT, join(plugin, 'helmdeck-memory-hook.mjs'));
  const environment = { HELMDECK_DATA_DIR: data };
  const record = (hooks?: object): string => writePrivate(join(data, 'clients', 'codex.json'), JSON.stringify({ hooks }));
  expect((await hearHook(plugin, ['codex', 'prompt'], aPrompt, environment)).stdout).toContain('Helix');
  for (const hooks of [undefined, { prompt: '' }]) {
    record(hooks);
    expect((await hearHook(plugin, ['codex', 'prompt'], aPrompt, environment)).stdout).toContain('Helix');
  }
  const asked = program.requests.length;
  for (const hooks of [{ prompt: 'node hook.mjs codex prompt' }, { session: '' }, {}]) {
    record(hooks);
    expect(await runHook(plugin, ['codex', 'prompt'], aPrompt, environment)).toMatchObject(SILENT);
  }
  expect(program.requests).toHaveLength(asked);
});

test('the folder of a brief is the root of the repository, also in a worktree (R-HOOK-01)', async () => {
  const program = await standIn();
  const folder = dataFolder(program);
  const home = tempFolder();
  const repository = join(home, 'shop');
  mkdirSync(join(repository, 'src', 'deep'), { recursive: true });
  mkdirSync(join(home, 'plain'));
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args]);
  git('init', '-q');
  git('commit', '-q', '--allow-empty', '-m', 'first');
  git('worktree', 'add', '-q', join(home, 'tree'));
  const module = join(repository, 'module');
  mkdirSync(module);
  writeFileSync(join(module, '.git'), 'gitdir: ../.git/modules/module\n');
  const bare = join(home, 'bare-tree');
  mkdirSync(bare);
  writeFileSync(join(bare, '.git'), `gitdir: ${home}/lib.git/worktrees/bare-tree\n`);
  const places = [repository, join(repository, 'src', 'deep'), join(home, 'tree'), module, bare, join(home, 'plain')];
  const folders: unknown[] = [];
  for (const cwd of places) {
    await hearHook(folder, ['codex', 'session'], { cwd });
    folders.push(Object(program.requests.at(-1)?.body).folder);
  }
  expect(folders).toEqual([repository, repository, repository, module, join(home, 'lib'), join(home, 'plain')]);
});

test('the check tells whether the hook works, and why not', async () => {
  const program = await standIn({ answer: '{"text":"","keys":[]}' });
  const folder = dataFolder(program);
  const check = async (): Promise<unknown> => JSON.parse((await runHook(folder, ['codex', 'check'], undefined)).stdout);
  expect(await check()).toEqual({ works: true });
  expect(program.requests.map(({ body }) => body)).toEqual([{ prompt: '-' }]);
  writePrivate(join(folder, 'clients', 'codex.hook.token'), 'two words');
  expect(await check()).toEqual({ works: false, why: 'there is no token for this hook' });
  const refusing = dataFolder(await standIn({ status: 401, answer: '{"message":"This token is paused."}' }));
  expect(JSON.parse((await runHook(refusing, ['codex', 'check'], undefined)).stdout)).toEqual({
    works: false,
    why: 'This token is paused.',
  });
});

test('the hook is one file that imports only what Node contains', () => {
  const imports = [...readFileSync(SCRIPT, 'utf8').matchAll(/(?:from|import\()\s*'([^']+)'/g)].map(([, name = '']) => name);
  expect(imports.length).toBeGreaterThan(5);
  for (const name of imports) expect(name).toMatch(/^node:/);
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
