import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect } from 'react';
import type { OperationName, OperationOutput, OperationRequest } from '../../contract/operations.ts';
import { useMemory, useOperation } from './memory-context.tsx';

/** The owner counts as present for this long after the last input. */
const PRESENT_MS = 60_000;

let lastInputAt = Date.now();
for (const event of ['pointermove', 'pointerdown', 'keydown', 'focus'])
  addEventListener(event, () => (lastInputAt = Date.now()), { passive: true });

/**
 * For values that change without a report, such as the last use of a token. Refetches when the component mounts, and then only while
 * the owner is present: an idle window must let its session expire (R-WIN-24).
 */
export function usePolledOperation<Name extends OperationName>(
  name: Name,
  input: OperationRequest<Name>,
  /** Milliseconds until the next poll for the given result; undefined stops polling. */
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

/** Refetches everything about this memory after a change that the program does not report. */
export function useRefresh(): () => void {
  const { subject } = useMemory();
  const queries = useQueryClient();
  return useCallback(() => void queries.invalidateQueries({ queryKey: [subject] }), [queries, subject]);
}
