import { Failure } from '../../contract/failure.ts';
import { isKeyAvailable, describeMissingKey } from '../../contract/status.ts';
import type { MemoryStore } from '../store/store.ts';

/** Guards a response from a RAM cache: the memory may have been locked since the content was opened (R-LOCK-03). */
export function requireKey(store: Pick<MemoryStore, 'status'>): void {
  const { key } = store.status();
  if (!isKeyAvailable(key)) throw new Failure('key_unavailable', describeMissingKey(key));
}
