import { describe, expect, test } from 'vitest';
import type { TokenScope } from '../../src/contract/token.ts';
import { sendRequest, type HttpRequest, serve, EVENTUALLY } from '../support/listener.ts';
import { aPack } from '../support/packs.ts';

const MAY: TokenScope[] = ['memory:read', 'packs:run'];

async function served(handler = aPack(({ input: { what } }) => ({ said: what.toUpperCase() }))) {
  const all = await serve({ packs: { packs: [handler] } });
  const token = await all.token('me', MAY);
  const at = (method: string, path: string, asking: HttpRequest = {}) =>
    sendRequest(all.url, `/api/v1${path}`, { method, token, ...asking });
  return { ...all, at };
}

const shouting = {
  id: 'shout',
  title: 'Shout',
  steps: [
    { id: 'first', pack: 'test.echo', input: { what: '${{ inputs.word }}' } },
    { id: 'second', pack: 'test.echo', input: { what: '${{ steps.first.output.said }}!' } },
  ],
};

describe('pipelines over REST (R-REST-16)', () => {
  test('are created, listed, shown and deleted', async () => {
    const { at } = await served();
    expect(await at('POST', '/pipelines', { body: shouting })).toMatchObject({ status: 200, json: { status: 'created' } });
    expect((await at('GET', '/pipelines')).json).toMatchObject({ pipelines: [{ id: 'shout', inputs: ['word'], steps: 2 }] });
    expect((await at('GET', '/pipelines/shout')).json).toMatchObject(shouting);
    expect((await at('DELETE', '/pipelines/shout')).json).toEqual({ id: 'shout', deleted: true });
    expect((await at('GET', '/pipelines/shout')).status).toBe(404);
  });

  test('run with 202 and an id to poll, and appear in my-defaults (R-PACK-12, R-REST-03)', async () => {
    const { at } = await served();
    await at('POST', '/pipelines', { body: shouting });
    const begun = await at('POST', '/pipelines/shout/run', { body: { inputs: { word: 'hello' } } });
    expect([begun.status, begun.json['status']]).toEqual([202, 'running']);
    const run = `/pipeline-runs/${String(begun.json['run_id'])}`;
    await expect.poll(async () => (await at('GET', run)).json['status'], EVENTUALLY).toBe('succeeded');
    expect((await at('GET', run)).json).toMatchObject({
      pipeline: 'shout',
      steps: [{ output: { said: 'HELLO' } }, { output: { said: 'HELLO!' } }],
    });
    expect((await at('GET', '/memory/defaults')).json).toMatchObject({
      scope: 'caller=me',
      packs: [{ id: 'test.echo', calls: 2 }],
      pipelines: [{ id: 'shout', runs: 1 }],
    });
  });

  test('are cancelled by run id, only by their own subject', async () => {
    const { at, token } = await served(aPack(() => new Promise(() => undefined)));
    await at('POST', '/pipelines', { body: shouting });
    const { json } = await at('POST', '/pipelines/shout/run', { body: { inputs: { word: 'x' } } });
    const run = `/pipeline-runs/${String(json['run_id'])}`;
    const stranger = await token('you', MAY);
    for (const method of ['GET', 'DELETE']) expect((await at(method, run, { token: stranger })).status).toBe(404);
    expect((await at('DELETE', run)).json).toMatchObject({ status: 'cancelled' });
    expect((await at('GET', run)).json).toMatchObject({ status: 'cancelled' });
  });

  test.each([
    ['an id in the body too', 'POST', '/pipelines/shout/run', { id: 'shout' }, 400, /id is in the path/],
    ['inputs in the query', 'POST', '/pipelines/shout/run?inputs=x', {}, 400, /must not have a query/],
    ['inputs that are not an object', 'POST', '/pipelines/shout/run', [], 400, /JSON object/],
    ['an id with a slash', 'POST', '/pipelines/a%2Fb/run', {}, 400, /^id must have/],
    ['an id with ..', 'POST', '/pipelines/../run', {}, 400, /^id must have/],
    ['no id', 'POST', '/pipelines//run', {}, 404, /Unknown path/],
    ['an unknown pipeline', 'POST', '/pipelines/none/run', {}, 404, /no such pipeline/],
    ['something else below a pipeline', 'POST', '/pipelines/shout/walk', {}, 404, /Unknown path/],
    ['another method', 'PATCH', '/pipelines/shout/run', {}, 405, /send POST/],
    ['an invalid run id', 'GET', '/pipeline-runs/one', undefined, 400, /^run_id must be/],
  ])('refuse %s', async (_why, method, path, body, status, says) => {
    const { at } = await served();
    await at('POST', '/pipelines', { body: shouting });
    const answer = await at(method, path, { ...(body && { body }) });
    expect([answer.status, answer.json.message]).toEqual([status, expect.stringMatching(says) as string]);
  });
});
