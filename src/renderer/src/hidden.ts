import { useState } from 'react';
import { Failure } from '../../contract/failure.ts';
import { useOperation } from './memory-context.tsx';

/** Whether the window must hide its content, because the key is unavailable or the session has ended. Undefined until known. */
export function useContentHidden(): boolean | undefined {
  const { data, error } = useOperation('status', {});
  // Hide the content, because a window without a session is not notified when the memory is locked.
  if (error instanceof Failure && error.code === 'invalid_token') return true;
  const at = data?.store.key.at;
  return at === undefined ? undefined : at !== 'ok' && at !== 'ephemeral';
}

/** Counts how often the content was hidden since the component was mounted. */
export function useHideCount(): number {
  const hidden = useContentHidden();
  const [known, setKnown] = useState({ hidden, count: 0 });
  if (hidden !== known.hidden) {
    setKnown({ hidden, count: hidden === true && known.hidden === false ? known.count + 1 : known.count });
  }
  return known.count;
}
