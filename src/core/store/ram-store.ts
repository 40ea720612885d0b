import { randomBytes } from 'node:crypto';
import { Failure } from '../../contract/failure.ts';
import type { KeyState, StoreStatus } from '../../contract/status.ts';
import { MASTER_KEY_BYTES } from '../crypto/cipher.ts';
import { KeyKeeper } from '../crypto/key-keeper.ts';
import type { KeySource } from '../crypto/keys/key-source.ts';
import type { Clock } from '../time/clock.ts';
import { Connection } from './connection.ts';
import { openInRam } from './database.ts';
import { SqliteStore } from './sqlite-store.ts';
import type { Quota } from './store.ts';

const EPHEMERAL: KeyState = {
  at: 'ephemeral',
  remedy:
    'There is no key, so all facts are lost when Helmdeck Memory exits; create a key with helmdeck-memory key init --file, or set HELMDECK_MEMORY_KEY, and restart.',
};

/** A memory without a stored key: a database in RAM, encrypted with a random key that exists only in RAM. */
export class RamStore extends SqliteStore {
  constructor(clock: Clock, quota?: Quota) {
    const connection = new Connection(undefined, openInRam());
    const keys = new KeyKeeper(connection, clock, [keyInRam()]);
    super({ connection, clock, keys, ...(quota && { quota }) });
  }

  override status(): StoreStatus {
    return { ...super.status(), kept: 'memory', key: EPHEMERAL };
  }

  override lock(): void {
    throw new Failure(
      'key_unavailable',
      'This memory has no key, so it cannot be locked. Its facts are lost when Helmdeck Memory exits.',
    );
  }

  override async unlock(): Promise<KeyState> {
    await super.unlock();
    return EPHEMERAL;
  }

  /** Never calls a listener, because the key state of a memory in RAM never changes. */
  override onKeyChange(): Disposable {
    return { [Symbol.dispose]: () => undefined };
  }
}

function keyInRam(): KeySource {
  const key = randomBytes(MASTER_KEY_BYTES);
  return {
    name: 'this process',
    createsOnFirstStart: false,
    // Return a copy, because the caller overwrites the returned key with zeros.
    read: (slot) => Promise.resolve(slot === 'current' ? { at: 'found', key: Buffer.from(key) } : { at: 'absent' }),
  };
}
