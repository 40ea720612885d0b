import { describe, expect, test } from 'vitest';
import { sendRequest, openConnection, serve } from '../support/listener.ts';
import { measureWait } from '../support/work.ts';

describe('a slow or silent connection is closed within 15 s (R-HTTP-07)', () => {
  test('however it stalls, and other connections are not affected', async () => {
    const { url, port, owner } = await serve();
    // Six times as long in JSON: the largest possible response, more than the buffers of the system hold.
    const value = '\u0001'.repeat(60_000);
    await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        sendRequest(url, '/api/v1/memory/store', { token: owner, body: { key: `k/${n}`, value } }),
      ),
    );
    const deaf = await openConnection(port);
    deaf.socket.pause();
    deaf.write(
      `GET /api/v1/memory/facts?limit=200&values=1 HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\n\r\n`,
    );
    const head = `POST /api/v1/memory/store HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`;
    const ways: Record<string, string> = {
      'says nothing': '',
      'stops within the request line': 'GET /hea',
      'stops within the headers': head,
      'sends a header now and then': head,
      'was used before': `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`,
      'stops within the body': `${head}Authorization: Bearer ${owner}\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{`,
      'sends a body now and then': `${head}Authorization: Bearer ${owner}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      'sends a body where none is expected': `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Length: 100000\r\n\r\n`,
      'sends blanks now and then in an import': `POST /api/v1/memory/import HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n`,
    };
    const drips: Record<string, string> = {
      'sends a header now and then': 'X-More: x\r\n',
      'sends a body now and then': '1\r\n \r\n',
      'sends a body where none is expected': 'more',
      'sends blanks now and then in an import': '1\r\n \r\n',
    };
    const honestly = async (): Promise<number> => {
      const start = performance.now();
      await sendRequest(url, '/api/v1/memory', { token: owner });
      return performance.now() - start;
    };
    const calm: number[] = [];
    for (let time = 0; time < 20; time += 1) calm.push(await honestly());
    const lines = await Promise.all(
      Object.entries(ways).flatMap(([way, first]) =>
        Array.from({ length: 25 }, async () => {
          const line = await openConnection(port);
          line.write(first);
          return { way, line };
        }),
      ),
    );
    const unasked = lines.filter(({ way }) => way === 'says nothing');
    const dripping = setInterval(() => {
      for (const { way, line } of lines) if (drips[way] !== undefined && line.socket.writable) line.write(drips[way]);
    }, 500);
    const middle = (each: readonly number[]): number =>
      each.toSorted((one, other) => one - other)[Math.floor(each.length / 2)] ?? 0;
    const honest: number[] = [];
    const before = process.memoryUsage.rss();
    let most = before;
    const asking = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss());
      void honestly().then((took) => honest.push(took));
    }, 100);
    let ended: { way: string; took: number }[] = [];
    const waited = await measureWait(async () => {
      ended = await Promise.all(lines.map(async ({ way, line }) => ({ way, took: await line.waitForEnd() })));
    });
    clearInterval(dripping);
    clearInterval(asking);
    expect(waited, ended.toSorted((one, other) => other.took - one.took)[0]?.way).toBeLessThan(15_000);
    // A browser opens connections in advance, and would take an error for the response to its next request.
    expect(unasked.map(({ line }) => line.text())).toEqual(unasked.map(() => ''));
    expect(lines.find(({ way }) => way === 'stops within the headers')?.line.text()).toMatch(/^HTTP\/1\.1 400 /);
    expect(most - before).toBeLessThan(64 * 2 ** 20);
    // A client that does not read its response gets no more of it.
    deaf.socket.resume();
    await deaf.waitForEnd();
    expect(deaf.text()).toMatch(/^HTTP\/1\.1 200 /);
    expect(deaf.text().length).toBeLessThan(6_000_000);
    // Most, not all: a busy machine may delay some of them.
    expect(middle(honest)).toBeLessThan(Math.max(250, 5 * middle(calm)));
  });
});
