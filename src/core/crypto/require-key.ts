import { Failure } from '../../contract/failure.ts';
import { isKeyAvailable, describeMissingKey } from '../../contract/status.ts';
import type { MemoryStore } from '../store/store.ts';

/**
 * Throws if the memory is locked. Call it before responding from a cache in RAM, because the memory may have been locked after
 * the cached content was decrypted (R-LOCK-03).
 */
export function requireKey(store: Pick<MemoryStore, 'status'>): void {
  const { key } = store.status();
  if (!isKeyAvailable(key)) throw new Failure('key_unavailable', describeMissingKey(key));
}
