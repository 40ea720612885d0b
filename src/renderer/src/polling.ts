import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect } from 'react';
import type { OperationName, OperationOutput, OperationRequest } from '../../contract/operations.ts';
import { useMemory, useOperation } from './memory-context.tsx';

/** Milliseconds after the last input during which the owner counts as present. */
const PRESENT_MS = 60_000;

let lastInputAt = Date.now();
for (const event of ['pointermove', 'pointerdown', 'keydown', 'focus'])
  addEventListener(event, () => (lastInputAt = Date.now()), { passive: true });

/**
 * Reads a value whose changes are not reported, such as the last use of a token. Refetches when the component mounts, and then at
 * intervals while the owner is present. An idle window must not poll, because polling would keep the session alive (R-WIN-24).
 */
export function usePolledOperation<Name extends OperationName>(
  name: Name,
  input: OperationRequest<Name>,
  /** Returns the milliseconds until the next poll, given the latest result. Undefined stops polling. */
  interval: (known: OperationOutput<Name> | undefined) => number | undefined = () => undefined,
  enabled = true,
) {
  const { subject } = useMemory();
  const queries = useQueryClient();
  const result = useOperation(name, input, enabled);
  const everyMs = interval(result.data);
  useEffect(() => {
    if (!enabled) return undefined;
    const refetch = (): void => void queries.invalidateQueries({ queryKey: [subject, name] }, { cancelRefetch: false });
    refetch();
    if (everyMs === undefined) return undefined;
    const timer = setInterval(() => {
      if (Date.now() - lastInputAt < PRESENT_MS) refetch();
    }, everyMs);
    return () => clearInterval(timer);
  }, [queries, subject, name, everyMs, enabled]);
  return result;
}

/** Returns a function that refetches everything about this memory, for changes that cause no change event. */
export function useRefresh(): () => void {
  const { subject } = useMemory();
  const queries = useQueryClient();
  return useCallback(() => void queries.invalidateQueries({ queryKey: [subject] }), [queries, subject]);
}
