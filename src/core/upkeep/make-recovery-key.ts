import { Failure } from '../../contract/failure.ts';
import type { KeyKeeper, KeyTables } from '../crypto/key-keeper.ts';
import { createRecoveryPair, RECOVERY_PUBLIC_KEY, RECOVERY_WRAPPED_KEY, wrapKey } from '../crypto/recovery-key.ts';

/** Creates a recovery key, stores its public half and the wrapped master key, and returns the recovery key. */
export async function makeRecoveryKey(
  keys: KeyKeeper,
  records: KeyTables,
  commit: (step: () => void) => Promise<void>,
): Promise<string> {
  const { recoveryKey, publicKey } = createRecoveryPair();
  await commit(() => {
    if (keys.ring.retiring)
      throw new Failure('unavailable', 'A key rotation is running; create a recovery key after the rotation has finished.');
    const bytes = keys.ring.current.export();
    keys.saveSecret(RECOVERY_PUBLIC_KEY, publicKey);
    records.setMeta(RECOVERY_WRAPPED_KEY, wrapKey(bytes, publicKey));
    bytes.fill(0);
  });
  return recoveryKey;
}
