import { beforeEach, describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import { type Keychain, openKeychainItems } from '../../../src/core/crypto/keys/keychain.ts';
import type { ExecutionContext, Pack } from '../../../src/core/packs/pack.ts';
import { MINUTE } from '../../support/clock.ts';
import { fakeKeychain } from '../../support/keychain.ts';
import { aCaller, openTestMemory, type TestMemory, theOwner } from '../../support/memory.ts';
import { aPack, CREDENTIAL } from '../../support/packs.ts';
import { filesBelow } from '../../support/temp-folder.ts';
import { measureWait } from '../../support/work.ts';

const SECRET = 'a-service-token-41d7';

interface Opened extends TestMemory {
  readonly set: (secret?: string, name?: string) => Promise<unknown>;
  readonly drop: (name?: string) => Promise<unknown>;
  readonly list: () => Promise<unknown>;
  readonly ask: (what?: string, subject?: string) => Promise<unknown>;
  readonly seen: (string | undefined)[];
  readonly kept: (subject?: string) => Promise<number>;
}

type Answering = (context: ExecutionContext<{ what: string }>, asked: number) => unknown;

/** A memory with a pack that uses the credential `test`, caches its outputs and returns the credential it received. */
async function opened(
  chain: Keychain | undefined,
  { handedIn, keyless, answering }: { handedIn?: Record<string, string>; keyless?: boolean; answering?: Answering } = {},
): Promise<Opened> {
  const seen: (string | undefined)[] = [];
  const handler: Answering = (context) => {
    seen.push(context.credential?.secret);
    return answering ? answering(context, seen.length) : { said: `${seen.length}` };
  };
  const pack = (name: string, over: Partial<Pack> = {}): Pack =>
    aPack((context) => handler(context, seen.length), { name, memory: { cache: true, ttl: 300 }, credential: 'test', ...over });
  const { credential: _none, ...without } = pack('test.without');
  const memory = await openTestMemory({
    keyless: keyless ?? false,
    packs: { packs: [pack('test.echo'), without] },
    credentials: {
      keychain: openKeychainItems('the credential', { load: async () => chain, timeoutMs: 20 }),
      ...(handedIn && { provided: handedIn }),
    },
  });
  const owner = memory.as(theOwner);
  return {
    ...memory,
    seen,
    set: (secret = SECRET, name = 'test') => owner('setCredential', { name, secret }),
    drop: (name = 'test') => owner('dropCredential', { name }),
    list: async () => (await owner('credentials', {})).credentials,
    ask: (what = 'x', subject = 'me') => memory.as(aCaller({ subject }))('runPack', { name: 'test.echo', input: { what } }),
    kept: (subject = 'me') => memory.store.space({ subject }, 'cache').count(),
  };
}

let chain: ReturnType<typeof fakeKeychain>;

beforeEach(() => {
  chain = fakeKeychain();
});

describe('a credential (R-PACK-16)', () => {
  test('is stored in the keychain only, with a random id', async () => {
    const memory = await opened(chain);
    expect(await memory.list()).toEqual([{ name: 'test', packs: ['test.echo'] }]);
    expect(await memory.set()).toEqual({ name: 'test' });
    const at = new Date(memory.clock.now()).toISOString();
    expect(await memory.list()).toEqual([{ name: 'test', packs: ['test.echo'], kept_in: 'keychain', set_at: at }]);
    await memory.ask();
    expect(memory.seen).toEqual([SECRET]);
    const items = [...chain.items].filter(([name]) => name.includes('credential test'));
    expect(items).toHaveLength(1);
    expect(JSON.parse(items[0]?.[1] ?? '')).toEqual({ id: expect.stringMatching(/^[0-9a-f]{32}$/) as string, secret: SECRET });
    await memory.store[Symbol.asyncDispose]();
    for (const { path, bytes } of filesBelow(memory.folder)) expect(bytes.includes(SECRET), path).toBe(false);
  });

  test('is given to the packs that name it only', async () => {
    const memory = await opened(chain);
    await memory.set();
    await memory.as(aCaller())('runPack', { name: 'test.without', input: {} });
    await memory.ask();
    expect(memory.seen).toEqual([undefined, SECRET]);
  });

  test('belongs to one memory and is invisible to others', async () => {
    await (await opened(chain)).set();
    const other = await opened(chain);
    expect(await other.list()).toEqual([{ name: 'test', packs: ['test.echo'] }]);
    await other.ask();
    expect(other.seen).toEqual([undefined]);
  });

  test('is not looked up in the keychain if none is set', async () => {
    const asking: Keychain = { getPassword: neverAsked, setPassword: neverAsked, deletePassword: neverAsked };
    const memory = await opened(asking);
    expect(await memory.ask()).toMatchObject({ output: { said: '1' } });
    expect(memory.seen).toEqual([undefined]);
  });

  test('is read at most once a minute', async () => {
    let asked = 0;
    const memory = await opened({
      ...chain,
      getPassword: (service, account) => {
        asked += account.startsWith('credential') ? 1 : 0;
        return chain.getPassword(service, account);
      },
    });
    await memory.set();
    asked = 0;
    for (let time = 0; time < 5; time += 1) await memory.ask(`${time}`);
    expect(asked).toBe(1);
    await memory.clock.advance(MINUTE);
    await memory.ask('later');
    expect(asked).toBe(2);
  });

  test.each([
    ['', 'x'],
    ['short', 'x'],
    ['with a space', 'x'],
    ['with\nnewline', 'x'],
    ['grün-grün-grün', 'x'],
    ['x'.repeat(1025), 'x'],
  ])('cannot be %j, and the failure does not quote it', async (secret) => {
    const memory = await opened(chain);
    await expect(memory.set(secret)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.not.stringContaining(secret === '' ? '\0' : secret) as string,
    });
    expect(chain.items.size).toBe(0);
  });

  test.each(['Test', '', '../x', 'a b', 'x'.repeat(33)])('cannot have the name %j', async (name) => {
    const memory = await opened(chain);
    await expect(memory.set(SECRET, name)).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('that no pack uses is refused', async () => {
    const memory = await opened(chain);
    await expect(memory.set(SECRET, 'other')).rejects.toMatchObject({ code: 'not_found' });
    await expect(memory.drop('other')).rejects.toMatchObject({ code: 'not_found' });
    await expect(memory.drop()).rejects.toMatchObject({ code: 'not_found' });
    expect(chain.items.size).toBe(0);
  });

  test('is refused by a memory in RAM', async () => {
    const memory = await opened(chain, { keyless: true });
    await expect(memory.set()).rejects.toMatchObject({
      code: 'key_unavailable',
      message: expect.stringContaining('key init') as string,
    });
    expect(chain.items.size).toBe(0);
  });

  test('can be set, listed and deleted by the owner only', async () => {
    const memory = await opened(chain);
    const agent = memory.as(aCaller());
    for (const name of ['setCredential', 'credentials', 'dropCredential'] as const) {
      await expect(agent(name, { name: 'test', secret: SECRET })).rejects.toMatchObject({ code: 'insufficient_scope' });
    }
  });
});

const neverAsked = (): never => {
  throw new Error('The keychain was asked.');
};

describe('a credential that is no longer valid (R-PACK-16)', () => {
  test('has its cached outputs deleted, for every subject, within a second', async () => {
    const memory = await opened(chain);
    await memory.set();
    for (const subject of ['me', 'other']) await memory.ask('x', subject);
    expect([await memory.kept(), await memory.kept('other')]).toEqual([1, 1]);
    expect(await measureWait(() => memory.drop())).toBeLessThan(1000);
    expect([await memory.kept(), await memory.kept('other')]).toEqual([0, 0]);
    expect([...chain.items.keys()].filter((name) => name.includes('credential'))).toEqual([]);
    expect(await memory.list()).toEqual([{ name: 'test', packs: ['test.echo'] }]);
    expect(await memory.ask()).toMatchObject({ cached: false });
    expect(memory.seen.at(-1)).toBeUndefined();
  });

  test('because it was replaced: the new one is used at once', async () => {
    const memory = await opened(chain);
    await memory.set();
    await memory.ask();
    await memory.set('another-token-77aa');
    expect(await memory.kept()).toBe(0);
    expect(await memory.ask()).toMatchObject({ cached: false });
    expect(memory.seen).toEqual([SECRET, 'another-token-77aa']);
    expect([...chain.items.keys()].filter((name) => name.includes('credential'))).toHaveLength(1);
  });

  test('leaves the cached outputs of other packs', async () => {
    const memory = await opened(chain);
    await memory.set();
    await memory.as(aCaller())('runPack', { name: 'test.without', input: {} });
    await memory.ask();
    await memory.drop();
    expect(await memory.as(aCaller())('runPack', { name: 'test.without', input: {} })).toMatchObject({ cached: true });
  });

  test('during a run: the output is returned, and not cached', async () => {
    const { promise: dropped, resolve: goOn } = Promise.withResolvers<void>();
    const { promise: asked, resolve: began } = Promise.withResolvers<void>();
    const memory = await opened(chain, {
      async answering() {
        began();
        await dropped;
        return { said: 'late' };
      },
    });
    await memory.set();
    const late = memory.ask();
    await asked;
    await memory.drop();
    goOn();
    expect(await late).toMatchObject({ output: { said: 'late' }, cached: false });
    expect(await memory.kept()).toBe(0);
  });

  test('because its service rejects it: cached outputs are deleted, and outputs of running packs are not cached', async () => {
    const memory = await opened(chain, {
      async answering({ input, credential }, asked) {
        if (input.what !== 'refused') return { said: `${asked}` };
        await credential?.reportRejected?.();
        throw new Failure('handler_failed', 'It is not taken.');
      },
    });
    await memory.set();
    await memory.ask('x');
    await memory.ask('x', 'other');
    await expect(memory.ask('refused')).rejects.toMatchObject({ code: 'handler_failed' });
    expect([await memory.kept(), await memory.kept('other')]).toEqual([0, 0]);
    // Only the owner can remove a setting.
    expect(await memory.ask('x')).toMatchObject({ cached: false });
    expect(memory.seen.at(-1)).toBe(SECRET);
    expect(await memory.kept()).toBe(1);
  });

  test('because the keychain item changed: noticed within a minute', async () => {
    const memory = await opened(chain);
    await memory.set();
    await memory.ask();
    for (const name of chain.items.keys()) if (name.includes('credential')) chain.items.delete(name);
    await memory.clock.advance(MINUTE);
    expect(await memory.ask('y')).toMatchObject({ cached: false });
    expect(memory.seen).toEqual([SECRET, undefined]);
    expect(await memory.kept()).toBe(1);
  });
});

describe('a credential from a setting (R-PACK-16)', () => {
  test('is used without reading the keychain', async () => {
    const memory = await opened(
      { getPassword: neverAsked, setPassword: neverAsked, deletePassword: neverAsked },
      { handedIn: { test: CREDENTIAL } },
    );
    expect(await memory.list()).toEqual([{ name: 'test', packs: ['test.echo'], kept_in: 'settings' }]);
    await memory.ask();
    expect(memory.seen).toEqual([CREDENTIAL]);
    for (const change of [memory.set(), memory.drop()]) {
      await expect(change).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringContaining('from a setting') as string,
      });
    }
  });

  test('stays when it is rejected, and its cached outputs are deleted', async () => {
    const memory = await opened(undefined, {
      handedIn: { test: CREDENTIAL },
      answering: async ({ input, credential }) => {
        if (input.what === 'refused') await credential?.reportRejected?.();
        return { said: 'x' };
      },
    });
    await memory.ask('x');
    await memory.ask('refused');
    expect(await memory.kept()).toBe(0);
    await memory.ask('x');
    expect(await memory.kept()).toBe(1);
    expect(memory.seen).toEqual([CREDENTIAL, CREDENTIAL, CREDENTIAL]);
  });
});

describe('an unavailable keychain (R-PACK-16)', () => {
  test.each([
    { what: 'locked', state: { locked: true }, why: 'it does not store new items' },
    { what: 'waiting for its owner', state: { hangs: true }, why: 'it is waiting for you to unlock it' },
    { what: 'unreachable', state: { fails: 'no bus at /run/user/0' }, why: 'it does not respond' },
  ])('$what: a run fails instead of continuing without the credential', async ({ state, why }) => {
    const faults: Parameters<typeof fakeKeychain>[0] = {};
    const faultyKeychain = fakeKeychain(faults);
    const memory = await opened(faultyKeychain);
    await memory.set();
    Object.assign(faults, state);
    await expect(memory.ask()).rejects.toMatchObject({
      code: 'unavailable',
      message: `The credential test is in the OS keychain, which cannot be read: ${why}; unlock the keychain and try again.`,
    });
    expect(memory.seen).toEqual([]);
  });

  test('if locked, refuses to set and delete, and keeps the item', async () => {
    const state = { locked: false };
    const faultyKeychain = fakeKeychain(state);
    const memory = await opened(faultyKeychain);
    await memory.set();
    state.locked = true;
    for (const change of [() => memory.set('another-token-77aa'), () => memory.drop()]) {
      await expect(change()).rejects.toMatchObject({
        code: 'key_unavailable',
        message: expect.stringContaining('unlock the keychain') as string,
      });
    }
    state.locked = false;
    await memory.ask();
    expect(memory.seen).toEqual([SECRET]);
  });

  test('if missing, refuses to set, with a remedy', async () => {
    const memory = await opened(undefined);
    await expect(memory.set()).rejects.toMatchObject({
      code: 'key_unavailable',
      message:
        'No OS keychain is available to store the credential: its system library is not installed; provide the credential in a setting instead.',
    });
    expect(await memory.list()).toEqual([{ name: 'test', packs: ['test.echo'] }]);
    expect(await memory.ask()).toMatchObject({ cached: false });
  });

  test('that loses an item is noticed, and nothing counts as set', async () => {
    const memory = await opened(fakeKeychain({ forgets: true }));
    await expect(memory.set()).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(await memory.list()).toEqual([{ name: 'test', packs: ['test.echo'] }]);
  });

  test('whose item was changed outside the program is reported, without its content', async () => {
    const memory = await opened(chain);
    await memory.set();
    for (const name of chain.items.keys()) if (name.includes('credential')) chain.items.set(name, 'hunter2');
    const error = await memory.ask().catch((one: Error) => one);
    expect(error).toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('set the credential again') as string,
    });
    expect((error as Error).message).not.toContain('hunter2');
  });
});
