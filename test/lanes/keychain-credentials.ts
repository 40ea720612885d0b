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

/** What matters of a pack here is which credential it uses. */
const pack = { name: 'test.echo', credential: name } as Pack;

/** As a program has them that has just started: nothing is held yet. */
const kept = (store: MemoryStore): CredentialStore =>
  new CredentialStore({ store, clock, keychain: openKeychainItems('the credential'), packs: () => [pack] });

const coded = (code: string) => (error: Error) => 'code' in error && error.code === code && !error.message.includes(SECRET);

/** The owner's credentials for services outside, beside the key. */
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
  await check('R-PACK-16 it stands in no file of the memory', () => {
    for (const file of readdirSync(MEMORY)) assert.ok(!readFileSync(join(MEMORY, file)).includes(SECRET), file);
  });
  await check('R-PACK-16 another one takes its place, with another id', async () => {
    const before = await kept(store).read(name);
    await kept(store).set({ name, secret: ANOTHER });
    const after = await kept(store).read(name);
    assert.equal(after?.secret, ANOTHER);
    assert.notEqual(after.id, before?.id);
  });
  await check('R-PACK-16 locked keyring: it is neither read nor replaced nor dropped, and never taken for absent', async () => {
    lockKeyring();
    await assert.rejects(kept(store).read(name), coded('unavailable'));
    await assert.rejects(kept(store).set({ name, secret: SECRET }), coded('key_unavailable'));
    await assert.rejects(kept(store).delete(name), coded('key_unavailable'));
    await unlockKeyring();
    assert.equal((await kept(store).read(name))?.secret, ANOTHER);
  });
  await check('R-PACK-16 dropped, it is gone from the keyring, and the key of the memory is not', async () => {
    const place = /"place":"(\w+)"/.exec((await store.vault.read(`credential ${name}`)) ?? '')?.[1];
    await kept(store).delete(name);
    assert.equal(await kept(store).read(name), undefined);
    assert.deepEqual(await openKeychainItems('it').read(`credential ${name} ${place}`), { at: 'absent' });
    await store.unlock();
    assert.equal(store.status().key.at, 'ok');
  });
}
