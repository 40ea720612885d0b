import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { keychainSource } from '../../src/core/crypto/keys/keychain.ts';
import { openStore } from '../../src/core/store/open-store.ts';
import { recoverServerKey } from '../../src/core/store/postgres/recover-key.ts';
import type { MemoryStore } from '../../src/core/store/store.ts';
import { startPostgres } from '../support/postgres.ts';
import { check } from './keychain-check.ts';
import { lockKeyring, unlockKeyring } from './keychain-keyring.ts';
import { assertState, clock, FACTS, keychain, MEMORY, recall, refused, remember } from './keychain-memory.ts';

/** A memory in PostgreSQL whose key is in the keychain. */
export async function databaseRecovery(): Promise<void> {
  await unlockKeyring();
  await using server = await startPostgres();
  const database = server.newMemory();
  const sources = keychain(MEMORY);
  const open = (): Promise<MemoryStore> => openStore({ folder: MEMORY, database, clock, sources });
  let words = '';
  await check('R-KEY-03 database: the first start creates its key in the keychain', async () => {
    await using store = await open();
    assert.equal(assertState(store.status().key, 'ok'), 'from the OS keychain');
    await remember(store, FACTS);
    words = (await store.upkeep?.makeRecoveryKey()) ?? '';
  });
  const [row] = await server.query(`SELECT plain FROM "${database.schema}".meta WHERE name = 'memory'`);
  const place = keychainSource(String(row?.['plain']), { creates: true });
  const present = await place.read('current');
  const key = present.at === 'found' ? present.key : Buffer.alloc(0);
  const recover = (): Promise<void> => recoverServerKey({ database, sources, clock, recoveryKey: words });

  await place.remove('current');
  await check('R-KEY-10 database: the keychain lost its item, and the recovery key restores it', async () => {
    {
      await using store = await open();
      assertState(store.status().key, 'absent');
    }
    await recover();
    const restored = await place.read('current');
    assert.deepEqual(restored.at === 'found' && restored.key, key);
    await using store = await open();
    await recall(store, FACTS);
  });
  await place.save('current', Buffer.alloc(32, 7));
  await check('R-KEY-10 database: an item with an earlier key is replaced', async () => {
    {
      await using store = await open();
      assertState(store.status().key, 'mismatch');
    }
    await recover();
    await using store = await open();
    await recall(store, FACTS);
  });
  await place.remove('current');
  await check('R-KEY-10 database: recovery into a locked keyring fails with a message, and writes no key file', async () => {
    lockKeyring();
    await refused(recover());
    await unlockKeyring();
    assert.equal((await place.read('current')).at, 'absent');
    assert.equal(existsSync(join(MEMORY, 'memory.key')), false);
  });
}
