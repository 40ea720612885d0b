import { Failure } from '../../contract/failure.ts';
import { KeyKeeper, type KeyTables } from '../crypto/key-keeper.ts';
import type { KeySource } from '../crypto/keys/key-source.ts';
import { RECOVERY_WRAPPED_KEY, RECOVERY_WRAPPED_RETIRING_KEY, unwrapKey } from '../crypto/recovery-key.ts';
import type { Clock } from '../time/clock.ts';

interface RecoveredKeys {
  readonly current: Buffer;
  readonly next?: Buffer;
}

/** Unwraps the master key of a memory with the recovery key, checks it, and stores it in a key source. */
export async function recoverInto(
  keySources: readonly KeySource[],
  { records, clock, recoveryKey }: { records: KeyTables; clock: Clock; recoveryKey: string },
): Promise<void> {
  const recovered = recoveredFrom(records, recoveryKey);
  const keys = new KeyKeeper(records, clock, [recoveredKeySource(recovered)]);
  if ((await keys.unlock()).at !== 'ok')
    throw new Failure('key_unavailable', 'The recovered key does not open this memory; restore a backup instead.');
  await storeKeys(keySources, recovered, keys.records().find(({ role }) => role === 'current')?.source);
}

export const recoveredKeySource = (keys: RecoveredKeys): KeySource => ({
  name: 'the recovery key',
  createsOnFirstStart: false,
  read: (slot) => {
    const key = keys[slot];
    return Promise.resolve(key ? { at: 'found', key: Buffer.from(key) } : { at: 'absent' });
  },
});

/**
 * Decrypts the master keys with the recovery key. During a rotation there are two master keys, one for each slot of a key source.
 */
export function recoveredFrom(records: Pick<KeyTables, 'meta'>, recoveryKey: string): RecoveredKeys {
  const [wrapped, retiring] = [records.meta(RECOVERY_WRAPPED_KEY), records.meta(RECOVERY_WRAPPED_RETIRING_KEY)];
  if (!Buffer.isBuffer(wrapped))
    throw new Failure('not_found', 'This memory never had a recovery key; only its own key opens it.');
  const key = unwrapKey(recoveryKey, wrapped);
  return Buffer.isBuffer(retiring) ? { current: unwrapKey(recoveryKey, retiring), next: key } : { current: key };
}

/**
 * Stores the keys in their former source, or in the first source that can store a key. Overwrites any other key in that source.
 * If that source is locked or unavailable, throws instead of using a less secure source.
 */
export async function storeKeys(keySources: readonly KeySource[], keys: RecoveredKeys, from: string | undefined): Promise<void> {
  const writable = keySources.filter(({ save }) => save);
  const keySource = writable.find(({ name }) => name === from) ?? writable[0];
  const reading = keySource && (await keySource.read('current').catch(() => undefined));
  if (keySource?.save && reading?.at !== 'locked' && reading?.at !== 'unavailable') {
    if (keys.next) await keySource.save('next', keys.next);
    return keySource.save('current', keys.current);
  }
  const reason =
    reading && 'why' in reading
      ? `${keySource?.name} is ${reading.at}: ${reading.why}`
      : 'no key source on this machine can store a key';
  throw new Failure(
    'key_unavailable',
    `The recovered key was not stored, because ${reason}. Unlock that key source or make another one available, and try again.`,
  );
}
