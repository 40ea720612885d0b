import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { OperationRequest } from '../../../src/contract/operations.ts';
import { findOwnerClient } from '../../../src/listeners/endpoint.ts';
import { sendRequest } from '../../support/listener.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';
import { startProgram } from '../../support/program.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const hook = aCaller({ client: 'codex', token: 'token-of-hook', transport: 'rest', may: ['memory:brief'] });
const agent = aCaller({ client: 'codex', token: 'token-of-codex', may: ['memory:read', 'memory:write'] });
const PROMPT = 'Always use pnpm, never npm. Now add zod.';
const WAITS = { key: 'conventions/package-manager', value: 'Always use pnpm, never npm.', client: 'codex', source: 'capture' };

async function capturing(choice: { capture?: boolean; accept?: boolean } = { capture: true }) {
  const memory = await openTestMemory();
  const owner = memory.as(theOwner);
  await owner('setCapture', { client: 'codex', ...choice });
  const items = async () => (await owner('inbox', {})).items;
  const say = (prompt: string, caller = hook, more: OperationRequest<'brief'> = {}) =>
    memory.as(caller)('brief', { prompt, ...more });
  /** Waits until a later statement was proposed, so that the earlier ones have been too. */
  const settled = async () => {
    const value = `We decided to use marker${Math.random().toString(36).slice(2)}.`;
    await say(value);
    await expect.poll(async () => (await items()).map((item) => item.value)).toContain(value);
    await owner('dropInbox', { id: (await items()).find((item) => item.value === value)!.id });
    return (await items()).map((item) => item.value);
  };
  return { ...memory, owner, items, say, settled };
}

describe('a lasting statement in a prompt', () => {
  test('waits in the Inbox after the brief was answered (R-CAPT-06)', async () => {
    const { say, items } = await capturing();
    expect(await say(PROMPT)).toEqual({ text: '', keys: [] });
    await expect.poll(items).toMatchObject([{ ...WAITS, category: 'conventions', tags: [], operation: 'remember' }]);
  });

  test('carries the project of the folder (R-CAPT-04, R-CAPT-06)', async () => {
    const { say, items } = await capturing();
    await say(PROMPT, hook, { folder: '/home/ada/src/Konflux Web' });
    await expect.poll(items).toMatchObject([{ key: 'conventions/konflux-web/package-manager', tags: ['project:Konflux Web'] }]);
  });

  test('is proposed although the hook gave up before the answer (R-CAPT-06)', async () => {
    const { perform, items, as } = await capturing();
    await as(agent)('remember', { key: 'preferences/editor', value: 'Helix' });
    const late = perform(hook, 'brief', { prompt: PROMPT }, { signal: AbortSignal.abort() });
    await expect(late).rejects.toMatchObject({ code: 'cancelled' });
    await expect.poll(items).toMatchObject([WAITS]);
  });

  test.each([
    ['the owner did not turn capture on', { capture: false }, hook],
    ['it came with the token of an agent, whose prompts may be anything', { capture: true }, agent],
    ['the token can do more than a hook', { capture: true }, aCaller({ client: 'codex', may: ['memory:brief', 'memory:write'] })],
    ['capture is on for another client', { capture: true }, { ...hook, client: 'gemini-cli' }],
  ])('is not proposed if %s (R-CAPT-06)', async (_why, choice, caller) => {
    const { say, owner, settled } = await capturing(choice);
    await say(PROMPT, caller);
    await owner('setCapture', { client: 'codex', capture: true });
    expect(await settled()).toEqual([]);
  });

  test('is proposed once, whatever becomes of the proposal (R-CAPT-07)', async () => {
    const { say, owner, items, settled } = await capturing();
    await Promise.all([say(PROMPT), say(PROMPT, hook, { session: 's' })]);
    await expect.poll(items).toMatchObject([WAITS]);
    expect(await settled()).toEqual([WAITS.value]);
    await owner('dropInbox', { all: true });
    await say(PROMPT);
    expect(await settled()).toEqual([]);
  });

  test.each([
    ['under the same key', WAITS.key, 'always use pnpm; never npm!'],
    ['under another key', 'setup/node', 'Never npm: always use pnpm.'],
  ])('is not proposed if a fact says it %s (R-CAPT-07)', async (_where, key, value) => {
    const { say, as, settled } = await capturing();
    await as(agent)('remember', { key, value });
    await say(PROMPT);
    expect(await settled()).toEqual([]);
  });

  test('is proposed if a fact with the same key says something else (R-CAPT-07)', async () => {
    const { say, as, items } = await capturing();
    await as(agent)('remember', { key: WAITS.key, value: 'Use yarn.' });
    await say(PROMPT);
    await expect.poll(items).toMatchObject([{ ...WAITS, current: 'Use yarn.' }]);
  });

  test('is stored at once if the owner chose so (R-CAPT-06, R-INBOX-09)', async () => {
    const { say, as } = await capturing({ capture: true, accept: true });
    await say(PROMPT);
    await expect.poll(() => as(agent)('recall', { key: WAITS.key }).catch(() => ({}))).toMatchObject({ value: WAITS.value });
  });
});

test('nothing of a prompt is in a file or in the output of the program, and no proposal in clear text (R-CAPT-08)', async () => {
  const folder = join(tempFolder(), 'data');
  const program = await startProgram({ HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: A_KEY });
  const owner = (await findOwnerClient(folder))!;
  const { token } = await owner.call('mintToken', {
    name: 'hook',
    client: 'codex',
    subject: 'me',
    scopes: ['memory:brief'],
    quarantine: false,
  });
  await owner.call('setCapture', { client: 'codex', capture: true });
  const prompt = 'The xylophone quokka is late. Always use marimbaphone, never npm. Is the zeppelin ready?';
  const { status } = await sendRequest(owner.url, '/api/v1/brief', {
    method: 'POST',
    token,
    body: JSON.stringify({ prompt, session: 'session-1', folder: '/src/wombat' }),
  });
  expect(status).toBe(200);
  await expect.poll(async () => (await owner.call('inbox', {})).total).toBe(1);
  owner[Symbol.dispose]();
  await delay(50);
  const { output, errorOutput } = await program.end('SIGTERM');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  const texts = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'));
  expect(texts.length).toBeGreaterThan(1);
  for (const text of [...texts, output, errorOutput])
    expect(text).not.toMatch(/xylophone|quokka|marimbaphone|zeppelin|wombat|session-1/i);
});
