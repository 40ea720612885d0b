import { beforeAll, describe, expect, test } from 'vitest';
import type { Perform } from '../../src/core/operations/perform.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { CONNECTION_LIMITS } from '../../src/listeners/limits.ts';
import { manualClock, MINUTE, SECOND } from '../support/clock.ts';
import { sendRequest, openConnection, serve, type ServedMemory, EVENTUALLY } from '../support/listener.ts';
import { aDraft } from '../support/store.ts';
import { measureWait } from '../support/work.ts';

const IMPORT = '/api/v1/memory/import';
const EXPORT = '/api/v1/memory/export';
const ndjson = ['Content-Type', 'application/x-ndjson'];
const lineOf = (key: string, more: object = {}) => JSON.stringify({ key, value: `what ${key} says`, ...more });

const imported = ({ url }: ServedMemory, token: string, body: string | Buffer, query = '', more: string[] = []) =>
  sendRequest(url, `${IMPORT}${query}`, { token, body, headers: [...ndjson, ...more] });

const errorsIn = (json: object) => (json as { errors: { line: number; message: string }[] }).errors;

async function fill({ perform, tokens, owner }: ServedMemory, facts: number) {
  const caller = await tokens.verify(owner, 'owner');
  await Promise.all(Array.from({ length: facts }, (_, n) => perform(caller, 'remember', { key: `k/${n}`, value: 'v' })));
}

describe('export and import (R-REST-09)', () => {
  test('copy every fact to another memory, in order, with the remaining lifetime', async () => {
    const one = await serve();
    const other = await serve();
    await fill(one, 1234);
    const text = (await sendRequest(one.url, EXPORT, { token: one.owner })).text;
    const lines = text.trimEnd().split('\n');
    expect(lines).toHaveLength(1234);
    expect(Object.keys(JSON.parse(lines[0] ?? ''))).toEqual(
      expect.arrayContaining(['key', 'value', 'category', 'tags', 'client', 'created_at', 'updated_at', 'expires_at']),
    );
    expect((await imported(other, other.owner, text)).json).toEqual({
      created: 1234,
      updated: 0,
      unchanged: 0,
      dropped: 0,
      errors: [],
      written: { client: 'command-line', since: expect.any(String), until: expect.any(String) },
    });
    expect((await imported(other, other.owner, text)).json).toMatchObject({ created: 0, unchanged: 1234 });
    const again = (await sendRequest(other.url, EXPORT, { token: other.owner })).text.trimEnd().split('\n');
    const told = (all: readonly string[]) =>
      all
        .map((line) => JSON.parse(line) as { key: string; value: string; expires_at: string })
        .toSorted((a, b) => a.key.localeCompare(b.key));
    const [before, after] = [told(lines), told(again)];
    expect(after.map(({ key, value }) => [key, value])).toEqual(before.map(({ key, value }) => [key, value]));
    const shifts = after.map(({ expires_at: end }, at) => Math.abs(Date.parse(end) - Date.parse(before[at]?.expires_at ?? '')));
    expect(Math.max(...shifts)).toBeLessThan(MINUTE);
  });

  test('cover the own namespace only', async () => {
    const all = await serve();
    await fill(all, 3);
    const you = await all.token('you');
    expect((await sendRequest(all.url, EXPORT, { token: you })).text).toBe('');
    await imported(all, you, lineOf('k/0'));
    expect((await sendRequest(all.url, EXPORT, { token: you })).text.split('\n')).toHaveLength(2);
  });

  test('use the type application/x-ndjson', async () => {
    const all = await serve();
    expect((await sendRequest(all.url, EXPORT, { token: all.owner })).headers['content-type']).toBe('application/x-ndjson');
    expect((await sendRequest(all.url, IMPORT, { token: all.owner, body: lineOf('a') })).status).toBe(415);
    expect((await imported(all, all.owner, '', '', ['Content-Encoding', 'gzip'])).status).toBe(415);
  });
});

describe('an import', () => {
  test('reports errors by line and imports the other lines', async () => {
    const all = await serve();
    const lines = [
      lineOf('good/1'),
      '',
      'nonsense',
      lineOf('good/2', { expires_at: new Date(Date.now() + 2 * 3_600_000).toISOString() }),
      lineOf('over', { expires_at: new Date(Date.now() + 60_000).toISOString() }),
      lineOf('bad', { unknown: 1 }),
      `{"key":"deep","value":${'['.repeat(65)}${']'.repeat(65)}}`,
      lineOf('good/3'),
    ];
    const body = Buffer.concat([
      Buffer.from(`${lines.join('\r\n')}\n`),
      Buffer.from([0x22, 0xff, 0x22, 0x0a]),
      Buffer.from(lineOf('good/4')),
    ]);
    const { status, json } = await imported(all, all.owner, body);
    expect(status).toBe(200);
    expect(json).toMatchObject({ created: 4, updated: 0, unchanged: 0, dropped: 1 });
    expect(errorsIn(json).map(({ line }) => line)).toEqual([3, 6, 7, 9]);
    expect(
      errorsIn(json)
        .map(({ message }) => message)
        .join(),
    ).toMatch(/not JSON.*unknown field.*nested.*not valid UTF-8/);
  });

  test('can run dry', async () => {
    const all = await serve();
    const dry = await imported(all, all.owner, `${lineOf('a')}\nx`, '?dry_run=true');
    expect(dry.json).toMatchObject({ created: 1, dry_run: true, errors: [{ line: 2 }] });
    expect((await sendRequest(all.url, EXPORT, { token: all.owner })).text).toBe('');
    expect((await imported(all, all.owner, '', '?dry_run=perhaps')).json.error).toBe('invalid_input');
    expect((await imported(all, all.owner, '', '?dry=1')).json.error).toBe('invalid_input');
  });

  test('of nothing imports nothing', async () => {
    const all = await serve();
    expect((await imported(all, all.owner, '')).json).toEqual({ created: 0, updated: 0, unchanged: 0, dropped: 0, errors: [] });
    expect((await imported(all, all.owner, '\n\n \n')).json).toMatchObject({ created: 0, errors: [] });
  });

  test('numbers lines across batches', async () => {
    const all = await serve();
    const lines = Array.from({ length: 1203 }, (_, n) => (n % 400 === 399 ? 'x' : lineOf(`k/${n}`)));
    const { json } = await imported(all, all.owner, lines.join('\n'), '', ['Transfer-Encoding', 'chunked']);
    expect(json).toMatchObject({ created: 1200 });
    expect(errorsIn(json).map(({ line }) => line)).toEqual([400, 800, 1200]);
  });

  test('uses batches of at most 500 lines or 1 MiB', async () => {
    const sizes: number[] = [];
    const around =
      (perform: Perform): Perform =>
      (...args: Parameters<Perform>) => {
        const { lines } = args[2] as { lines: string[] };
        expect(lines.length).toBeLessThanOrEqual(500);
        sizes.push(Buffer.byteLength(lines.join('')));
        return perform(...args);
      };
    const all = await serve({ wrapPerform: around });
    const lines = Array.from({ length: 60 }, (_, n) => lineOf(`k/${n}`, { value: 'x'.repeat(60_000) }));
    expect((await imported(all, all.owner, lines.join('\n'))).json).toMatchObject({ created: 60 });
    expect(Math.max(...sizes)).toBeLessThanOrEqual(CONNECTION_LIMITS.bodyBytes);
  });

  test('refuses a line over 1 MiB, and the client gets the response (R-HTTP-06)', async () => {
    const all = await serve();
    const most = lineOf('a', { client: 'x'.repeat(2 ** 20 - lineOf('a', { client: '' }).length) });
    expect(Buffer.byteLength(most)).toBe(2 ** 20);
    expect((await imported(all, all.owner, most)).json).toMatchObject({ created: 1 });
    for (const body of [`${most} \n`, `${most} `, Buffer.alloc(6 * 2 ** 20, 0x20)]) {
      const { status, json } = await imported(all, all.owner, body);
      expect([status, json.error]).toEqual([413, 'payload_too_large']);
    }
  });

  test('accepts more than 1 MiB in total', async () => {
    const all = await serve();
    const lines = Array.from({ length: 100 }, (_, n) => lineOf(`k/${n}`, { value: 'x'.repeat(30_000) })).join('\n');
    expect(Buffer.byteLength(lines)).toBeGreaterThan(2 ** 21);
    expect((await imported(all, all.owner, lines)).json).toMatchObject({ created: 100 });
  });

  test('lists 1,000 errors, and counts the rest', async () => {
    const all = await serve();
    const { json } = await imported(all, all.owner, 'x\n'.repeat(2500));
    expect(errorsIn(json)).toHaveLength(1000);
    expect(json['more_errors']).toBe(1500);
  });

  test('that is truncated imports complete lines only', async () => {
    const all = await serve();
    const line = await openConnection(all.port);
    const head = `POST ${IMPORT} HTTP/1.1\r\nHost: 127.0.0.1:${all.port}\r\nAuthorization: Bearer ${all.owner}\r\nContent-Type: application/x-ndjson\r\n`;
    const lines = Array.from({ length: 500 }, (_, n) => `${lineOf(`k/${n}`)}\n`).join('');
    line.write(`${head}Content-Length: 1000000\r\n\r\n${lines}${lineOf('next')}\n${lineOf('cut')}`);
    await expect
      .poll(async () => (await sendRequest(all.url, '/api/v1/status', { token: all.owner })).json['facts'], EVENTUALLY)
      .toBe(500);
    line.socket.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await sendRequest(all.url, '/api/v1/memory/fact?key=cut', { token: all.owner })).status).toBe(404);
  });

  test('that sends nothing for 7 s is ended, but not while the program is importing (R-HTTP-07)', async () => {
    const clock = manualClock();
    const { promise, resolve } = Promise.withResolvers<void>();
    let batches = 0;
    const around =
      (perform: Perform): Perform =>
      async (...args: Parameters<Perform>) => {
        if ((args[2] as { lines?: string[] }).lines?.length) {
          batches += 1;
          await promise;
        }
        return await perform(...args);
      };
    const all = await serve({ wrapPerform: around, clock });
    const line = await openConnection(all.port);
    const head = `POST ${IMPORT} HTTP/1.1\r\nHost: 127.0.0.1:${all.port}\r\nAuthorization: Bearer ${all.owner}\r\nContent-Type: application/x-ndjson\r\n`;
    line.write(
      `${head}Content-Length: 1000000\r\n\r\n${Array.from({ length: 501 }, (_, n) => `${lineOf(`k/${n}`)}\n`).join('')}`,
    );
    await expect.poll(() => batches, EVENTUALLY).toBe(1);
    await clock.advance(5 * MINUTE);
    expect(line.text()).toBe('');
    resolve();
    await expect
      .poll(async () => (await sendRequest(all.url, '/api/v1/status', { token: all.owner })).json['facts'], EVENTUALLY)
      .toBe(500);
    await clock.advance(CONNECTION_LIMITS.progressMs + 1);
    expect(await line.waitFor('}')).toMatch(/^HTTP\/1\.1 400 [^]*No data arrived for 7 s/);
  });

  test('that sends a line now and then ends after ten minutes and keeps the lines received (R-HTTP-07)', async () => {
    const clock = manualClock();
    const all = await serve({ clock });
    const line = await openConnection(all.port);
    const fact = `${lineOf('first')}\n`;
    line.write(
      `POST ${IMPORT} HTTP/1.1\r\nHost: 127.0.0.1:${all.port}\r\nAuthorization: Bearer ${all.owner}\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    line.write(`${Buffer.byteLength(fact).toString(16)}\r\n${fact}\r\n`);
    // A chunk may arrive one or two steps late on a busy machine, and the limit for a pause is 7 s.
    const step = 2 * SECOND;
    for (let passed = 0; passed <= CONNECTION_LIMITS.importWaitMs + step && line.text() === ''; passed += step) {
      // Let the chunk arrive before the clock moves on.
      await new Promise((resolve) => setTimeout(resolve, 5));
      await clock.advance(step);
      if (line.text() === '') line.write('1\r\n\n\r\n');
    }
    expect(await line.waitFor('}')).toMatch(
      /^HTTP\/1\.1 400 [^]*This import waited for lines for 10 minutes in total, so it was stopped. The lines that arrived are imported/,
    );
    expect((await sendRequest(all.url, '/api/v1/memory/fact?key=first', { token: all.owner })).status).toBe(200);
  });
});

test('an import with invalid chunks, at the start or later, is refused with the reason', async () => {
  for (const begun of [
    '',
    `${(JSON.stringify({ key: 'k', value: 'v' }).length + 1).toString(16)}\r\n{"key":"k","value":"v"}\n\r\n`,
  ]) {
    const clock = manualClock();
    const { port, owner } = await serve({ clock });
    const line = await openConnection(port);
    const head = `POST ${IMPORT} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\n`;
    line.write(`${head}Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n${begun}zz\r\n`);
    expect(await line.waitFor('}')).toMatch(
      /^HTTP\/1\.1 400 [^]*The connection closed during the import; import all lines again/,
    );
    await clock.advance(CONNECTION_LIMITS.lingerMs);
    await line.waitForEnd();
  }
});

describe('an export', () => {
  const FACTS = 600;
  /** Two values of this length fill a page. */
  const PAGES = Math.ceil(FACTS / 2);
  const store = new RamStore(systemClock);
  beforeAll(async () => {
    const space = store.space({ subject: 'me' }, 'fact');
    const value = 'x'.repeat(60_000);
    await Promise.all(Array.from({ length: FACTS }, (_, n) => space.put(aDraft({ key: `k/${n}`, value }))));
  });
  const counting = () => {
    const counted = { pages: 0 };
    const around =
      (perform: Perform): Perform =>
      (...args: Parameters<Perform>) => {
        if (args[1] === 'export') counted.pages += 1;
        return perform(...args);
      };
    return { counted, around };
  };
  const get = ({ port, owner }: ServedMemory) =>
    `GET ${EXPORT} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\nConnection: close\r\n\r\n`;

  test('is written no faster than the client reads', async () => {
    const { counted, around } = counting();
    const all = await serve({ wrapPerform: around, store });
    const line = await openConnection(all.port);
    line.socket.pause();
    line.write(get(all));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const early = counted.pages;
    expect(early).toBeLessThan(PAGES / 2);
    line.socket.resume();
    await expect.poll(() => counted.pages, EVENTUALLY).toBe(PAGES);
    await line.waitForEnd();
    expect(line.text().endsWith('\r\n0\r\n\r\n')).toBe(true);
  });

  test('that is not read ends after a while', async () => {
    const clock = manualClock();
    const { counted, around } = counting();
    const all = await serve({ wrapPerform: around, clock, store });
    const line = await openConnection(all.port);
    line.socket.pause();
    line.write(get(all));
    await expect.poll(() => clock.pendingTimers, EVENTUALLY).toBe(2);
    await clock.advance(2 * CONNECTION_LIMITS.progressMs);
    line.socket.resume();
    await line.waitForEnd();
    expect(line.text().endsWith('\r\n0\r\n\r\n')).toBe(false);
    expect(counted.pages).toBeLessThan(PAGES);
  });

  test('stops when the client disconnects', async () => {
    const { counted, around } = counting();
    const all = await serve({ wrapPerform: around, store });
    const line = await openConnection(all.port);
    line.socket.pause();
    line.write(get(all));
    await expect.poll(() => counted.pages, EVENTUALLY).toBeGreaterThan(0);
    line.socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(counted.pages).toBeLessThan(PAGES);
  });

  test('that fails midway closes the connection', async () => {
    let pages = 0;
    const around =
      (perform: Perform): Perform =>
      (...args: Parameters<Perform>) => {
        if (args[1] === 'export') pages += 1;
        if (pages > 2) return Promise.reject(new Error('the disk is gone'));
        return perform(...args);
      };
    const log: object[] = [];
    const all = await serve({ wrapPerform: around, store, log: (trouble) => log.push(trouble) });
    await expect(sendRequest(all.url, EXPORT, { token: all.owner })).rejects.toThrow(/aborted|hang up|terminated/);
    expect(log).toEqual([{ operation: 'export', client: 'command-line' }]);
    pages = 2;
    expect((await sendRequest(all.url, EXPORT, { token: all.owner })).status).toBe(500);
  });

  test('ends with its token (R-AUTH-09)', async () => {
    const all = await serve({ store });
    const you = await all.token('me', ['memory:read']);
    const line = await openConnection(all.port);
    line.socket.pause();
    line.write(get({ ...all, owner: you }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const [record] = (await all.tokens.list()).tokens;
    await all.tokens.revoke({ id: record?.id ?? '', unrecorded: false });
    line.socket.resume();
    expect(await measureWait(() => line.waitForEnd())).toBeLessThan(2000);
    expect(line.text().endsWith('\r\n0\r\n\r\n')).toBe(false);
  });
});
