import { describe, expect, test } from 'vitest';
import { type Keychain, keychainSource } from '../../../src/core/keys/keychain.ts';
import { A_KEY } from '../../support/store.ts';

const key = Buffer.from(A_KEY, 'hex');

/**
 * What the real keychains were seen to do, each in one stroke; the keychain lane meets the real ones. A locked one
 * answers "nothing" to every question and refuses only what is given to it.
 */
function keychain(
  state: { locked?: boolean; hangs?: boolean; fails?: string; forgets?: boolean } = {},
): Keychain & { items: Map<string, string> } {
  const items = new Map<string, string>();
  const answer = async <T>(given: () => T): Promise<T> => {
    if (state.fails) throw new Error(state.fails);
    if (state.hangs) return new Promise<never>(() => undefined);
    return given();
  };
  return {
    items,
    getPassword: (service, account) => answer(() => (state.locked ? null : (items.get(`${service} ${account}`) ?? null))),
    setPassword: (service, account, password) =>
      answer(() => {
        if (state.locked) throw new Error('Cannot create an item in a locked collection');
        if (!state.forgets) items.set(`${service} ${account}`, password);
      }),
    deletePassword: (service, account) => answer(() => items.delete(`${service} ${account}`)),
  };
}

const source = (chain: Keychain | undefined) =>
  keychainSource('0123456789abcdef', { load: () => Promise.resolve(chain), patience: 20, creates: true });

describe('the OS keychain', () => {
  test('keeps a key, and no other memory sees it (R-KEY-01)', async () => {
    const chain = keychain();
    await source(chain).keep('current', key);
    expect(await source(chain).read('current')).toEqual({ at: 'found', key });
    expect(await source(chain).read('next')).toEqual({ at: 'absent' });
    const other = keychainSource('another', { load: () => Promise.resolve(chain), creates: true });
    expect(await other.read('current')).toEqual({ at: 'absent' });
    await source(chain).remove('current');
    expect(await source(chain).read('current')).toEqual({ at: 'absent' });
  });

  test('is empty only when the canary could be written or seen (R-KEY-06)', async () => {
    const chain = keychain();
    expect(await source(chain).read('current')).toEqual({ at: 'absent' });
    expect([...chain.items.keys()]).toEqual(['helmdeck-memory canary']);
    expect(await source(chain).read('current')).toEqual({ at: 'absent' });
  });

  test.each([
    {
      what: 'a locked one',
      chain: keychain({ locked: true }),
      reading: { at: 'locked', why: 'it keeps nothing' },
    },
    {
      what: 'one that waits for its owner',
      chain: keychain({ hangs: true }),
      reading: { at: 'locked', why: 'it is waiting for you to unlock it' },
    },
    {
      what: 'one that cannot be reached',
      chain: keychain({ fails: 'Timeout was reached on /run/user/0/bus' }),
      reading: { at: 'unavailable', why: 'it does not answer' },
    },
    {
      what: 'one without its library',
      chain: undefined,
      reading: { at: 'unavailable', why: 'its system library is not installed' },
    },
  ])('$what is never taken for an empty one (R-KEY-06)', async ({ chain, reading }) => {
    expect(await source(chain).read('current')).toEqual(reading);
  });

  test('one that does not keep what it is given is found out at once (R-KEY-06)', async () => {
    await expect(source(keychain({ forgets: true })).keep('current', key)).rejects.toMatchObject({ code: 'key_unavailable' });
    await expect(source(keychain({ hangs: true })).keep('current', key)).rejects.toMatchObject({ code: 'key_unavailable' });
  });

  test('an item that is no key is refused without repeating it (R-KEY-02)', async () => {
    const chain = keychain();
    await source(chain).keep('current', key);
    for (const name of chain.items.keys()) chain.items.set(name, 'hunter2');
    await expect(source(chain).read('current')).rejects.toMatchObject({
      code: 'key_unavailable',
      message: expect.not.stringContaining('hunter2') as string,
    });
  });
});
