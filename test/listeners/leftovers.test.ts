import { existsSync, readdirSync } from 'node:fs';
import { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { queryObjects } from 'node:v8';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { describe, expect, test } from 'vitest';
import { EventStream } from '../../src/listeners/event-stream.ts';
import { Session } from '../../src/listeners/mcp/session.ts';
import { type ManualClock, manualClock } from '../support/clock.ts';
import { sendRequest, serve, type ServedMemory, EVENTUALLY } from '../support/listener.ts';
import { MCP, openSession } from './mcp/mcp-client.ts';

/** `npm run lane:many` uses more. */
const MANY = Number(process.env['HELMDECK_TEST_CONNECTIONS'] ?? 100);
const AT_ONCE = 100;

const FDS = '/proc/self/fd';

const openNow = (clock: ManualClock) => ({
  sockets: process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length,
  timers: clock.pendingTimers,
});

/**
 * Counts all reachable objects of connections, streams and sessions. Counting blocks the process, for seconds on a busy machine, so
 * tests may wait only for `openNow`.
 */
const counts = (clock: ManualClock) => ({
  ...openNow(clock),
  files: existsSync(FDS) ? readdirSync(FDS).length : 0,
  answers: queryObjects(ServerResponse, { format: 'count' }),
  streams: queryObjects(EventStream, { format: 'count' }),
  sessions: queryObjects(Session, { format: 'count' }),
  servers: queryObjects(Server, { format: 'count' }),
});

interface Visit {
  readonly port: number;
  readonly says: string | undefined;
  /** Disconnects when this text has arrived, or at once. */
  readonly until?: string;
  readonly how: 'in order' | 'at once' | 'by a reset';
}

/** Connects and disconnects. Resolves with the received text when the connection has closed. */
function visit({ port, says, until, how }: Visit): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let heard = '';
  const leave = (): void => {
    if (how === 'by a reset') socket.resetAndDestroy();
    else if (how === 'at once') socket.destroy();
    else socket.end();
  };
  const socket = connect(port, '127.0.0.1', () => {
    if (says !== undefined) socket.write(says);
    if (until === undefined) leave();
  });
  socket.on('data', (part) => {
    const before = heard.includes(until ?? '');
    heard += part.toString('latin1');
    if (until !== undefined && !before && heard.includes(until)) leave();
  });
  socket.on('error', () => undefined).on('close', () => resolve(heard));
  return promise;
}

/** Runs many visits after a warm-up. Returns the counts before and after. */
async function many(clock: ManualClock, visited: (index: number) => Promise<unknown>) {
  const round = (from: number) => Promise.all(Array.from({ length: AT_ONCE }, (_, index) => visited(from + index)));
  const timers = clock.pendingTimers;
  const gone = async (): Promise<void> => {
    await expect.poll(() => clock.pendingTimers, { ...EVENTUALLY, interval: 1 }).toBeLessThanOrEqual(timers + AT_ONCE / 5);
  };
  for (const from of [0, AT_ONCE]) {
    await round(from);
    await gone();
  }
  const rest = async (): Promise<void> => {
    await expect.poll(() => openNow(clock), EVENTUALLY).toEqual({ timers, sockets: 0 });
  };
  await rest();
  const before = counts(clock);
  for (let from = 0; from < MANY; from += AT_ONCE) {
    await round(from);
    await gone();
  }
  await rest();
  return { before, after: counts(clock) };
}

const get = ({ port }: ServedMemory, path: string, token: string, more = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`;

const tokensOf = (served: ServedMemory) => Promise.all(Array.from({ length: 4 }, (_, index) => served.token(`subject-${index}`)));

const HOW = ['by a reset', 'at once', 'in order'] as const;

describe(`${MANY} visits leave no socket, file, timer, response, stream or session behind`, { timeout: 600_000 }, () => {
  test('connections, half of them silent or sending garbage', async () => {
    const clock = manualClock();
    const served = await serve({ clock });
    const { port, owner, url } = served;
    const rubbish = [
      'hello\r\n\r\n',
      '\x16\x03\x01\x00\xa5\x01',
      'GET / HTTP/1.1\r\nHost',
      'POST /api/v1/memory/store HTTP/1.1\r\n',
    ];
    const heard = new Set<string>();
    const asks = (token: string, status: number) => async (how: Visit['how']) =>
      heard.add(
        `${status}: ${(await visit({ port, says: get(served, '/api/v1/memory', token), until: '}', how })).slice(0, 13)}`,
      );
    const sorts: readonly ((how: Visit['how'], index: number) => Promise<unknown>)[] = [
      (how) => visit({ port, says: undefined, how }),
      (how, index) => visit({ port, says: rubbish[(index >> 2) % rubbish.length], how }),
      asks(owner, 200),
      asks('x', 401),
    ];
    const { before, after } = await many(
      clock,
      (index) => sorts[index % sorts.length]?.(HOW[index % HOW.length] ?? 'in order', index) ?? Promise.resolve(),
    );
    expect(after).toEqual(before);
    expect([...heard].toSorted()).toEqual(['200: HTTP/1.1 200 ', '401: HTTP/1.1 401 ']);
    expect((await sendRequest(url, '/healthz')).status).toBe(200);
  });

  test.each(['/api/v1/events', `${MCP}/sse`])('streams of %s', async (path) => {
    const clock = manualClock();
    const served = await serve({ clock });
    const tokens = await tokensOf(served);
    const { before, after } = await many(clock, (index) =>
      visit({
        port: served.port,
        says: get(served, path, tokens[index % tokens.length] ?? ''),
        how: HOW[index % HOW.length] ?? 'in order',
        // Half of them do not even wait for the first data.
        ...(index % 2 === 0 && { until: path.endsWith('/sse') ? 'sessionId' : 'stream open' }),
      }),
    );
    expect(after).toEqual(before);
  });

  test(`streams of sessions of ${MCP}`, async () => {
    const clock = manualClock();
    const served = await serve({ clock });
    const tokens = await tokensOf(served);
    const sessions = await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, index) => {
        const token = tokens[index % tokens.length] ?? '';
        return { token, id: (await openSession(served, token)).session };
      }),
    );
    const { before, after } = await many(clock, (index) => {
      const { token = '', id = '' } = sessions[index % AT_ONCE] ?? {};
      return visit({
        port: served.port,
        says: get(served, MCP, token, `Mcp-Session-Id: ${id}\r\n`),
        how: HOW[index % HOW.length] ?? 'in order',
        ...(index % 2 === 0 && { until: 'stream open' }),
      });
    });
    expect(after).toEqual(before);
    expect(before.sessions).toBe(AT_ONCE);
  });
});
