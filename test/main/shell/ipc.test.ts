import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { failures } from '../../../src/contract/failure.ts';
import { BACKUPS_KEPT } from '../../../src/contract/limits.ts';
import { operations } from '../../../src/contract/operations.ts';
import type { ListeningState } from '../../../src/contract/status.ts';
import type { BridgeResponse, PreloadBridge } from '../../../src/contract/window.ts';
import type { ConsentQuestion } from '../../../src/main/shell/consent.ts';
import { type WindowBinding, bindWindow } from '../../../src/main/shell/ipc.ts';
import { createWindowCalls } from '../../../src/main/shell/window-calls.ts';
import { desktopBridge } from '../../../src/renderer/src/desktop-bridge.ts';
import { HOUR, MINUTE } from '../../support/clock.ts';
import { type FakeContents, fakeContents, invoke } from '../../support/electron.ts';
import { aCaller, openTestMemory, type TestMemory, theOwner } from '../../support/memory.ts';
import { aPack } from '../../support/packs.ts';
import { runs } from '../../support/runs.ts';

vi.mock('electron', () => import('../../support/electron.ts'));

const HOME = 'helmdeck-window://window/';
let listening: ListeningState;
const LISTENING: ListeningState = { at: 'failed', why: 'it is taken' };

/** Runs until it is cancelled. */
const waiting = aPack(
  ({ signal }) => {
    startedRuns += 1;
    return new Promise(() => signal.addEventListener('abort', () => (cancelledRuns += 1)));
  },
  { name: 'test.waiting' },
);
const outside = aPack(() => ({ said: 'yes' }), { name: 'test.outside', usesNetwork: true });
let startedRuns = 0;
let cancelledRuns = 0;

let ours: FakeContents;
let memory: TestMemory;
let bound: WindowBinding;
let asked: ConsentQuestion[];
let agrees: boolean;
let unsaved: boolean[];
let chosen: unknown[];

beforeEach(async () => {
  ours = fakeContents(HOME);
  memory = await openTestMemory({ packs: { packs: [waiting, outside] } });
  asked = [];
  listening = LISTENING;
  agrees = false;
  unsaved = [];
  chosen = [];
  startedRuns = 0;
  cancelledRuns = 0;
  const calls = createWindowCalls({
    perform: memory.perform,
    desktop: {
      listening: async () => listening,
      resumeListening: async () => (listening = LISTENING),
      showBundle: async () => ({ shown: true }),
      atLogin: async () => ({ hidden: false }),
    },
    chooseAtLogin: (choice) => (chosen.push(choice), { starts: choice.starts ?? false, hidden: choice.hidden ?? false }),
    setUnsaved: (given) => void unsaved.push(given),
    askOwner: async (question) => (asked.push(question), agrees),
    clock: memory.clock,
  });
  bound = bindWindow({ calls: Promise.resolve(calls), window: () => ours.window });
});
afterEach(() => bound[Symbol.dispose]());

const from = ({ contents, frame }: FakeContents) => ({ sender: contents, senderFrame: frame });
const call = (...args: unknown[]): Promise<unknown> => invoke(from(ours), 'call', ...args);

describe('the window', () => {
  test('runs operations, and signs its writes (R-DESK-02)', async () => {
    expect(await call('me', 'remember', { key: 'a', value: 'b' })).toMatchObject({ ok: true, value: { status: 'created' } });
    expect(await call('me', 'recall', { key: 'a' })).toMatchObject({ ok: true, value: { client: 'window', value: 'b' } });
    expect(await call('you', 'recall', { key: 'a' })).toMatchObject({ ok: false, code: 'not_found' });
  });

  test.each(Object.keys(operations))('can call %s, and gets its failure code for invalid input (R-DESK-11)', async (name) => {
    expect(await call('me', name, 'nothing of the kind')).toMatchObject({ ok: false, code: 'invalid_input' });
  });

  test('resolves with the first response', async () => {
    let answered = false;
    void bound.firstAnswer.then(() => (answered = true));
    await Promise.resolve();
    expect(answered).toBe(false);
    await call('me', 'list', {});
    expect(answered).toBe(true);
  });

  test('receives changes (R-DESK-02)', () => {
    bound.notify({ namespace: 'me', kind: 'fact' });
    expect(ours.sent).toEqual([['changed', { namespace: 'me', kind: 'fact' }]]);
  });

  test('can request the state of the listener, which agents cannot', async () => {
    expect(await call('me', 'listening', {})).toEqual({ ok: true, value: LISTENING });
  });

  test.each(['listening', 'resumeListening', 'showBundle', 'atLogin'])(
    'sends no input with %s, and is refused if it does (R-DESK-11)',
    async (name) => {
      for (const input of [undefined, null, 7, 'x', [], { more: 1 }]) {
        expect(await call('me', name, input)).toEqual({
          ok: false,
          code: 'invalid_input',
          message: expect.any(String) as string,
        });
      }
    },
  );
});

test('the page reports unsaved text, and other inputs of that call are refused (R-STAY-01, R-DESK-11)', async () => {
  expect(await call('me', 'unsaved', { unsaved: true })).toEqual({ ok: true, value: { unsaved: true } });
  for (const input of [undefined, null, true, {}, { unsaved: 'yes' }, { unsaved: false, more: 1 }]) {
    expect(await call('me', 'unsaved', input)).toMatchObject({ ok: false, code: 'invalid_input' });
  }
  expect(unsaved).toEqual([true]);
});

test('the page changes the start at login, and other inputs of that call are refused (R-DESK-09, R-DESK-11)', async () => {
  expect(await call('me', 'chooseAtLogin', { starts: true })).toEqual({ ok: true, value: { starts: true, hidden: false } });
  for (const input of [undefined, null, true, 'x', { starts: 'yes' }, { hidden: 1 }, { starts: true, more: 1 }]) {
    expect(await call('me', 'chooseAtLogin', input)).toMatchObject({ ok: false, code: 'invalid_input' });
  }
  expect(chosen).toEqual([{ starts: true }]);
});

describe('a call with an id', () => {
  const cancelled = { ok: false, code: 'cancelled', message: expect.stringMatching('cancelled') as string };
  const run = { name: 'test.waiting' };

  test('is cancelled by the window, and no other call is (R-WIN-40)', async () => {
    const pipe: PreloadBridge = {
      place: 'desktop',
      call: (...given) => call(...given) as Promise<BridgeResponse>,
      onChange: () => () => undefined,
    };
    const bridge = desktopBridge(pipe);
    const [one, other] = [new AbortController(), new AbortController()];
    const first = bridge.call('me', 'runPack', run, one.signal);
    const second = bridge.call('me', 'runPack', run, other.signal);
    await expect.poll(() => startedRuns).toBe(2);
    one.abort();
    expect(await first).toEqual(cancelled);
    expect(cancelledRuns).toBe(1);
    other.abort();
    expect(await second).toEqual(cancelled);
    expect(cancelledRuns).toBe(2);
  });

  test('is refused while a call with the same id is running (R-WIN-40)', async () => {
    const first = call('me', 'runPack', run, 'a call');
    expect(await call('me', 'status', {}, 'a call')).toMatchObject({ ok: false, code: 'invalid_input' });
    for (const word of [7, '', 'x'.repeat(65), null, {}])
      expect(await call('me', 'status', {}, word)).toMatchObject({ ok: false, code: 'invalid_input' });
    for (const input of [undefined, {}, { call: 7 }, { call: 'a call', more: 1 }])
      expect(await call('me', 'cancel', input)).toMatchObject({ ok: false, code: 'invalid_input' });
    expect(await call('me', 'cancel', { call: 'another' })).toEqual({ ok: true, value: { cancelled: false } });
    expect(await call('me', 'cancel', { call: 'a call' })).toEqual({ ok: true, value: { cancelled: true } });
    expect(await first).toEqual(cancelled);
    expect(await call('me', 'cancel', { call: 'a call' })).toEqual({ ok: true, value: { cancelled: false } });
  });
});

describe('every other caller is refused without an effect (R-DESK-11)', () => {
  const forbidden = { ok: false, code: 'forbidden_origin', message: expect.any(String) as string };
  const write = ['me', 'remember', { key: 'a', value: 'b' }];
  /** The response, and whether the call had an effect. */
  const outcome = async (answer: unknown) => [answer, ((await call('me', 'recall', { key: 'a' })) as { ok: boolean }).ok];

  test('another window with the same page', async () => {
    expect(await outcome(await invoke(from(fakeContents(HOME)), 'call', ...write))).toEqual([forbidden, false]);
  });

  test('a frame inside the window', async () => {
    const { frame } = fakeContents(HOME);
    expect(await outcome(await invoke({ sender: ours.contents, senderFrame: frame }, 'call', ...write))).toEqual([
      forbidden,
      false,
    ]);
  });

  test('a frame that no longer exists', async () => {
    expect(await outcome(await invoke({ sender: ours.contents, senderFrame: null }, 'call', ...write))).toEqual([
      forbidden,
      false,
    ]);
  });

  test.each([
    'https://example.com/',
    'file:///window/',
    'helmdeck-window://other/',
    'helmdeck-window://window.example/',
    'about:blank',
  ])('the window after navigating to %s', async (url) => {
    const here = fakeContents(url);
    const { window } = ours;
    Object.assign(window, { webContents: here.contents });
    const answer = await invoke(from(here), 'call', ...write);
    Object.assign(window, { webContents: ours.contents });
    expect(await outcome(answer)).toEqual([forbidden, false]);
  });
});

test('random calls are each refused with a known code (R-DESK-11)', async () => {
  const anything = fc.anything({ maxDepth: 2 }).filter(isCloneable);
  const name = fc.oneof(
    anything,
    fc.constantFrom('recall', 'list', 'forget', 'mintToken', 'rotateKey', '__proto__', 'constructor', 'toString'),
  );
  const subject = fc.oneof(anything, fc.constant('me'));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(subject, name, anything), { maxLength: 5 }), subject, name, async (more, whose, what) => {
      const answer = await call(whose, what, ...more);
      if (typeof answer !== 'object' || answer === null || !('ok' in answer)) throw new Error('It is no answer.');
      if (answer.ok === true) return;
      const { code } = answer as unknown as { code: string };
      expect(Object.keys(failures)).toContain(code);
      expect(code).not.toBe('internal');
    }),
    { numRuns: runs(10_000) },
  );
});

/** Whether a value can be sent to another process. */
function isCloneable(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

describe('operations that need consent (R-DESK-08)', () => {
  const destructive: [string, object, RegExp][] = [
    ['forget', { scope: 'all' }, /Forget 4 entries/],
    ['forget', { scope: 'prefix:a' }, /Forget one entry/],
    ['forget', { scope: 'category:user_facts' }, /Forget 2 entries/],
    ['undo', { client: 'window', since: '2026-01-01T00:00:00Z' }, /Undo the changes of window/],
    ['mintToken', { name: 'x', scopes: ['admin', 'memory:read'] }, /all your rights/],
    ['mintToken', { name: 'x' }, /a token for the memory me/],
    ['runPack', { name: 'helmdeck.memory_forget', input: { scope: 'all' } }, /Forget 4 entries/],
    ['runPack', { name: 'test.outside', input: { what: 'a secret' } }, /Run test\.outside/],
    ['finishPipeline', { id: 'wipe' }, /Forget 2 entries/],
    ['deletePipeline', { id: 'wipe' }, /Delete the pipeline wipe/],
    ['createPipeline', { id: 'new', steps: [{ id: 'one', pack: 'test.outside' }] }, /Save the pipeline new as yours/],
    ['adoptPipeline', { id: 'foreign', updated_at: '2026-06-03T14:02:00.000Z' }, /Adopt the pipeline foreign/],
    ['dropCredential', { name: 'github' }, /Delete the credential github/],
    ['pauseToken', { id: 'x', paused: false }, /Resume access for x/],
    ['endSession', { id: 'x' }, /End the session x/],
    ['rotateKey', {}, /new key/],
    ['makeRecoveryKey', {}, /recovery key/],
    ['setEmbeddings', { on: true, adopt: true }, /Ollama that is already running/],
    ['setEmbeddings', { on: false, adopt: true }, /Ollama that is already running/],
  ];

  test.each(destructive)('%s %j', async (name, input, question) => {
    for (const key of ['a', 'b']) await call('me', 'remember', { key, value: 'v' });
    const steps = [{ id: 'one', pack: 'helmdeck.memory_forget', input: { scope: 'facts' } }];
    await memory.as(theOwner)('createPipeline', { id: 'wipe', steps });
    await memory.as(aCaller())('createPipeline', { id: 'foreign', steps });
    expect(await call('me', name, input)).toMatchObject({ ok: false, code: 'declined' });
    expect(asked).toMatchObject([{ message: expect.stringMatching(question) as string }]);
    expect(await call('me', 'list', {})).toMatchObject({ value: { facts: [{ key: 'b' }, { key: 'a' }] } });
    agrees = true;
    expect(await call('me', name, input)).not.toMatchObject({ code: 'declined' });
    expect(asked).toHaveLength(2);
  });

  test('a backup, if it could delete an older one, also with concurrent requests', async () => {
    const makeBackup = () => memory.clock.advance(1).then(() => call('me', 'backup', {}));
    for (let turn = 1; turn < BACKUPS_KEPT; turn += 1) expect(await makeBackup()).toMatchObject({ ok: true });
    const [seventh, eighth] = await Promise.all([makeBackup(), makeBackup()]);
    expect([seventh, eighth]).toMatchObject([{ ok: true }, { ok: false, code: 'declined' }]);
    expect(asked).toMatchObject([{ message: 'Make another backup?' }]);
    const before = await memory.as(theOwner)('backups', {});
    expect(before.backups).toHaveLength(BACKUPS_KEPT);
    expect(await call('me', 'backup', {})).toMatchObject({ ok: false, code: 'declined' });
    expect(await memory.as(theOwner)('backups', {})).toEqual(before);
    await memory.as(theOwner)('backup', {});
    expect(asked).toHaveLength(2);
    agrees = true;
    expect(await call('me', 'backup', {})).toMatchObject({ ok: true });
  });

  test('name the facts, and a name cannot add lines (R-DESK-40)', async () => {
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) await call('me', 'remember', { key, value: 'v', tags: ['x'] });
    await call('me', 'forget', { scope: 'tag:x' });
    await call('me', 'forget', { scope: 'tag:y\u2028\n\u202eNothing goes' });
    await call('me', 'forget', { scope: 'packs' });
    expect(asked.map(({ detail }) => detail)).toEqual([
      'Scope: tag:x. The entries are erased with their history. This cannot be undone.\n\nf\ne\nd\nc\nb\nand 1 more',
      'Scope: tag:y Nothing goes. The entries are erased with their history. This cannot be undone.',
      'Scope: packs. The entries are erased with their history. This cannot be undone.',
    ]);
  });

  test('need consent while the key is missing, without names of facts', async () => {
    await call('me', 'remember', { key: 'a', value: 'v' });
    memory.store.lock();
    await call('me', 'forget', { scope: 'all' });
    expect(asked).toMatchObject([{ message: 'Forget one entry?' }]);
    expect(asked[0]?.detail).not.toMatch(/\n/);
  });

  test.each([
    ['forget', { scope: 'key:a' }],
    ['forget', { scope: 'all', dry_run: true }],
    ['undo', { client: 'window', since: '2026-01-01T00:00:00Z', dry_run: true }],
    ['undo', { client: 'nobody', since: '2026-01-01T00:00:00Z' }],
    ['runPack', { name: 'helmdeck.memory_forget', input: { scope: 'all', dry_run: true } }],
    ['pauseToken', { id: 'x', paused: true }],
    ['setCredential', { name: 'github', secret: 'not-there-yet' }],
    ['unlock', {}],
    ['setEmbeddings', { on: true }],
    ['setEmbeddings', { on: true, adopt: false }],
    ['approveOllama', { hash: 'a'.repeat(64) }],
    ['forget', { scope: 'every' }],
  ])('do not include %s %j', async (name, input) => {
    await call('me', name, input);
    expect(asked).toEqual([]);
  });
});

describe('forgetting single facts (R-DESK-08)', () => {
  const remember = async (count: number) => {
    const lines = Array.from({ length: count }, (_, index) => JSON.stringify({ key: `k${index}`, value: 'v' }));
    for (const line of lines) await call('me', 'remember', JSON.parse(line));
  };
  const left = async () => (await memory.as(theOwner)('status', {})).facts;
  const byPack = (key: string) => call('me', 'runPack', { name: 'helmdeck.memory_forget', input: { scope: `key:${key}` } });

  test('needs consent from the twenty-first fact on, with any operation', async () => {
    await remember(24);
    for (let index = 0; index < 10; index += 1) await call('me', 'forget', { scope: `key:k${index}` });
    for (let index = 10; index < 20; index += 1) await byPack(`k${index}`);
    expect(asked).toEqual([]);
    expect(await left()).toBe(4);
    expect(await call('me', 'forget', { scope: 'key:k20' })).toMatchObject({ code: 'declined' });
    expect(await byPack('k20')).toMatchObject({ code: 'declined' });
    expect(asked.map(({ message }) => message)).toEqual(Array(2).fill('Allow more facts to be removed?'));
    expect(await left()).toBe(4);
    agrees = true;
    await call('me', 'forget', { scope: 'key:k20' });
    // A confirmation allows twenty more.
    agrees = false;
    for (const key of ['k21', 'k22', 'k23']) await byPack(key);
    expect(asked).toHaveLength(3);
    expect(await left()).toBe(0);
  });

  test('includes facts that are set to expire soon (R-DESK-08)', async () => {
    await remember(21);
    const soon = { ttl_seconds: 3600 };
    for (let index = 0; index < 10; index += 1) await call('me', 'patch', { key: `k${index}`, ...soon });
    for (let index = 10; index < 20; index += 1) await call('me', 'remember', { key: `k${index}`, value: 'w', ...soon });
    expect(asked).toEqual([]);
    for (const [name, more] of [
      ['patch', {}],
      ['remember', { value: 'w' }],
    ] as const)
      expect(await call('me', name, { key: 'k20', ...more, ...soon })).toMatchObject({ code: 'declined' });
    expect(asked).toHaveLength(2);
    await memory.clock.advance(2 * HOUR);
    expect(await left()).toBe(1);
    expect(await call('me', 'recall', { key: 'k20' })).toMatchObject({ ok: true });
  });

  test('is counted over ten minutes', async () => {
    await remember(21);
    for (let index = 0; index < 20; index += 1) await call('me', 'forget', { scope: `key:k${index}` });
    await memory.clock.advance(10 * MINUTE);
    await call('me', 'forget', { scope: 'key:k20' });
    expect(asked).toEqual([]);
    expect(await left()).toBe(0);
  });
});

test('questions are shown one at a time, and at most eight wait (R-DESK-08)', async () => {
  const codeOf = (error: unknown) => (error as { code: string }).code;
  const shown: ConsentQuestion[] = [];
  const answers: ((agreed: boolean) => void)[] = [];
  const calls = createWindowCalls({
    perform: memory.perform,
    desktop: {
      listening: async () => LISTENING,
      resumeListening: async () => LISTENING,
      showBundle: async () => ({ shown: true }),
      atLogin: async () => ({ hidden: false }),
    },
    chooseAtLogin: () => ({ hidden: false }),
    setUnsaved: () => undefined,
    askOwner: (question) => (shown.push(question), new Promise((answer) => answers.push(answer))),
  });
  const flood = Array.from({ length: 30 }, () => calls('me', 'forget', { scope: 'all' }).catch((error: unknown) => error));
  await expect.poll(() => answers.length).toBe(1);
  const refused = await Promise.all(flood.slice(9));
  expect(refused.map(codeOf)).toEqual(Array(21).fill('rate_limited'));
  expect(shown).toHaveLength(1);
  for (let index = 0; index < 9; index += 1) {
    await expect.poll(() => answers.length).toBe(index + 1);
    answers[index]?.(false);
  }
  expect((await Promise.all(flood.slice(0, 9))).map(codeOf)).toEqual(Array(9).fill('declined'));
});

test('resuming agents needs consent, and retrying a port does not (R-DESK-08)', async () => {
  listening = { at: 'paused' };
  expect(await call('me', 'resumeListening', {})).toMatchObject({ ok: false, code: 'declined' });
  expect(listening).toEqual({ at: 'paused' });
  agrees = true;
  expect(await call('me', 'resumeListening', {})).toMatchObject({ ok: true });
  expect(asked).toHaveLength(2);
  expect(await call('me', 'resumeListening', {})).toMatchObject({ ok: true });
  expect(asked).toHaveLength(2);
});

test('unlocking a memory that the owner locked needs consent (R-DESK-08)', async () => {
  memory.store.lock();
  expect(await call('me', 'unlock', {})).toMatchObject({ ok: false, code: 'declined' });
  expect(memory.store.status().key.at).toBe('locked');
  agrees = true;
  expect(await call('me', 'unlock', {})).toMatchObject({ ok: true });
  expect(asked.map(({ message }) => message)).toEqual(['Unlock the memory?', 'Unlock the memory?']);
  expect(memory.store.status().key.at).toBe('ok');
});
