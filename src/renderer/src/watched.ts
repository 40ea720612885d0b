import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect } from 'react';
import type { OperationName, OperationOutput, OperationRequest } from '../../contract/operations.ts';
import { useAsked, useMemory } from './memory-context.tsx';

/** For so long after the last sign of life somebody is taken to be there. */
const THERE_MS = 60_000;

let seenAt = Date.now();
const seen = (): void => {
  seenAt = Date.now();
};
for (const sign of ['pointermove', 'pointerdown', 'keydown', 'focus']) addEventListener(sign, seen, { passive: true });

/**
 * For what changes without being told, such as the last use of a token. It is asked anew when it is shown, and then again only
 * while somebody is there: a window that was left alone is not in use, and its session may end.
 */
export function useWatched<Name extends OperationName>(
  name: Name,
  input: OperationRequest<Name>,
  /** In how many milliseconds to look again, by what is known; undefined for not at all. */
  interval: (known: OperationOutput<Name> | undefined) => number | undefined,
  enabled = true,
) {
  const { subject } = useMemory();
  const queries = useQueryClient();
  const asked = useAsked(name, input, enabled);
  const everyMs = interval(asked.data);
  useEffect(() => {
    const look = (): void => void queries.invalidateQueries({ queryKey: [subject, name] }, { cancelRefetch: false });
    if (!enabled) return undefined;
    look();
    if (everyMs === undefined) return undefined;
    const again = setInterval(() => {
      if (Date.now() - seenAt < THERE_MS) look();
    }, everyMs);
    return () => clearInterval(again);
  }, [queries, subject, name, everyMs, enabled]);
  return asked;
}

/** Looks at everything of this memory anew, after something was done that nobody tells of. */
export function useFreshLook(): () => void {
  const { subject } = useMemory();
  const queries = useQueryClient();
  return useCallback(() => void queries.invalidateQueries({ queryKey: [subject] }), [queries, subject]);
}
