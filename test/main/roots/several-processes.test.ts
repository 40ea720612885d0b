import { get, type IncomingMessage } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { EVENTUALLY, type HttpResponse } from '../../support/listener.ts';
import { type PostgresProxy, startProxy } from '../../support/postgres-proxy.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { serveDatabase, type ServingProgram } from '../../support/program.ts';
import { randomFrom } from '../../support/random.ts';

let server: PostgresServer;
let proxy: PostgresProxy;
beforeAll(async () => {
  server = await startPostgres();
  proxy = await startProxy(server.port);
  proxy.dropsNotifications = true;
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** The lane runs 1,000 operations. */
const OPERATIONS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 25);

let memories = 0;
/** Returns the address of a new memory, and its address through a proxy that loses all notifications. */
function newMemory(): { readonly url: string; readonly urlWithoutNotifications: string } {
  const schema = `shared_${(memories += 1)}`;
  const urlAt = (port: number): string => `postgres://owner@127.0.0.1:${port}/postgres?schema=${schema}`;
  return { url: urlAt(server.port), urlWithoutNotifications: urlAt(proxy.port) };
}

const store = async (program: ServingProgram, token: string, body: object): Promise<HttpResponse> => {
  const response = await program.send('/memory/store', { token, body });
  expect(response).toMatchObject({ status: 200 });
  return response;
};

const search = async (program: ServingProgram, token: string, query: string): Promise<[key: string, value: string][]> => {
  const { status, json } = await program.send(`/memory/search?limit=50&query=${encodeURIComponent(query)}`, { token });
  expect(status).toBe(200);
  return (json['hits'] as { key: string; value: string }[]).map(({ key, value }) => [key, value]);
};

test.each([false, true])(
  'the next search through another process finds a fact that one has acknowledged (R-PGSV-01, R-OPS-14), notifications lost: %s',
  async (areLost) => {
    const { url, urlWithoutNotifications } = newMemory();
    const [one, other] = await Promise.all([serveDatabase(url), serveDatabase(areLost ? urlWithoutNotifications : url)]);
    const { token } = await one.token('ada');
    for (let turn = 0; turn < OPERATIONS; turn += 1) {
      const [key, word] = [`k${turn % 50}`, `word${turn}x`];
      await store(one, token, { key, value: `the ${word}` });
      // The word can resemble words of other facts, which are found too.
      expect((await search(other, token, word))[0]).toEqual([key, `the ${word}`]);
    }
  },
);

test('a token that one process revokes or pauses is refused by the next request anywhere (R-PGSV-01, R-AUTH-04, R-AUTH-09)', async () => {
  const { url, urlWithoutNotifications } = newMemory();
  const [one, other] = await Promise.all([serveDatabase(url), serveDatabase(urlWithoutNotifications)]);
  const read = async (token: string): Promise<number> => (await other.send('/memory', { token })).status;
  for (let turn = 0; turn < Math.max(5, OPERATIONS / 10); turn += 1) {
    const { id, token } = await one.token('ada', `client ${turn}`);
    expect(await read(token)).toBe(200);
    await one.owner.call('pauseToken', { id, paused: true });
    expect(await read(token)).toBe(401);
    // The other process knows a token that it has not minted.
    await other.owner.call('pauseToken', { id, paused: false });
    expect(await read(token)).toBe(200);
    await one.owner.call('revokeToken', { id });
    expect(await read(token)).toBe(401);
  }
  // The stream of a token ends although its process receives neither a request nor a notification.
  const { id, token } = await one.token('ada', 'listening');
  const events = await openEvents(other, token);
  await one.owner.call('revokeToken', { id });
  await expect.poll(() => events.ended, EVENTUALLY).toBe(true);
});

test('the changes of one process reach the streams of another (R-OPS-12)', async () => {
  const { url, urlWithoutNotifications } = newMemory();
  const [one, other] = await Promise.all([serveDatabase(url), serveDatabase(urlWithoutNotifications)]);
  const { token } = await one.token('ada');
  const events = await openEvents(other, token);
  await store(one, token, { key: 'k', value: 'v' });
  await expect.poll(() => events.text, EVENTUALLY).toMatch(/"fact"|"kind":"fact"/);
});

test('the lock of one process reaches all, and each unlocks from its own key source (R-PGSV-03)', async () => {
  const { url, urlWithoutNotifications } = newMemory();
  const [one, other, third] = await Promise.all([serveDatabase(url), serveDatabase(url), serveDatabase(urlWithoutNotifications)]);
  const { token } = await one.token('ada');
  await store(one, token, { key: 'k', value: 'v' });
  const keyOf = async (program: ServingProgram): Promise<string> => (await program.owner.call('status', {})).store.key.at;
  await one.owner.call('lock', {});
  await expect.poll(() => keyOf(other), EVENTUALLY).toBe('locked');
  await expect.poll(() => keyOf(third), EVENTUALLY).toBe('locked');
  expect(await third.send('/memory/fact?key=k', { token })).toMatchObject({ status: 503, json: { error: 'key_unavailable' } });
  await third.owner.call('unlock', {});
  expect(await third.send('/memory/fact?key=k', { token })).toMatchObject({ status: 200 });
  expect(await keyOf(other)).toBe('locked');
});

test('without the database a process refuses, and continues when the database is back (R-PGSV-02)', async () => {
  const own = await startPostgres();
  onTestFinished(() => own[Symbol.asyncDispose]());
  const program = await serveDatabase(`postgres://owner@127.0.0.1:${own.port}/postgres`);
  const { token } = await program.token('ada');
  await store(program, token, { key: 'k', value: 'the word' });
  expect(await search(program, token, 'word')).toHaveLength(1);
  await own.stop('SIGKILL');
  const requests = [
    program.send('/memory/search?query=word', { token }),
    program.send('/memory/fact?key=k', { token }),
    program.send('/memory', { token }),
    program.send('/memory/store', { token, body: { key: 'k', value: 'lost' } }),
    program.send('/memory/forget', { token, body: { scope: 'key:k' } }),
    program.send('/status', { token }),
  ];
  for (const response of await Promise.all(requests)) {
    expect(response).toMatchObject({ status: 503, json: { error: 'store_unavailable' } });
    expect(response.text).toMatch(/The database cannot be reached\. Start it/);
    expect(response.text).not.toMatch(/the word/);
  }
  await own.start();
  await expect.poll(async () => (await program.send('/memory/fact?key=k', { token })).status, EVENTUALLY).toBe(200);
  expect(await search(program, token, 'word')).toEqual([['k', 'the word']]);
  await store(program, token, { key: 'k', value: 'another word' });
  const { errorOutput } = await program.end('SIGTERM');
  expect(errorOutput).toBe('');
});

const PROCESSES = 4;
/** Operations of the model. The lane runs more. */
const REQUESTS = Number(process.env['HELMDECK_TEST_REQUESTS'] ?? 200);
const SUBJECTS = 8;

test('four processes behave as one memory (R-ISO-01, R-OPS-14)', async () => {
  const { url, urlWithoutNotifications } = newMemory();
  const programs = await Promise.all(
    Array.from({ length: PROCESSES }, (_, at) => serveDatabase(at === 0 ? urlWithoutNotifications : url)),
  );
  const differences = await Promise.all(Array.from({ length: SUBJECTS }, (_, at) => differencesOf(programs, at)));
  expect(differences.flat()).toEqual([]);
});

interface ModelFact {
  readonly value: string;
  readonly category: string;
  readonly earlier: readonly string[];
}

/** Sends random operations of one subject through random processes. Returns each answer that differs from the model. */
async function differencesOf(programs: readonly ServingProgram[], at: number): Promise<object[]> {
  const random = randomFrom(at + 1);
  const { token } = await programs[at % PROCESSES]!.token(`subject${at}`);
  const model = new Map<string, ModelFact>();
  const differences: object[] = [];
  for (let operation = 0; operation < REQUESTS / SUBJECTS; operation += 1) {
    const program = programs[random(PROCESSES)]!;
    const key = `key ${random(12)}`;
    const named = `?key=${encodeURIComponent(key)}`;
    const known = model.get(key);
    const supersede = (value: string, category: string): void =>
      void model.set(key, { value, category, earlier: known ? [known.value, ...known.earlier].slice(0, 20) : [] });
    const run = async (): Promise<{ seen: unknown; wanted: unknown }> => {
      switch (random(7)) {
        case 0:
        case 1: {
          const [value, category] = [`value${operation}x of subject${at}x`, `c${random(3)}`];
          const { json } = await program.send('/memory/store', { token, body: { key, value, category } });
          supersede(value, category);
          return { seen: json['status'], wanted: known ? 'updated' : 'created' };
        }
        case 2: {
          const { status } = await program.send('/memory/fact', { token, method: 'PATCH', body: { key, category: 'changed' } });
          if (known && known.category !== 'changed') supersede(known.value, 'changed');
          return { seen: status, wanted: known ? 200 : 404 };
        }
        case 3: {
          const { json } = await program.send('/memory/forget', { token, body: { scope: `key:${key}` } });
          model.delete(key);
          return { seen: json['deleted'], wanted: known ? 1 : 0 };
        }
        case 4: {
          const wanted = new Map([...model].map(([name, { value }]) => [name, value]));
          return { seen: new Map(await search(program, token, `subject${at}x`)), wanted };
        }
        case 5: {
          const { status, json } = await program.send(`/memory/history${named}`, { token });
          const versions = json['versions'] as { value: string }[] | undefined;
          return {
            seen: [status, versions?.map(({ value }) => value)],
            wanted: known ? [200, known.earlier] : [404, undefined],
          };
        }
        default: {
          const { status, json } = await program.send(`/memory/fact${named}`, { token });
          return {
            seen: [status, json['value'], json['category']],
            wanted: known ? [200, known.value, known.category] : [404, undefined, undefined],
          };
        }
      }
    };
    const { seen, wanted } = await run();
    if (!isDeepStrictEqual(seen, wanted)) differences.push({ subject: at, operation, key, seen, wanted });
  }
  return differences;
}

/** Opens the stream of change events. */
async function openEvents(program: ServingProgram, token: string): Promise<{ text: string; ended: boolean }> {
  const seen = { text: '', ended: false };
  const headers = { Authorization: `Bearer ${token}` };
  const request = get(`${program.owner.url}/api/v1/events`, { headers, agent: false });
  onTestFinished(() => void request.destroy());
  request.on('error', () => (seen.ended = true));
  const response = await new Promise<IncomingMessage>((resolve) => void request.once('response', resolve));
  expect(response.statusCode).toBe(200);
  response.on('data', (chunk: Buffer) => (seen.text += chunk.toString())).on('close', () => (seen.ended = true));
  return seen;
}
