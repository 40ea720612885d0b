import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useMemo } from 'react';
import { Failure } from '../../contract/failure.ts';
import type { OperationName, OperationOutput, OperationRequest } from '../../contract/operations.ts';
import type { Bridge, MemoryClient } from '../../contract/window.ts';

interface OpenMemory {
  readonly bridge: Bridge;
  /** The subject whose memory is open. */
  readonly subject: string;
  readonly call: MemoryClient;
}

const Context = createContext<OpenMemory | undefined>(undefined);

/** Milliseconds to wait before a refetch, because one write causes several change reports. */
const DEBOUNCE_MS = 30;

/** Opens one subject's memory for all child components, and refetches their queries when the memory changes. */
export function MemoryProvider({ bridge, subject, children }: { bridge: Bridge; subject: string; children: ReactNode }) {
  const queries = useQueryClient();
  useEffect(() => {
    let state: 'idle' | 'refetching' | 'stale' = 'idle';
    // Run one refetch at a time, because a second refetch would cancel list pages that are still loading.
    const refetch = async (): Promise<void> => {
      do {
        state = 'refetching';
        await new Promise((resolve) => setTimeout(resolve, DEBOUNCE_MS));
        await queries.invalidateQueries({ queryKey: [subject] });
      } while (isStale());
      state = 'idle';
    };
    const isStale = (): boolean => state === 'stale';
    return bridge.onChange((change) => {
      if (change?.namespace === subject || change === undefined) {
        if (state === 'idle') void refetch();
        else state = 'stale';
      } else if (change.kind === 'key') void queries.invalidateQueries({ queryKey: [subject, 'status'] });
      else void queries.invalidateQueries({ queryKey: [subject, 'callers'] });
    });
  }, [bridge, subject, queries]);
  const open = useMemo(() => ({ bridge, subject, call: memoryClient(bridge, subject) }), [bridge, subject]);
  return <Context value={open}>{children}</Context>;
}

/** Returns a function that calls operations in one subject's memory and throws a `Failure` if an operation fails. */
export const memoryClient =
  (bridge: Bridge, subject: string): MemoryClient =>
  async <Name extends OperationName>(name: Name, input: OperationRequest<Name>, signal?: AbortSignal) => {
    const response = await bridge.call(subject, name, input, signal);
    if (!response.ok) throw new Failure(response.code, response.message);
    // The cast is safe, because both sides of the bridge use the same operation table.
    return response.value as OperationOutput<Name>;
  };

export function useMemory(): OpenMemory {
  const open = useContext(Context);
  if (!open) throw new Error('useMemory needs a MemoryProvider.');
  return open;
}

/**
 * Returns true on the desktop, where the main process asks the owner to confirm deletions, because a compromised page could skip
 * its own dialog. The page then shows no confirmation dialog.
 */
export const useDesktopConfirms = (): boolean => useMemory().bridge.place === 'desktop';

/** Runs a read operation and caches the result until this memory changes. */
export function useOperation<Name extends OperationName>(name: Name, input: OperationRequest<Name>, enabled = true) {
  const { call, subject } = useMemory();
  return useQuery<OperationOutput<Name>>({
    queryKey: [subject, name, input],
    queryFn: () => call(name, input),
    enabled,
    // Show the previous result until the new result arrives, so that the page does not flicker while the owner types.
    placeholderData: (before) => before as never,
  });
}
