import { beforeEach, describe, expect, test } from 'vitest';
import { httpFetch } from '../../../src/core/packs/builtin/http-fetch.ts';
import { MINUTE } from '../../support/clock.ts';
import { type FakeInternet, startFakeInternet, PUBLIC_IPV4 } from '../../support/fake-internet.ts';
import { aCaller, openTestMemory, type TestMemory } from '../../support/memory.ts';
import { CREDENTIAL } from '../../support/packs.ts';

const PAGE = 'https://docs.example.com/page';

let internet: FakeInternet;
let memory: TestMemory;

/** A memory in which `http.fetch` may contact these hosts. */
async function allow(...hosts: string[]): Promise<void> {
  internet = await startFakeInternet();
  memory = await openTestMemory({ packs: { packs: [httpFetch({ egress: internet.egress, hosts })] } });
}

const fetching = (input: object, caller = aCaller()) => memory.as(caller)('runPack', { name: 'http.fetch', input: { ...input } });

beforeEach(() => allow('docs.example.com', '*.example.org'));

describe('http.fetch', () => {
  test('is off until its owner lists hosts, and says so (R-PACK-15)', async () => {
    await allow();
    const { packs } = await memory.as(aCaller())('packs', {});
    expect(packs.find(({ name }) => name === 'http.fetch')?.unavailable).toContain('HELMDECK_FETCH_HOSTS');
    await expect(fetching({ url: PAGE })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('HELMDECK_FETCH_HOSTS') as string,
    });
    expect(internet.connections).toEqual([]);
  });

  test('returns the text of a page, and sends a GET request', async () => {
    internet.respond('docs.example.com', ({ headers }, response) =>
      response.setHeader('Content-Type', 'text/html; charset=utf-8').end(`<p>grüße, ${headers.accept}</p>`),
    );
    expect(await fetching({ url: `${PAGE}?q=1#part`, accept: 'text/html, application/json;q=0.5' })).toMatchObject({
      output: {
        url: `${PAGE}?q=1`,
        status: 200,
        content_type: 'text/html; charset=utf-8',
        text: '<p>grüße, text/html, application/json;q=0.5</p>',
      },
      cached: false,
    });
    expect(internet.requests.map(({ method }) => method)).toEqual(['GET']);
  });

  test('contacts listed hosts only, also for redirects (R-PACK-15)', async () => {
    internet.respond('docs.example.com', ({ url }, response) =>
      response.writeHead(302, { Location: url === '/out' ? 'https://www.example.com/' : 'https://www.example.org/' }).end(),
    );
    internet.respond('www.example.org', (_, response) => response.end('there'));
    expect(await fetching({ url: 'https://docs.example.com/in' })).toMatchObject({ output: { url: 'https://www.example.org/' } });
    await expect(fetching({ url: 'https://docs.example.com/out' })).rejects.toMatchObject({
      code: 'handler_failed',
      message: expect.stringMatching(/www\.example\.com, which is not an allowed host; .*HELMDECK_FETCH_HOSTS/) as string,
    });
    await expect(fetching({ url: 'https://www.example.com/' })).rejects.toMatchObject({ code: 'invalid_input' });
    internet.names.set('docs.example.com', [['169.254.169.254']]);
    await expect(fetching({ url: PAGE })).rejects.toMatchObject({ code: 'handler_failed' });
    expect(new Set(internet.connections)).toEqual(new Set([`${PUBLIC_IPV4} 443`]));
    expect(internet.trappedConnections()).toBe(0);
  });

  test.each([
    ['text/plain; charset=iso-8859-1', Buffer.from('gr\u00fcn', 'latin1'), 'grün'],
    ['application/json', Buffer.from('{"a":1}'), '{"a":1}'],
    ['application/problem+json; charset="UTF-8"', Buffer.from('{}'), '{}'],
    ['application/atom+xml', Buffer.from('<a/>'), '<a/>'],
    ['', Buffer.from('grün'), 'grün'],
    ['text/plain', Buffer.from([0x61, 0xff, 0x62]), 'a\ufffdb'],
  ])('reads %s', async (type, body, text) => {
    internet.respond('docs.example.com', (_, response) =>
      response.writeHead(200, type === '' ? {} : { 'Content-Type': type }).end(body),
    );
    expect(await fetching({ url: PAGE })).toMatchObject({ output: { text, content_type: type } });
  });

  test.each([
    ['image/png', Buffer.from([0x89, 0x50])],
    ['application/octet-stream', Buffer.from('text')],
    ['text/plain; charset=klingon', Buffer.from('text')],
    ['', Buffer.from([0xff, 0xfe, 0x00])],
  ])('refuses %s, which is not text', async (type, body) => {
    internet.respond('docs.example.com', (_, response) =>
      response.writeHead(200, type === '' ? {} : { 'Content-Type': type }).end(body),
    );
    await expect(fetching({ url: PAGE })).rejects.toMatchObject({
      code: 'handler_failed',
      message: 'docs.example.com sent content that is not text; fetch another page.',
    });
  });

  test('truncates a long response at the given size, never within a character', async () => {
    internet.respond('docs.example.com', (_, response) => response.setHeader('Content-Type', 'text/plain').end('ü'.repeat(100)));
    expect(await fetching({ url: PAGE, max_bytes: 5 })).toMatchObject({ output: { text: 'üü', truncated: true } });
    const { output } = await fetching({ url: PAGE, max_bytes: 200 });
    expect(output).not.toHaveProperty('truncated');
  });

  test.each([
    { url: 5 },
    { url: `https://docs.example.com/${'x'.repeat(2048)}` },
    { url: PAGE, accept: 'text/html\r\nX-Evil: 1' },
    { url: PAGE, accept: '' },
    { url: PAGE, max_bytes: 0 },
    { url: PAGE, max_bytes: 2 ** 20 },
    { url: PAGE, cache: 'yes' },
    { url: PAGE, method: 'POST' },
    { url: PAGE, headers: { Authorization: 'x' } },
  ])('refuses the input %j', async (input) => {
    await expect(fetching(input)).rejects.toMatchObject({ code: 'invalid_input' });
    expect(internet.connections).toEqual([]);
  });
});

describe('the cache of http.fetch', () => {
  const answering = (headers: Record<string, string>, status = 200): void =>
    internet.respond('docs.example.com', (_, response) => response.writeHead(status, headers).end('hello'));

  test('holds responses to calls with `cache` for five minutes (R-PACK-15)', async () => {
    answering({ 'Cache-Control': 'public, max-age=60' });
    expect(await fetching({ url: PAGE, cache: true })).toMatchObject({ cached: false });
    expect(await fetching({ url: PAGE, cache: true })).toMatchObject({ cached: true, output: { text: 'hello' } });
    expect(internet.requests).toHaveLength(1);
    await memory.clock.advance(5 * MINUTE);
    expect(await fetching({ url: PAGE, cache: true })).toMatchObject({ cached: false });
    expect(await fetching({ url: PAGE, cache: true }, aCaller({ subject: 'other' }))).toMatchObject({ cached: false });
    expect(internet.requests).toHaveLength(3);
  });

  test('does not delay calls without `cache` (R-PACK-15)', async () => {
    const first = Promise.withResolvers<void>();
    internet.respond('docs.example.com', (_, response) => {
      if (internet.requests.length === 1) void first.promise.then(() => response.end('late'));
      else response.end('at once');
    });
    const slow = fetching({ url: PAGE });
    await expect.poll(() => internet.requests.length).toBe(1);
    expect(await fetching({ url: PAGE })).toMatchObject({ output: { text: 'at once' } });
    first.resolve();
    expect(await slow).toMatchObject({ output: { text: 'late' } });
  });

  test('is off unless requested (R-PACK-15)', async () => {
    answering({});
    for (let time = 0; time < 2; time += 1) expect(await fetching({ url: PAGE })).toMatchObject({ cached: false });
    expect(await fetching({ url: PAGE, cache: true })).toMatchObject({ cached: false });
    expect(internet.requests).toHaveLength(3);
  });

  test.each([
    { what: 'a response that sets a cookie', headers: { 'Set-Cookie': 'session=1' } },
    { what: 'a response marked no-store', headers: { 'Cache-Control': 'no-store' } },
    { what: 'a response marked private', headers: { 'Cache-Control': 'max-age=600, private' } },
    { what: 'a response with status 500', headers: {}, status: 500 },
    { what: 'a response with status 404', headers: {}, status: 404 },
    { what: 'a response with a credential', headers: { 'X-Any': 'x' }, text: CREDENTIAL },
  ])('never holds $what (R-PACK-04)', async ({ headers, status = 200, text = 'hello' }) => {
    internet.respond('docs.example.com', (_, response) => response.writeHead(status, headers).end(text));
    for (let time = 0; time < 2; time += 1) {
      expect(await fetching({ url: PAGE, cache: true })).toMatchObject({ cached: false, output: { status, text } });
    }
    expect(internet.requests).toHaveLength(2);
    expect(await memory.store.space({ subject: 'me' }, 'cache').count()).toBe(0);
  });
});

test('only the declared input is sent, nothing else of the memory (R-PACK-14)', async () => {
  const me = memory.as(aCaller());
  const facts = ['https://evil.example.org/steal', 'a-private-note-7f3e', 'docs.example.com/secret-8d1c'];
  for (const [index, value] of facts.entries()) await me('remember', { key: `note/${index}-9a9a`, value });
  internet.respond('docs.example.com', (_, response) => response.end('hello'));
  internet.respond('www.example.org', (_, response) => response.end('hello'));
  for (const url of [PAGE, 'https://www.example.org/?q=a']) await fetching({ url });
  const out = JSON.stringify([internet.requests, internet.connections]);
  for (const word of ['evil', '7f3e', '8d1c', '9a9a', 'note', 'claude-code', 'token-1']) expect(out).not.toContain(word);
  expect(internet.requests.map(({ url }) => url)).toEqual([PAGE, 'https://www.example.org/?q=a']);
});
