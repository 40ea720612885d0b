import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openKeychainItems } from '../../src/core/crypto/keys/keychain.ts';
import { CredentialStore } from '../../src/core/packs/credential-store.ts';
import type { Pack } from '../../src/core/packs/pack.ts';
import type { MemoryStore } from '../../src/core/store/store.ts';
import { timed } from './faults/timed.ts';
import { check } from './keychain-check.ts';
import { lockKeyring, unlockKeyring } from './keychain-keyring.ts';
import { clock, MEMORY, open } from './keychain-memory.ts';

const name = 'github';
const SECRET = 'a-service-token-41d7';
const ANOTHER = 'another-token-77aa';

/** The part of a pack that names its credential. */
const pack = { name: 'test.echo', credential: name } as Pack;

/** The credentials of a program that has just started: nothing is cached yet. */
const kept = (store: MemoryStore): CredentialStore =>
  new CredentialStore({ store, clock, keychain: openKeychainItems('the credential'), packs: () => [pack] });

const coded = (code: string) => (error: Error) => 'code' in error && error.code === code && !error.message.includes(SECRET);

/** The owner's credentials for external services, stored beside the key. */
export async function credentials(): Promise<void> {
  await unlockKeyring();
  await using store = await open(MEMORY);
  await check('R-PACK-16 a credential is set, and read at the next start, in no more than a second', async () => {
    await kept(store).set({ name, secret: SECRET });
    const { result, ms } = await timed(() => kept(store).read(name));
    assert.equal(result?.secret, SECRET);
    assert.ok(ms < 1000);
    return `${ms} ms`;
  });
  await check('R-PACK-16 it is in no file of the memory', () => {
    for (const file of readdirSync(MEMORY)) assert.ok(!readFileSync(join(MEMORY, file)).includes(SECRET), file);
  });
  await check('R-PACK-16 another credential replaces it, with another id', async () => {
    const before = await kept(store).read(name);
    await kept(store).set({ name, secret: ANOTHER });
    const after = await kept(store).read(name);
    assert.equal(after?.secret, ANOTHER);
    assert.notEqual(after.id, before?.id);
  });
  await check(
    'R-PACK-16 locked keyring: the credential cannot be read, replaced or deleted, and is never reported as absent',
    async () => {
      lockKeyring();
      await assert.rejects(kept(store).read(name), coded('unavailable'));
      await assert.rejects(kept(store).set({ name, secret: SECRET }), coded('key_unavailable'));
      await assert.rejects(kept(store).delete(name), coded('key_unavailable'));
      await unlockKeyring();
      assert.equal((await kept(store).read(name))?.secret, ANOTHER);
    },
  );
  await check('R-PACK-16 deleting it removes it from the keyring, and leaves the key of the memory', async () => {
    const place = /"place":"(\w+)"/.exec((await store.vault.read(`credential ${name}`)) ?? '')?.[1];
    await kept(store).delete(name);
    assert.equal(await kept(store).read(name), undefined);
    assert.deepEqual(await openKeychainItems('it').read(`credential ${name} ${place}`), { at: 'absent' });
    await store.unlock();
    assert.equal(store.status().key.at, 'ok');
  });
}
