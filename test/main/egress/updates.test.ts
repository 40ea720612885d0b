import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import { operations } from '../../../src/contract/operations.ts';
import { updatesAt } from '../../../src/main/egress/updates.ts';
import { readBuildInfo } from '../../../src/main/roots/installation.ts';
import { type FakeInternet, startFakeInternet, PUBLIC_IPV4 } from '../../support/fake-internet.ts';
import { sendRequest, serve, type ServedMemory } from '../../support/listener.ts';
import { aCaller, theOwner } from '../../support/memory.ts';

const HOST = 'releases.example.com';
const UPDATES_URL = `https://${HOST}/newest.json`;
const LINK = 'https://releases.example.com/1.10.0';

let internet: FakeInternet;
let served: ServedMemory;

/** Sets the response of the update server. The program has version 1.2.3. */
const answers = (answer: unknown, status = 200): void =>
  internet.respond(HOST, (_request, response) =>
    response.writeHead(status).end(typeof answer === 'string' ? answer : JSON.stringify(answer)),
  );
const check = () => served.perform(theOwner, 'checkForUpdates', {});

beforeEach(async () => {
  internet = await startFakeInternet();
  served = await serve({ updates: updatesAt(UPDATES_URL, internet.egress) });
});

describe('a check for updates', () => {
  test('sends one request to the address in the build, and only when the owner asks (R-NEWS-01)', async () => {
    answers({ version: '1.10.0', url: LINK, more: true });
    const settings = operations.settings.output().parse(await served.perform(theOwner, 'settings', {}));
    expect(settings.updates).toBe(HOST);
    expect(internet.requests).toEqual([]);
    expect(await check()).toEqual({ version: '1.2.3', newer: { version: '1.10.0', url: LINK } });
    expect(internet.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([`GET ${UPDATES_URL}`]);
    // The request reveals neither the version, nor the user, nor the system.
    expect(internet.requests[0]?.headers).toEqual({
      host: HOST,
      'user-agent': 'Helmdeck-Memory',
      'accept-encoding': 'identity',
      accept: 'application/json',
      connection: expect.any(String) as string,
    });
  });

  test('that its caller cancels is reported as cancelled', async () => {
    const caller = new AbortController();
    internet.respond(HOST, () => caller.abort());
    const request = served.perform(theOwner, 'checkForUpdates', {}, { signal: caller.signal });
    await expect(request).rejects.toMatchObject({
      code: 'cancelled',
      message: expect.stringMatching(/^The request was cancelled/) as string,
    });
  });

  test.each(['1.2.3', '1.2.3-rc.1', '1.2.2', '1.2.3+5'])('finds no newer version in %s (R-NEWS-02)', async (version) => {
    answers({ version, url: LINK });
    expect(await check()).toEqual({ version: '1.2.3' });
  });

  test.each([
    ['a response that is not JSON', '<html>'],
    ['an empty response', ''],
    ['another document', { tag: 'v2' }],
    ['an invalid version', { version: 'v2.0.0', url: LINK }],
    ['a version number that is too long', { version: `${'9'.repeat(40)}.0.0`, url: LINK }],
    ['a link that runs a script', { version: '2.0.0', url: 'javascript:alert(1)' }],
    ['a link without encryption', { version: '2.0.0', url: 'http://releases.example.com/' }],
    ['a link with a line break', { version: '2.0.0', url: 'https://releases.example.com/\nPress here' }],
  ])('refuses %s (R-NEWS-02)', async (_what, answer) => {
    answers(answer);
    await expect(check()).rejects.toMatchObject({
      code: 'handler_failed',
      message: `${HOST} sent a response that Helmdeck Memory does not understand. Report this to the provider of Helmdeck Memory.`,
    });
  });

  test.each([
    ['an error', () => answers('', 503), 'responded with status 503'],
    ['a response that is too large', () => answers('x'.repeat(5000)), 'sent more than 4,096 bytes'],
    [
      'a redirect to another host',
      () =>
        internet.respond(HOST, (_request, response) => response.writeHead(302, { Location: 'https://www.example.org/' }).end()),
      'is not an allowed host',
    ],
    ['an address of this machine', () => internet.names.set(HOST, [['127.0.0.1']]), 'resolves to an address that is not public'],
  ])('reports %s (R-NEWS-02)', async (_what, arrange, says) => {
    arrange();
    await expect(check()).rejects.toMatchObject({
      code: 'handler_failed',
      message: expect.stringMatching(new RegExp(`^(?=.*${HOST}).*${says}`)) as string,
    });
    expect(new Set(internet.connections).isSubsetOf(new Set([`${PUBLIC_IPV4} 443`]))).toBe(true);
  });

  test('is allowed to the owner only (R-NEWS-01)', async () => {
    answers({ version: '1.10.0', url: LINK });
    await expect(served.perform(aCaller(), 'checkForUpdates', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
    const refused = await sendRequest(served.url, '/api/v1/updates', { method: 'POST', token: await served.token() });
    expect(refused.status).toBe(403);
    expect(internet.requests).toEqual([]);
    const answer = await sendRequest(served.url, '/api/v1/updates', { method: 'POST', token: served.owner, body: {} });
    expect(answer.json).toMatchObject({ version: '1.2.3', newer: { version: '1.10.0' } });
  });
});

test.each(['', 'releases.example.com', 'http://releases.example.com/', 'https://127.0.0.1/', 'https://localhost/', 'file:///x'])(
  'a build with the update address "%s" sends no request, and says so (R-NEWS-01)',
  async (address) => {
    const updates = updatesAt(address, internet.egress);
    expect(updates).toBeUndefined();
    served = await serve({ updates });
    expect(await served.perform(theOwner, 'settings', {})).not.toHaveProperty('updates');
    await expect(check()).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringMatching(/cannot check for updates/) as string,
    });
  },
);

test('package.json contains the version of the build, and a valid update address or none', () => {
  const { version, updates } = readBuildInfo();
  expect((JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version).toBe(version);
  expect(updates === '' || updatesAt(updates, internet.egress) !== undefined).toBe(true);
});
