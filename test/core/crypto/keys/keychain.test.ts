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
  test('keeps a key, and no other memory sees it (R-KEY-01)', async () => {
    const chain = fakeKeychain();
    await source(chain).save('current', key);
    expect(await source(chain).read('current')).toEqual({ at: 'found', key });
    expect(await source(chain).read('next')).toEqual({ at: 'absent' });
    const other = keychainSource('another', { load: () => Promise.resolve(chain), creates: true });
    expect(await other.read('current')).toEqual({ at: 'absent' });
    await source(chain).remove('current');
    expect(await source(chain).read('current')).toEqual({ at: 'absent' });
  });

  test('is empty only when the canary could be written or seen (R-KEY-06)', async () => {
    const chain = fakeKeychain();
    expect(await source(chain).read('current')).toEqual({ at: 'absent' });
    expect([...chain.items.keys()]).toEqual(['helmdeck-memory canary']);
    expect(await source(chain).read('current')).toEqual({ at: 'absent' });
  });

  test.each([
    {
      what: 'a locked one',
      chain: fakeKeychain({ locked: true }),
      reading: { at: 'locked', why: 'it does not store new items' },
    },
    {
      what: 'one that waits for its owner',
      chain: fakeKeychain({ hangs: true }),
      reading: { at: 'locked', why: 'it is waiting for you to unlock it' },
    },
    {
      what: 'one that cannot be reached',
      chain: fakeKeychain({ fails: 'Timeout was reached on /run/user/0/bus' }),
      reading: { at: 'unavailable', why: 'it does not respond' },
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
    await expect(source(fakeKeychain({ forgets: true })).save('current', key)).rejects.toMatchObject({ code: 'key_unavailable' });
    await expect(source(fakeKeychain({ hangs: true })).save('current', key)).rejects.toMatchObject({ code: 'key_unavailable' });
  });

  test('an item that is no key is refused without repeating it (R-KEY-02)', async () => {
    const chain = fakeKeychain();
    await source(chain).save('current', key);
    for (const name of chain.items.keys()) chain.items.set(name, 'hunter2');
    await expect(source(chain).read('current')).rejects.toMatchObject({
      code: 'key_unavailable',
      message: expect.not.stringContaining('hunter2') as string,
    });
  });

  test('is not loaded without a desktop session, and is loaded later when there is one (R-KEY-06, R-KEY-08)', async () => {
    let session = false;
    let loaded = 0;
    const chain = fakeKeychain();
    const load = () => Promise.resolve(((loaded += 1), chain));
    const asked = keychainSource('0123456789abcdef', { load, creates: true, isReachable: () => session });
    expect(await asked.read('current')).toEqual({ at: 'unavailable', why: 'this process has no desktop session' });
    await expect(asked.save('current', key)).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(loaded).toBe(0);
    session = true;
    await asked.save('current', key);
    expect(await asked.read('current')).toEqual({ at: 'found', key });
  });

  test.each([
    { what: 'the address of a bus', environment: { DBUS_SESSION_BUS_ADDRESS: 'unix:path=/run/user/1000/bus' }, leads: true },
    { what: 'a screen, from which a bus is started', environment: { DISPLAY: ':0' }, leads: true },
    { what: 'another keyring than that of the session', environment: { SECRET_BACKEND: 'file' }, leads: true },
    { what: 'nothing', environment: {}, leads: false },
    { what: 'an empty address', environment: { DBUS_SESSION_BUS_ADDRESS: '' }, leads: false },
  ])('on Linux $what makes it reachable: $leads', ({ environment, leads }) => {
    expect(hasSessionBus(environment, 'linux')).toBe(leads);
    expect(hasSessionBus(environment, 'darwin')).toBe(true);
    expect(hasSessionBus(environment, 'win32')).toBe(true);
  });

  test('on Linux the bus in the folder of a session makes it reachable', () => {
    const folder = tempFolder();
    expect(hasSessionBus({ XDG_RUNTIME_DIR: folder }, 'linux')).toBe(false);
    writeFileSync(join(folder, 'bus'), '');
    expect(hasSessionBus({ XDG_RUNTIME_DIR: folder }, 'linux')).toBe(true);
  });
});
