import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTcp } from 'node:net';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { asFailure } from '../../src/contract/failure.ts';
import { findOwnerClient } from '../../src/listeners/endpoint.ts';
import { sendRequest, serve } from '../support/listener.ts';
import { tempFolder } from '../support/temp-folder.ts';

const endpointOf = (folder: string): string => join(folder, 'endpoint.json');
const read = (folder: string) => JSON.parse(readFileSync(endpointOf(folder), 'utf8')) as Record<string, string> & { pid: number };
const posix = process.platform !== 'win32';

/** Another program on a port, which records all data and sends this response. */
async function squatter(answer = '', port = 0): Promise<{ port: number; heard: () => string }> {
  let heard = '';
  const server = createTcp((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      heard += chunk.toString();
      if (answer !== '') socket.write(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  return { port: typeof address === 'object' && address ? address.port : 0, heard: () => heard };
}

async function found(folder: string) {
  const program = await findOwnerClient(folder);
  if (program) onTestFinished(() => program[Symbol.dispose]());
  return program;
}

describe('endpoint.json (R-HTTP-03)', () => {
  test('contains the URL, pid and start time, readable by the owner only', async () => {
    const { url, folder, owner } = await serve();
    expect(read(folder)).toEqual({
      url,
      pid: process.pid,
      instance: expect.stringMatching(/^[0-9a-f]{32}$/),
      proof_key: expect.stringMatching(/^[0-9a-f]{64}$/),
      started_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(readFileSync(join(folder, 'owner-token'), 'utf8').trim()).toBe(owner);
  });

  test.runIf(posix).each(['endpoint.json', 'owner-token'])('has mode 0600: %s', async (name) => {
    const { folder } = await serve();
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });

  test('is new at each start, like the token (R-AUTH-08)', async () => {
    const one = await serve();
    const other = await serve();
    expect(read(one.folder)['instance']).not.toBe(read(other.folder)['instance']);
    expect(read(one.folder)['proof_key']).not.toBe(read(other.folder)['proof_key']);
    expect(one.owner).not.toBe(other.owner);
    expect((await sendRequest(one.url, '/api/v1/version', { token: other.owner })).status).toBe(401);
  });

  test.runIf(posix)('replaces a symbolic link without writing to its target', async () => {
    const folder = tempFolder();
    const elsewhere = join(tempFolder(), 'victim');
    writeFileSync(elsewhere, 'mine');
    for (const name of ['endpoint.json', 'owner-token', 'endpoint.json.new', 'owner-token.new']) {
      symlinkSync(elsewhere, join(folder, name));
    }
    await serve({ folder });
    expect(readFileSync(elsewhere, 'utf8')).toBe('mine');
    expect(lstatSync(endpointOf(folder)).isFile()).toBe(true);
    expect(await found(folder)).toBeDefined();
  });

  test.runIf(posix)('is private even if a readable draft was left behind', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'owner-token.new'), '', { mode: 0o666 });
    await serve({ folder });
    expect(statSync(join(folder, 'owner-token')).mode & 0o777).toBe(0o600);
  });
});

describe('the proof (R-HTTP-11)', () => {
  test('can be computed only by the writer of endpoint.json', async () => {
    const { url, folder } = await serve();
    const challenge = 'a-challenge-of-my-own';
    const key = Buffer.from(read(folder)['proof_key'] ?? '', 'hex');
    expect((await sendRequest(url, `/healthz?challenge=${challenge}`)).json).toEqual({
      status: 'ok',
      proof: createHmac('sha256', key).update(challenge).digest('hex'),
    });
  });

  test.each(['short', 'x'.repeat(129), 'with%20blanks%20and%20more', 'twice-as-many-of-them&challenge=twice-as-many-of-them'])(
    'is refused for an invalid challenge: %s',
    async (challenge) => {
      const { url } = await serve();
      const { status, json } = await sendRequest(url, `/healthz?challenge=${challenge}`);
      expect([status, json.error, json['proof']]).toEqual([400, 'invalid_input', undefined]);
    },
  );

  test('is refused to web pages', async () => {
    const { url } = await serve();
    const headers = ['Origin', 'https://evil.example'];
    expect((await sendRequest(url, '/healthz?challenge=a-challenge-of-my-own', { headers })).status).toBe(403);
  });

  test('the plain health check does not identify the program', async () => {
    const { url } = await serve();
    expect((await sendRequest(url, '/healthz')).text).toBe('{"status":"ok"}');
  });
});

describe('the running program', () => {
  test('is found and performs every operation for the owner', async () => {
    const { url, folder } = await serve();
    const program = await found(folder);
    expect([program?.url, program?.pid]).toEqual([url, process.pid]);
    const receipt = await program?.call('remember', { key: 'preferences/editor', value: 'Helix' });
    expect(receipt?.status).toBe('created');
    expect((await program?.call('recall', { key: 'preferences/editor' }))?.value).toBe('Helix');
    expect((await program?.call('tokens', {}))?.tokens).toEqual([]);
    expect((await program?.call('list', { limit: 1, values: true }))?.facts).toHaveLength(1);
  });

  test('fails with the same failures as in process', async () => {
    const { folder } = await serve({ writesPerMinute: 1 });
    const program = await found(folder);
    const unknown = program?.call('recall', { key: 'nowhere' });
    await expect(unknown).rejects.toMatchObject({
      name: 'Failure',
      code: 'not_found',
      message: expect.stringContaining('No fact'),
    });
    await expect(program?.call('remember', { key: 'a', value: '' })).rejects.toMatchObject({ code: 'invalid_input' });
    await program?.call('remember', { key: 'a', value: 'b' });
    await expect(program?.call('remember', { key: 'a', value: 'b' })).rejects.toMatchObject({
      code: 'rate_limited',
      retryAfter: expect.any(Number),
    });
    await expect(program?.call('backup', {})).rejects.toMatchObject({ code: 'key_unavailable' });
  });

  test('returns responses longer than a chunk', async () => {
    const { folder } = await serve();
    const program = await found(folder);
    const value = 'x'.repeat(60_000);
    for (const key of ['long/1', 'long/2']) await program?.call('remember', { key, value });
    expect((await program?.call('export', {}))?.facts.map((fact) => fact.value.length)).toEqual([60_000, 60_000]);
  });

  test('that has stopped is reported', async () => {
    const { folder, listener } = await serve();
    const program = await found(folder);
    await program?.call('status', {});
    await listener.close();
    await expect(program?.call('status', {})).rejects.toMatchObject({ code: 'session_unavailable' });
    expect(await findOwnerClient(folder)).toBeUndefined();
  });

  test('is not found without endpoint.json', async () => {
    expect(await findOwnerClient(tempFolder())).toBeUndefined();
  });

  test.each([
    ['is no JSON', 'x'],
    ['says too little', '{}'],
    ['says something else', '[1]'],
    ['is cut off', '{"url":"http://127.0.0.1:1","pid":1'],
    [
      'leads to another machine',
      JSON.stringify({ url: 'http://10.0.0.1:80', pid: 1, instance: 'x', proof_key: 'aa'.repeat(32), started_at: '' }),
    ],
    [
      'leads to another name',
      JSON.stringify({
        url: 'http://127.0.0.1:80@evil.example',
        pid: 1,
        instance: 'x',
        proof_key: 'aa'.repeat(32),
        started_at: '',
      }),
    ],
  ])('is not found if endpoint.json %s', async (_why, text) => {
    const folder = tempFolder();
    writeFileSync(endpointOf(folder), text, { mode: 0o600 });
    expect(await findOwnerClient(folder)).toBeUndefined();
  });

  test('is not found or reported as damaged for any other content of endpoint.json', async () => {
    const { folder, listener } = await serve();
    const whole = readFileSync(endpointOf(folder), 'utf8');
    await listener.close();
    // Without a token file the search would stop here.
    writeFileSync(join(folder, 'owner-token'), 'x.y.z', { mode: 0o600 });
    const outcomes = new Set<string>();
    const look = async (text: string): Promise<void> => {
      writeFileSync(endpointOf(folder), text, { mode: 0o600 });
      const outcome = await findOwnerClient(folder).then(String, (error: unknown) => asFailure(error).code);
      outcomes.add(outcome);
    };
    const some = fc.tuple(fc.nat(whole.length), fc.string({ unit: 'binary', maxLength: 6 }), fc.nat(3));
    await fc.assert(
      fc.asyncProperty(some, ([at, text, gone]) => look(whole.slice(0, at) + text + whole.slice(at + gone))),
      { numRuns: 1000 },
    );
    await fc.assert(fc.asyncProperty(fc.string({ unit: 'binary' }), look), { numRuns: 500 });
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), (value) => look(JSON.stringify(value))),
      { numRuns: 500 },
    );
    // A changed port may belong to another program, which cannot prove its identity.
    expect([...outcomes].filter((outcome) => outcome !== 'unavailable')).toEqual(['undefined']);
  });

  /** The files that a killed program leaves behind. */
  async function left(change: (endpoint: Record<string, unknown>) => object): Promise<string> {
    const { folder, listener } = await serve();
    const texts = ['endpoint.json', 'owner-token'].map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const);
    const endpoint = read(folder);
    await listener.close();
    for (const [name, text] of texts) writeFileSync(join(folder, name), text, { mode: 0o600 });
    writeFileSync(endpointOf(folder), JSON.stringify({ ...endpoint, ...change(endpoint) }), { mode: 0o600 });
    return folder;
  }

  test('is not found if its process has ended or its port is closed', async () => {
    expect(await findOwnerClient(await left(() => ({ pid: 2 ** 22 - 1 })))).toBeUndefined();
    expect(await findOwnerClient(await left(() => ({})))).toBeUndefined();
  });

  test('whose port another program has taken gets no token', async () => {
    const proof = 'ab'.repeat(32);
    const body = `{"status":"ok","proof":"${proof}"}`;
    const answers = [
      `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"status":"ok"}',
      'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n',
      'SSH-2.0-OpenSSH_9.2\r\n',
      'x'.repeat(10_000),
    ];
    for (const answer of answers) {
      const { port, heard } = await squatter(answer);
      const folder = await left(() => ({ url: `http://127.0.0.1:${port}` }));
      await expect(findOwnerClient(folder)).rejects.toMatchObject({
        code: 'session_unavailable',
        message: expect.stringContaining('Another program'),
      });
      expect(heard()).toMatch(/^GET \/healthz\?challenge=/);
      expect(heard()).not.toMatch(/authorization|bearer/i);
    }
  });

  test('that does not respond is not waited for', { timeout: 30_000 }, async () => {
    const { port, heard } = await squatter();
    const folder = await left(() => ({ url: `http://127.0.0.1:${port}` }));
    await expect(findOwnerClient(folder)).rejects.toMatchObject({ code: 'session_unavailable' });
    expect(heard()).not.toMatch(/authorization/i);
  });

  test('proves its identity on every connection: a program that takes its port later gets nothing', async () => {
    const { folder, listener, port } = await serve();
    const program = await found(folder);
    await program?.call('status', {});
    await listener.close();
    const body = `{"status":"ok","proof":"${'ab'.repeat(32)}"}`;
    const { heard } = await squatter(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`, port);
    // Wait until the client notices the closed connection.
    await new Promise((resolve) => setTimeout(resolve, 50));
    await expect(program?.call('status', {})).rejects.toMatchObject({ code: 'session_unavailable' });
    expect(heard()).toMatch(/^GET \/healthz/);
    expect(heard()).not.toMatch(/authorization/i);
  });

  test('that sends an invalid response is reported', async () => {
    const folder = tempFolder();
    const key = Buffer.alloc(32, 7);
    const server = createServer((request, response) => {
      const challenge = new URL(request.url ?? '', 'http://x').searchParams.get('challenge');
      const proof = challenge && createHmac('sha256', key).update(challenge).digest('hex');
      const text = proof ? JSON.stringify({ status: 'ok', proof }) : 'nonsense';
      response.writeHead(proof ? 200 : 500, { 'Content-Length': text.length }).end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const endpoint = {
      url: `http://127.0.0.1:${port}`,
      pid: process.pid,
      instance: 'x',
      proof_key: key.toString('hex'),
      started_at: 'x',
    };
    writeFileSync(endpointOf(folder), JSON.stringify(endpoint), { mode: 0o600 });
    writeFileSync(join(folder, 'owner-token'), 'x.y.z', { mode: 0o600 });
    const program = await found(folder);
    await expect(program?.call('status', {})).rejects.toMatchObject({ code: 'internal' });
  });

  describe.runIf(posix)('is not trusted', () => {
    test.each([
      ['if other users can read endpoint.json', (folder: string) => chmodSync(endpointOf(folder), 0o644)],
      ['if other users can read its token', (folder: string) => chmodSync(join(folder, 'owner-token'), 0o640)],
      [
        'if endpoint.json is a symbolic link',
        (folder: string) => {
          const elsewhere = join(tempFolder(), 'endpoint.json');
          writeFileSync(elsewhere, readFileSync(endpointOf(folder)), { mode: 0o600 });
          rmSync(endpointOf(folder));
          symlinkSync(elsewhere, endpointOf(folder));
        },
      ],
      [
        'if endpoint.json is a folder',
        (folder: string) => {
          rmSync(endpointOf(folder));
          mkdirSync(endpointOf(folder), { mode: 0o700 });
        },
      ],
      [
        'if endpoint.json is a named pipe without a writer',
        (folder: string) => {
          rmSync(endpointOf(folder));
          execFileSync('mkfifo', ['-m', '600', endpointOf(folder)]);
        },
      ],
    ])('%s', async (_why, spoil) => {
      const { folder } = await serve();
      spoil(folder);
      await expect(findOwnerClient(folder)).rejects.toMatchObject({ code: 'invalid_config' });
      expect(existsSync(folder)).toBe(true);
    });
  });
});

describe("the owner's route", () => {
  test('needs an admin token for every operation', async () => {
    const { url, token, owner } = await serve();
    const other = await token('me', ['memory:read', 'memory:write', 'packs:run']);
    for (const name of ['status', 'remember', 'mintToken', 'nonsense']) {
      const { status, json } = await sendRequest(url, `/api/v1/owner/${name}`, { method: 'POST', token: other, body: {} });
      expect([name, status, json.error]).toEqual([name, 403, 'insufficient_scope']);
    }
    expect((await sendRequest(url, '/api/v1/owner/status', { method: 'POST', token: owner })).status).toBe(200);
  });

  test.each(['nonsense', '__proto__', 'constructor', 'toString', '%72emember', 'remember%00'])(
    'does not know %s',
    async (name) => {
      const { url, owner } = await serve();
      expect((await sendRequest(url, `/api/v1/owner/${name}`, { token: owner, body: {} })).json.error).toBe('not_found');
    },
  );
});
