import { describe, expect, test } from 'vitest';
import { CONNECTION_LIMITS } from '../../src/listeners/limits.ts';
import { DAY, manualClock, HOUR } from '../support/clock.ts';
import { sendRequest, openConnection, serve, type ServedMemory, EVENTUALLY } from '../support/listener.ts';
import { measureWait } from '../support/work.ts';

async function follow({ port }: ServedMemory, token: string) {
  const line = await openConnection(port);
  line.write(`GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  return line;
}

const opened = async (all: ServedMemory, token: string) => {
  const line = await follow(all, token);
  await line.waitFor('stream open');
  return line;
};

const store = ({ url }: ServedMemory, token: string, key = 'a') =>
  sendRequest(url, '/api/v1/memory/store', { token, body: { key, value: `${Math.random()}` } });

const told = (text: string) => [...text.matchAll(/data: (.*)\n\n/g)].map(([, data = '']) => JSON.parse(data) as object);

async function revoke({ tokens }: ServedMemory, subject: string) {
  const record = (await tokens.list()).tokens.find((each) => each.subject === subject);
  await tokens.revoke({ id: record?.id ?? '', unrecorded: false });
}

describe('events (R-REST-11)', () => {
  test('report changes of the own namespace only', async () => {
    const all = await serve();
    const [me, you] = [await all.token('me'), await all.token('you')];
    const [mine, yours] = [await opened(all, me), await opened(all, you)];
    expect(mine.text()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Content-Type: text\/event-stream\r\n/);
    await store(all, me);
    await mine.waitFor('"fact"');
    await mine.waitFor('"activity"');
    expect(told(mine.text())).toEqual(
      expect.arrayContaining([
        { namespace: 'me', kind: 'fact' },
        { namespace: 'me', kind: 'activity' },
      ]),
    );
    expect(told(yours.text())).toEqual([]);
    await store(all, you);
    await yours.waitFor('"fact"');
    expect(yours.text()).not.toContain('"me"');
    expect(mine.text()).not.toContain('"you"');
  });

  test('do not contain the changed data', async () => {
    const all = await serve();
    const line = await opened(all, all.owner);
    await store(all, all.owner, 'a-telling-key');
    expect(await line.waitFor('"fact"')).not.toContain('telling');
  });

  test('report expiry too', async () => {
    const clock = manualClock();
    const all = await serve({ clock });
    const line = await opened(all, all.owner);
    await sendRequest(all.url, '/api/v1/memory/store', { token: all.owner, body: { key: 'a', value: 'b', ttl_seconds: 3600 } });
    await line.waitFor('"fact"');
    const before = told(line.text()).length;
    await clock.advance(HOUR + 1000);
    await expect.poll(() => told(line.text()).length, EVENTUALLY).toBeGreaterThan(before);
  });

  test('send keep-alives', async () => {
    const clock = manualClock();
    const all = await serve({ clock });
    const line = await opened(all, all.owner);
    await clock.advance(3 * CONNECTION_LIMITS.keepAliveMs);
    await expect.poll(() => line.text().split(': keep-alive').length, EVENTUALLY).toBe(4);
  });
});

describe('a stream', () => {
  test('ends within 2 s after its token is revoked, and other streams continue (R-AUTH-09)', async () => {
    const all = await serve();
    const [you, me] = [await all.token('you'), await all.token('me')];
    const [other, own] = [await opened(all, you), await opened(all, me)];
    const waited = await measureWait(async () => {
      await revoke(all, 'you');
      await other.waitForEnd();
    });
    expect(waited).toBeLessThan(2000);
    expect(other.text()).toMatch(/\r\n0\r\n\r\n$/);
    await store(all, me);
    await own.waitFor('"fact"');
    expect((await sendRequest(all.url, '/api/v1/events', { token: you })).status).toBe(401);
  });

  test('ends when its token expires', async () => {
    const clock = manualClock();
    const all = await serve({ clock });
    const line = await opened(all, await all.token('you'));
    await clock.advance(DAY - 1000);
    expect(line.text()).not.toMatch(/\r\n0\r\n\r\n$/);
    await clock.advance(2000);
    await line.waitForEnd();
  });

  test('ends soon after the clock jumps past the expiry of its token', async () => {
    const clock = manualClock();
    const all = await serve({ clock });
    const line = await opened(all, await all.token('you'));
    clock.jump(2 * DAY);
    await clock.advance(CONNECTION_LIMITS.keepAliveMs);
    await line.waitForEnd();
    expect(line.text()).toMatch(/\r\n0\r\n\r\n$/);
  });

  test('counts towards the limit of 64 streams per subject', async () => {
    const all = await serve();
    const [me, you] = [await all.token('me'), await all.token('you')];
    const lines = await Promise.all(Array.from({ length: CONNECTION_LIMITS.streams }, () => opened(all, me)));
    const refused = await sendRequest(all.url, '/api/v1/events', { token: me });
    expect([refused.status, refused.json.error]).toEqual([429, 'rate_limited']);
    await opened(all, you);
    lines[0]?.socket.destroy();
    await expect.poll(async () => (await follow(all, me)).waitFor(/^HTTP\/1\.1 \d+/), EVENTUALLY).toMatch(/^HTTP\/1\.1 200/);
  });

  test('is closed if the client does not read it', async () => {
    const changes = Promise.withResolvers<(changed: { namespace: { subject: string }; kind: 'fact' | 'audit' }) => void>();
    const clock = manualClock();
    const all = await serve({
      clock,
      onChange(hear) {
        changes.resolve(hear);
        return { [Symbol.dispose]: () => undefined };
      },
    });
    const line = await opened(all, all.owner);
    const honest = await opened(all, all.owner);
    line.socket.pause();
    const hear = await changes.promise;
    const [before, open] = [process.memoryUsage().rss, clock.pendingTimers];
    for (let turn = 0; turn < 5000 && clock.pendingTimers === open; turn += 1) {
      for (let more = 0; more < 500; more += 1) hear({ namespace: { subject: 'me' }, kind: 'fact' });
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(clock.pendingTimers).toBe(open - 1);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
    expect(honest.socket.closed).toBe(false);
    hear({ namespace: { subject: 'me' }, kind: 'audit' });
    await honest.waitFor('"audit"');
    line.socket.resume();
    await line.waitForEnd();
    expect(line.text()).not.toContain('"audit"');
  });

  test('releases its resources, however it ends', async () => {
    const clock = manualClock();
    const all = await serve({ clock });
    const before = clock.pendingTimers;
    const lines = await Promise.all(Array.from({ length: 30 }, () => opened(all, all.owner)));
    lines.forEach(({ socket }, index) => (index % 2 === 0 ? socket.resetAndDestroy() : socket.end()));
    await expect.poll(() => clock.pendingTimers, EVENTUALLY).toBe(before);
  });

  test('ends when the program stops', async () => {
    const all = await serve();
    const line = await opened(all, all.owner);
    await all.listener.close();
    await line.waitForEnd();
    expect(line.text()).toMatch(/\r\n0\r\n\r\n$/);
  });
});
