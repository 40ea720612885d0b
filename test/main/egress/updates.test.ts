import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import { operations } from '../../../src/contract/operations.ts';
import { updatesAt } from '../../../src/main/egress/updates.ts';
import { readBuildInfo } from '../../../src/main/roots/installation.ts';
import { type FakeInternet, startFakeInternet, PUBLIC_IPV4 } from '../../support/fake-internet.ts';
import { sendRequest, serve, type ServedMemory } from '../../support/listener.ts';
import { aCaller, theOwner } from '../../support/memory.ts';

const HOST = 'releases.example.com';
const PLACE = `https://${HOST}/newest.json`;
const LINK = 'https://releases.example.com/1.10.0';

let world: FakeInternet;
let served: ServedMemory;

/** The program, which is 1.2.3, with a place that answers so. */
const answers = (answer: unknown, status = 200): void =>
  world.respond(HOST, (_request, response) =>
    response.writeHead(status).end(typeof answer === 'string' ? answer : JSON.stringify(answer)),
  );
const check = () => served.perform(theOwner, 'checkForUpdates', {});

beforeEach(async () => {
  world = await startFakeInternet();
  served = await serve({ updates: updatesAt(PLACE, world.egress) });
});

describe('a check for updates', () => {
  test('asks the one place of the build, when it is wanted and not before (R-NEWS-01)', async () => {
    answers({ version: '1.10.0', url: LINK, more: true });
    const settings = operations.settings.output().parse(await served.perform(theOwner, 'settings', {}));
    expect(settings.updates).toBe(HOST);
    expect(world.requests).toEqual([]);
    expect(await check()).toEqual({ version: '1.2.3', newer: { version: '1.10.0', url: LINK } });
    expect(world.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([`GET ${PLACE}`]);
    // Neither which version asks, nor who, nor on what.
    expect(world.requests[0]?.headers).toEqual({
      host: HOST,
      'user-agent': 'Helmdeck-Memory',
      'accept-encoding': 'identity',
      accept: 'application/json',
      connection: expect.any(String) as string,
    });
  });

  test('that nobody waits for any more is no fault of ours', async () => {
    const gone = new AbortController();
    world.respond(HOST, () => gone.abort());
    const asked = served.perform(theOwner, 'checkForUpdates', {}, { signal: gone.signal });
    await expect(asked).rejects.toMatchObject({
      code: 'cancelled',
      message: expect.stringMatching(/^The request was cancelled/) as string,
    });
  });

  test.each(['1.2.3', '1.2.3-rc.1', '1.2.2', '1.2.3+5'])('finds nothing newer in %s (R-NEWS-02)', async (version) => {
    answers({ version, url: LINK });
    expect(await check()).toEqual({ version: '1.2.3' });
  });

  test.each([
    ['no JSON', '<html>'],
    ['an empty answer', ''],
    ['another document', { tag: 'v2' }],
    ['a version that is none', { version: 'v2.0.0', url: LINK }],
    ['a number that is too long', { version: `${'9'.repeat(40)}.0.0`, url: LINK }],
    ['a link that runs', { version: '2.0.0', url: 'javascript:alert(1)' }],
    ['a link in clear', { version: '2.0.0', url: 'http://releases.example.com/' }],
    ['a link with lines', { version: '2.0.0', url: 'https://releases.example.com/\nPress here' }],
  ])('takes %s for no answer (R-NEWS-02)', async (_what, answer) => {
    answers(answer);
    await expect(check()).rejects.toMatchObject({
      code: 'handler_failed',
      message: `${HOST} sent a response that Helmdeck Memory does not understand. Report this to the provider of Helmdeck Memory.`,
    });
  });

  test.each([
    ['an error', () => answers('', 503), 'responded with status 503'],
    ['far too much', () => answers('x'.repeat(5000)), 'sent more than 4,096 bytes'],
    [
      'a redirect to somebody else',
      () => world.respond(HOST, (_request, response) => response.writeHead(302, { Location: 'https://www.example.org/' }).end()),
      'is not an allowed host',
    ],
    ['an address of this machine', () => world.names.set(HOST, [['127.0.0.1']]), 'resolves to an address that is not public'],
  ])('refuses %s in a sentence (R-NEWS-02)', async (_what, arrange, says) => {
    arrange();
    await expect(check()).rejects.toMatchObject({
      code: 'handler_failed',
      message: expect.stringMatching(new RegExp(`^(?=.*${HOST}).*${says}`)) as string,
    });
    expect(new Set(world.connections).isSubsetOf(new Set([`${PUBLIC_IPV4} 443`]))).toBe(true);
  });

  test('is for the owner alone (R-NEWS-01)', async () => {
    answers({ version: '1.10.0', url: LINK });
    await expect(served.perform(aCaller(), 'checkForUpdates', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
    const refused = await sendRequest(served.url, '/api/v1/updates', { method: 'POST', token: await served.token() });
    expect(refused.status).toBe(403);
    expect(world.requests).toEqual([]);
    const answer = await sendRequest(served.url, '/api/v1/updates', { method: 'POST', token: served.owner, body: {} });
    expect(answer.json).toMatchObject({ version: '1.2.3', newer: { version: '1.10.0' } });
  });
});

test.each(['', 'releases.example.com', 'http://releases.example.com/', 'https://127.0.0.1/', 'https://localhost/', 'file:///x'])(
  'a build with "%s" asks nobody, and says so (R-NEWS-01)',
  async (address) => {
    const updates = updatesAt(address, world.egress);
    expect(updates).toBeUndefined();
    served = await serve({ updates });
    expect(await served.perform(theOwner, 'settings', {})).not.toHaveProperty('updates');
    await expect(check()).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringMatching(/cannot check for updates/) as string,
    });
  },
);

test('the build says where to ask, or nowhere, in package.json', () => {
  const { version, updates } = readBuildInfo();
  expect((JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version).toBe(version);
  expect(updates === '' || updatesAt(updates, world.egress) !== undefined).toBe(true);
});
