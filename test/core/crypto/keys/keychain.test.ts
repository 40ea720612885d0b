import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Keychain, keychainSource, hasSessionBus } from '../../../../src/core/crypto/keys/keychain.ts';
import { fakeKeychain } from '../../../support/keychain.ts';
import { A_KEY } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const key = Buffer.from(A_KEY, 'hex');

const source = (chain: Keychain | undefined) =>
  keychainSource('0123456789abcdef', { load: () => Promise.resolve(chain), timeoutMs: 20, creates: true });

describe('the OS keychain', () => {
  test('stores a key that no other memory reads (R-KEY-01)', async () => {
    const chain = fakeKeychain();
    await source(chain).save('current', key);
    expect(await source(chain).read('current')).toEqual({ at: 'found', key });
    expect(await source(chain).read('next')).toEqual({ at: 'absent' });
    const other = keychainSource('another', { load: () => Promise.resolve(chain), creates: true });
    expect(await other.read('current')).toEqual({ at: 'absent' });
    await source(chain).remove('current');
    expect(await source(chain).read('current')).toEqual({ at: 'absent' });
  });

  test('counts as empty only if the canary can be written or read (R-KEY-06)', async () => {
    const chain = fakeKeychain();
    expect(await source(chain).read('current')).toEqual({ at: 'absent' });
    expect([...chain.items.keys()]).toEqual(['helmdeck-memory canary']);
    expect(await source(chain).read('current')).toEqual({ at: 'absent' });
  });

  test.each([
    {
      what: 'a locked keychain',
      chain: fakeKeychain({ locked: true }),
      reading: { at: 'locked', why: 'it does not store new items' },
    },
    {
      what: 'a keychain that waits for its owner',
      chain: fakeKeychain({ hangs: true }),
      reading: { at: 'locked', why: 'it is waiting for you to unlock it' },
    },
    {
      what: 'an unreachable keychain',
      chain: fakeKeychain({ fails: 'Timeout was reached on /run/user/0/bus' }),
      reading: { at: 'unavailable', why: 'it does not respond' },
    },
    {
      what: 'a keychain without its library',
      chain: undefined,
      reading: { at: 'unavailable', why: 'its system library is not installed' },
    },
  ])('$what is not reported as empty (R-KEY-06)', async ({ chain, reading }) => {
    expect(await source(chain).read('current')).toEqual(reading);
  });

  test('fails to save a key that it does not return (R-KEY-06)', async () => {
    await expect(source(fakeKeychain({ forgets: true })).save('current', key)).rejects.toMatchObject({ code: 'key_unavailable' });
    await expect(source(fakeKeychain({ hangs: true })).save('current', key)).rejects.toMatchObject({ code: 'key_unavailable' });
  });

  test('with an item that is not a key is refused, and the failure does not quote the item (R-KEY-02)', async () => {
    const chain = fakeKeychain();
    await source(chain).save('current', key);
    for (const name of chain.items.keys()) chain.items.set(name, 'hunter2');
    await expect(source(chain).read('current')).rejects.toMatchObject({
      code: 'key_unavailable',
      message: expect.not.stringContaining('hunter2') as string,
    });
  });

  test('is not loaded without a desktop session, and is used once there is one (R-KEY-06, R-KEY-08)', async () => {
    let session = false;
    let loaded = 0;
    const chain = fakeKeychain();
    const load = () => Promise.resolve(((loaded += 1), chain));
    const sessionSource = keychainSource('0123456789abcdef', { load, creates: true, isReachable: () => session });
    expect(await sessionSource.read('current')).toEqual({ at: 'unavailable', why: 'this process has no desktop session' });
    await expect(sessionSource.save('current', key)).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(loaded).toBe(0);
    session = true;
    await sessionSource.save('current', key);
    expect(await sessionSource.read('current')).toEqual({ at: 'found', key });
  });

  test.each([
    { what: 'a bus address', environment: { DBUS_SESSION_BUS_ADDRESS: 'unix:path=/run/user/1000/bus' }, reachable: true },
    { what: 'a display, from which a bus can be started', environment: { DISPLAY: ':0' }, reachable: true },
    { what: 'a keyring other than the session keyring', environment: { SECRET_BACKEND: 'file' }, reachable: true },
    { what: 'no variables', environment: {}, reachable: false },
    { what: 'an empty bus address', environment: { DBUS_SESSION_BUS_ADDRESS: '' }, reachable: false },
  ])('on Linux it can be reached with $what: $reachable', ({ environment, reachable }) => {
    expect(hasSessionBus(environment, 'linux')).toBe(reachable);
    expect(hasSessionBus(environment, 'darwin')).toBe(true);
    expect(hasSessionBus(environment, 'win32')).toBe(true);
  });

  test('on Linux it can be reached through a bus socket in the session folder', () => {
    const folder = tempFolder();
    expect(hasSessionBus({ XDG_RUNTIME_DIR: folder }, 'linux')).toBe(false);
    writeFileSync(join(folder, 'bus'), '');
    expect(hasSessionBus({ XDG_RUNTIME_DIR: folder }, 'linux')).toBe(true);
  });
});
