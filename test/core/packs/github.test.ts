import type { IncomingMessage, ServerResponse } from 'node:http';
import { beforeEach, describe, expect, test } from 'vitest';
import type { OperationOutput } from '../../../src/contract/operations.ts';
import { openKeychainItems } from '../../../src/core/crypto/keys/keychain.ts';
import { GitHubClient } from '../../../src/core/packs/builtin/github-api.ts';
import { githubPacks } from '../../../src/core/packs/builtin/github.ts';
import { manualClock, MINUTE, SECOND } from '../../support/clock.ts';
import { type FakeInternet, startFakeInternet, PUBLIC_IPV4 } from '../../support/fake-internet.ts';
import { fakeKeychain } from '../../support/keychain.ts';
import { aCaller, openTestMemory, type TestMemory, theOwner } from '../../support/memory.ts';
import { CREDENTIAL } from '../../support/packs.ts';

let internet: FakeInternet;
let memory: TestMemory;

/** A memory with a GitHub token from a setting, in the keychain, or none. */
async function open(token?: string): Promise<void> {
  const clock = manualClock();
  internet = await startFakeInternet({ clock });
  const chain = fakeKeychain();
  const settings = token === undefined ? {} : { github: token };
  memory = await openTestMemory({
    clock,
    packs: { packs: githubPacks(new GitHubClient({ egress: internet.egress, clock })) },
    credentials: { provided: settings, keychain: openKeychainItems('the credential', { load: async () => chain }) },
  });
}

type Result = OperationOutput<'runPack'>;

const run = (name: string, input: object, caller = aCaller()): Promise<Result> =>
  memory.as(caller)('runPack', { name, input: { ...input } });
const list = (input: object, caller = aCaller()): Promise<Result> =>
  run('github.list_issues', { repo: 'octo/demo', ...input }, caller);
const get = (input: object, caller = aCaller()): Promise<Result> =>
  run('github.get_issue', { repo: 'octo/demo', ...input }, caller);

/** An issue as GitHub sends it, including fields that the pack ignores. */
const issue = (number: number, over: object = {}) => ({
  id: 9_000_000 + number,
  number,
  title: `Issue ${number}`,
  state: 'open',
  labels: [{ id: 1, name: 'bug', color: 'f00' }, 'old'],
  user: { login: 'ada', avatar_url: 'https://avatars.example.com/ada' },
  comments: 3,
  created_at: '2026-05-01T10:00:00Z',
  updated_at: '2026-05-02T10:00:00Z',
  html_url: `https://github.com/octo/demo/issues/${number}`,
  body: 'It does not work.',
  ...over,
});

const expectedIssue = (number: number) => ({
  number,
  title: `Issue ${number}`,
  state: 'open',
  labels: ['bug', 'old'],
  author: 'ada',
  comments: 3,
  created_at: '2026-05-01T10:00:00Z',
  updated_at: '2026-05-02T10:00:00Z',
  url: `https://github.com/octo/demo/issues/${number}`,
});

const answer = (answering: (request: IncomingMessage, response: ServerResponse) => void): void =>
  internet.respond('api.github.com', answering);
const json = (response: ServerResponse, body: unknown, headers: Record<string, string> = {}): void =>
  void response.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8', ...headers }).end(JSON.stringify(body));
const fails = (status: number, headers: Record<string, string> = {}): void =>
  answer((_, response) => response.writeHead(status, headers).end(`{"message":"no, ${CREDENTIAL}"}`));

beforeEach(() => open());

describe('github.list_issues', () => {
  test('returns the useful fields of issues, and leaves out pull requests', async () => {
    answer((_, response) => json(response, [issue(3), issue(2, { pull_request: { url: 'x' } }), issue(1, { user: null })]));
    expect((await list({})).output).toEqual({
      repo: 'octo/demo',
      issues: [expectedIssue(3), { ...expectedIssue(1), author: 'ghost' }],
    });
    expect(internet.connections).toEqual([`${PUBLIC_IPV4} 443`]);
  });

  test('sends requests as GitHub documents them, with every part escaped', async () => {
    answer((_, response) => json(response, []));
    await list({ state: 'all', labels: ['good first issue', 'a&state=closed'], since: '2026-05-01T00:00:00Z', limit: 7 });
    expect(internet.requests).toMatchObject([
      {
        method: 'GET',
        url: 'https://api.github.com/repos/octo/demo/issues?state=all&per_page=14&labels=good+first+issue%2Ca%26state%3Dclosed&since=2026-05-01T00%3A00%3A00Z',
        headers: {
          accept: 'application/vnd.github+json',
          'user-agent': 'Helmdeck-Memory',
          'x-github-api-version': '2022-11-28',
        },
      },
    ]);
    expect(internet.requests[0]?.headers.authorization).toBeUndefined();
  });

  test('follows its pages up to the limit, and says when there are more', async () => {
    answer(({ url = '' }, response) => {
      const page = Number(/[?&]page=(\d+)$/.exec(url)?.[1] ?? 1);
      const next = `<https://api.github.com/repositories/1/issues?page=${page + 1}>; rel="next", <https://api.github.com/x?page=9>; rel="last"`;
      json(
        response,
        [issue(page * 2), issue(page * 2 + 1)],
        page < 4 ? { Link: next } : { Link: '<https://api.github.com/x?page=1>; rel="first"' },
      );
    });
    const numbers = async (limit: number) => {
      const { issues, more } = (await list({ limit })).output as { issues: { number: number }[]; more?: true };
      return [issues.map(({ number }) => number), more];
    };
    expect(await numbers(3)).toEqual([[2, 3, 4], true]);
    expect(await numbers(8)).toEqual([[2, 3, 4, 5, 6, 7, 8, 9], undefined]);
    expect(await numbers(500)).toEqual([[2, 3, 4, 5, 6, 7, 8, 9], undefined]);
    expect(internet.requests).toHaveLength(2 + 4 + 4);
  });

  test('stops if the pages never end', async () => {
    answer((_, response) =>
      json(response, [issue(1, { pull_request: {} })], { Link: '<https://api.github.com/x?page=2>; rel="next"' }),
    );
    expect((await list({})).output).toEqual({ repo: 'octo/demo', issues: [], more: true });
    expect(internet.requests).toHaveLength(20);
  });

  test.each([
    'https://evil.example.com/x',
    'https://api.github.com.evil.example.com/x',
    'https://api.github.com:8443/x',
    'http://api.github.com/x',
  ])('requests no page from another host: %s', async (next) => {
    await open(CREDENTIAL);
    answer((_, response) => json(response, [issue(1)], { Link: `<${next}>; rel="next"` }));
    await expect(list({})).rejects.toMatchObject({
      code: 'handler_failed',
      message: expect.stringContaining('another host') as string,
    });
    expect(internet.requests).toHaveLength(1);
    expect(internet.trappedConnections()).toBe(0);
  });

  // prettier-ignore
  test.each([
    '', 'octo', 'octo/', '/demo', 'octo/demo/', 'octo/demo/issues', '../../user', 'octo/..', 'octo/.', '../demo', './demo',
    'octo/de mo', 'octo/demo?x=1', 'octo/demo#x', 'octo/demo&state=all', 'octo/%2e%2e', 'octo\\demo', 'octo/dèmo',
    '-octo/demo', 'octo/demo\n', `${'o'.repeat(40)}/demo`, `octo/${'d'.repeat(101)}`, 'https://github.com/octo/demo',
  ])('refuses the repository %j', async (repo) => {
    for (const name of ['github.list_issues', 'github.get_issue']) {
      await expect(run(name, { repo, ...(name.endsWith('issue') && { number: 1 }) })).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringContaining('owner/name') as string,
      });
    }
    expect(internet.connections).toEqual([]);
  });

  test.each([
    { state: 'new' },
    { labels: ['a,b'] },
    { labels: 'bug' },
    { labels: [''] },
    { since: 'yesterday' },
    { limit: 0 },
    { limit: 501 },
    { page: 2 },
  ])('refuses the input %j', async (input) => {
    await expect(list(input)).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('sends one request for equal calls of a subject within five minutes', async () => {
    answer((_, response) => json(response, [issue(1)]));
    expect(await list({})).toMatchObject({ cached: false });
    expect(await list({ state: 'open', limit: 30 })).toMatchObject({ cached: true, output: { issues: [expectedIssue(1)] } });
    expect(await list({}, aCaller({ subject: 'other' }))).toMatchObject({ cached: false });
    await memory.clock.advance(5 * MINUTE);
    expect(await list({})).toMatchObject({ cached: false });
    expect(internet.requests).toHaveLength(3);
  });

  test('sends one request for fifty equal concurrent calls (R-PACK-05)', async () => {
    answer((_, response) => json(response, [issue(1)]));
    const inputs = [
      { state: 'open', limit: 3 },
      { limit: 3, state: 'open' },
    ] as const;
    const all = await Promise.all(Array.from({ length: 50 }, (_each, index) => list(inputs[index % 2] ?? {})));
    expect(all.filter(({ cached }) => cached)).toHaveLength(49);
    expect(internet.requests).toHaveLength(1);
  });

  test('caches nothing that GitHub marks as private, or that looks like a credential (R-PACK-04)', async () => {
    for (const [body, headers] of [
      [[issue(1)], { 'Cache-Control': 'private, max-age=60, s-maxage=60' }],
      [[issue(1)], { 'Set-Cookie': 'logged_in=no' }],
      [[issue(1, { title: `use ${CREDENTIAL}` })], {}],
    ] as const) {
      answer((_, response) => json(response, body, headers));
      for (let time = 0; time < 2; time += 1) expect(await list({})).toMatchObject({ cached: false });
    }
    expect(await memory.store.space({ subject: 'me' }, 'cache').count()).toBe(0);
  });
});

describe('github.get_issue', () => {
  test('returns one issue with its text, and whether it is a pull request', async () => {
    answer(({ url }, response) => json(response, issue(7, url?.endsWith('/8') ? { pull_request: {}, body: null } : {})));
    expect((await get({ number: 7 })).output).toEqual({ repo: 'octo/demo', ...expectedIssue(7), body: 'It does not work.' });
    expect((await get({ number: 8 })).output).toMatchObject({ body: '', pull_request: true });
    expect(internet.requests.map(({ url }) => url)).toEqual(
      [7, 8].map((number) => `https://api.github.com/repos/octo/demo/issues/${number}`),
    );
  });

  test('truncates a long text, never within a character', async () => {
    answer((_, response) => json(response, issue(7, { body: `${'x'.repeat(19_999)}😀 and more` })));
    expect((await get({ number: 7 })).output).toMatchObject({ body: 'x'.repeat(19_999), body_truncated: true });
  });

  test('follows an issue that moved within GitHub with the credential, and never to another host', async () => {
    await open(CREDENTIAL);
    answer(({ url }, response) =>
      url === '/repositories/5/issues/7'
        ? json(response, issue(7))
        : response
            .writeHead(301, { Location: url?.endsWith('/7') ? '/repositories/5/issues/7' : 'https://www.example.com/' })
            .end(),
    );
    expect(await get({ number: 7 })).toMatchObject({ output: { number: 7 } });
    expect(internet.requests.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${CREDENTIAL}`,
      `Bearer ${CREDENTIAL}`,
    ]);
    await expect(get({ number: 8 })).rejects.toMatchObject({ code: 'handler_failed' });
    expect(internet.requests).toHaveLength(3);
  });

  test.each([0, -1, 1.5, '7', 2 ** 31])('refuses the number %j', async (number) => {
    await expect(get({ number })).rejects.toMatchObject({ code: 'invalid_input' });
  });
});

describe('when GitHub refuses', () => {
  test.each([
    [404, 'no such repository or issue', 'the repository is private and no credential for GitHub is set'],
    [403, 'denied access', 'no credential for GitHub is set'],
    [451, 'denied access', 'the repository is blocked'],
    [410, 'The issue no longer exists', 'disabled'],
    [422, 'rejected the request', 'Check the labels'],
    [401, 'requires a credential', 'credential set github'],
    [500, 'status 500', 'try again later'],
    [304, 'status 304', 'try again later'],
  ])('with status %i, the failure names the possible causes', async (status, ...words) => {
    fails(status);
    const error = await get({ number: 1 }).catch((one: unknown) => one);
    expect(error).toMatchObject({ code: 'handler_failed' });
    for (const word of words) expect((error as Error).message).toContain(word);
    expect((error as Error).message).not.toContain(CREDENTIAL);
  });

  test.each(['', 'not JSON', '[]', '{"number":"7"}', '[{"number":1}]'])(
    'or sends an invalid response, the failure says that: %j',
    async (body) => {
      answer((_, response) => response.end(body));
      await expect(get({ number: 1 })).rejects.toMatchObject({
        code: 'handler_failed',
        message: expect.stringContaining('form') as string,
      });
    },
  );

  test('the credential is never reported or recorded (R-PACK-16)', async () => {
    await open(CREDENTIAL);
    const heard: unknown[] = [];
    for (const status of [200, 301, 401, 403, 404, 429, 500]) {
      fails(status);
      heard.push(await get({ number: status }).catch((error: Error) => [error.message, error.name]));
    }
    answer(({ socket }) => socket.destroy());
    heard.push(await get({ number: 2 }).catch((error: Error) => [error.message, error.name]));
    heard.push(await memory.as(theOwner)('credentials', {}), await memory.as(theOwner)('packs', {}));
    for (const kind of ['audit', 'cache', 'pack', 'activity'] as const) {
      heard.push(await memory.store.space({ subject: 'me' }, kind).page({ sort: 'updated', limit: 100 }));
    }
    expect(JSON.stringify(heard)).not.toContain(CREDENTIAL.slice(4));
    expect(
      internet.requests.every(
        ({ headers, url }) => !url.includes(CREDENTIAL) && headers.authorization === `Bearer ${CREDENTIAL}`,
      ),
    ).toBe(true);
  });
});

describe('the limits of GitHub (R-PACK-17)', () => {
  const resets = (seconds: number): Record<string, string> => {
    // The clock of GitHub differs from the local clock.
    const now = Date.UTC(2031, 0, 1);
    return {
      Date: new Date(now).toUTCString(),
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': `${now / SECOND + seconds}`,
    };
  };

  test.each([
    { what: '403 with nothing remaining', status: 403, headers: resets(599), rest: 600 },
    { what: '429 with nothing remaining', status: 429, headers: resets(59), rest: 60 },
    { what: '403 with Retry-After', status: 403, headers: { 'Retry-After': '90' }, rest: 90 },
    { what: '429 with Retry-After', status: 429, headers: { 'Retry-After': '5', ...resets(900) }, rest: 5 },
    { what: '429 without headers', status: 429, headers: {}, rest: 60 },
    { what: '403 with a reset time in the past', status: 403, headers: resets(-1000), rest: 1 },
    { what: '429 with a very long Retry-After', status: 429, headers: { 'Retry-After': '999999999' }, rest: 3600 },
  ])(
    'after $what, no request is sent until the limit ends, and the failure names that time',
    async ({ status, headers, rest }) => {
      fails(status, headers);
      const until = new Date(memory.clock.now() + rest * SECOND).toISOString();
      const exhausted = {
        code: 'handler_failed',
        message: expect.stringContaining(`try again after ${until}`) as string,
      };
      await expect(list({})).rejects.toMatchObject({ ...exhausted, retryAfter: rest });
      answer((_, response) => json(response, [issue(1)]));
      await memory.clock.advance(rest * SECOND - 1);
      await expect(list({})).rejects.toMatchObject({ ...exhausted, retryAfter: 1 });
      await expect(get({ number: 1 })).rejects.toMatchObject(exhausted);
      await expect(list({}, aCaller({ subject: 'other' }))).rejects.toMatchObject(exhausted);
      expect(internet.requests).toHaveLength(1);
      await memory.clock.advance(1);
      expect(await list({})).toMatchObject({ output: { issues: [expectedIssue(1)] } });
    },
  );

  test('the last response before a limit is used, and announces the limit', async () => {
    answer((_, response) => json(response, [issue(1)], resets(599)));
    expect(await list({})).toMatchObject({ output: { issues: [expectedIssue(1)] } });
    await expect(get({ number: 1 })).rejects.toMatchObject({ code: 'handler_failed', retryAfter: 600 });
    expect(internet.requests).toHaveLength(1);
    await memory.clock.advance(600 * SECOND);
    answer((_, response) => json(response, issue(1)));
    expect(await get({ number: 1 })).toMatchObject({ output: { number: 1 } });
  });

  test('between the pages of one request, the pages read so far are returned and not cached', async () => {
    answer((_, response) =>
      json(response, [issue(1)], { ...resets(599), Link: '<https://api.github.com/x?page=2>; rel="next"' }),
    );
    expect(await list({})).toMatchObject({ output: { issues: [expectedIssue(1)], more: true } });
    expect(internet.requests).toHaveLength(1);
    await expect(list({})).rejects.toMatchObject({ retryAfter: 600 });
  });

  test('a 403 with requests left is not a limit', async () => {
    fails(403, { 'X-RateLimit-Remaining': '12', 'X-RateLimit-Reset': '1' });
    await expect(list({})).rejects.toThrow(/denied access/);
    await expect(list({})).rejects.toThrow(/denied access/);
    expect(internet.requests).toHaveLength(2);
  });

  test('cached outputs are still returned meanwhile', async () => {
    answer((_, response) => json(response, [issue(1)]));
    await list({});
    fails(429);
    await expect(list({ state: 'all' })).rejects.toThrow(/rate limit/);
    expect(await list({})).toMatchObject({ cached: true });
  });

  test('are separate for each credential', async () => {
    const set = (secret: string) => memory.as(theOwner)('setCredential', { name: 'github', secret });
    fails(403, resets(3000));
    await expect(list({})).rejects.toThrow(/for requests without a credential is reached; .*credential set github/);
    await set('first-token');
    await expect(list({})).rejects.toThrow(/for the owner's credential is reached/);
    await expect(list({})).rejects.toThrow(/is reached/);
    expect(internet.requests).toHaveLength(2);
    await set('second-token');
    answer((_, response) => json(response, [issue(1)]));
    expect(await list({})).toMatchObject({ output: { issues: [expectedIssue(1)] } });
    expect(internet.requests.map(({ headers }) => headers.authorization)).toEqual([
      undefined,
      'Bearer first-token',
      'Bearer second-token',
    ]);
  });

  test('are respected between the pages of one request', async () => {
    answer(({ url }, response) =>
      url?.includes('page=2')
        ? response.writeHead(403, { 'Retry-After': '60' }).end()
        : json(response, [issue(1)], { Link: '<https://api.github.com/x?page=2>; rel="next"' }),
    );
    await expect(list({})).rejects.toThrow(/rate limit/);
    expect(internet.requests).toHaveLength(2);
  });
});
