import { useState } from 'react';
import { Failure } from '../../contract/failure.ts';
import { useAsked } from './memory-context.tsx';

/**
 * Whether nothing of the memory may be shown: its key is away, or the session of this window has ended, so that it would hear of no
 * lock any more. Undefined while nobody knows.
 */
export function useAway(): boolean | undefined {
  const { data, error } = useAsked('status', {});
  if (error instanceof Failure && error.code === 'invalid_token') return true;
  const at = data?.store.key.at;
  return at === undefined ? undefined : at !== 'ok' && at !== 'ephemeral';
}

/** How often it went while this was shown. */
export function useLocks(): number {
  const away = useAway();
  const [known, setKnown] = useState({ away, locks: 0 });
  if (away !== known.away) setKnown({ away, locks: away === true && known.away === false ? known.locks + 1 : known.locks });
  return known.locks;
}
