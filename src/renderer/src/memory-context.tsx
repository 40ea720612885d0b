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

/** One write is reported more than once, so refetching waits for the other reports. */
const DEBOUNCE_MS = 30;

/** Opens one subject's memory for the components below, and refetches their queries when the memory changes. */
export function MemoryProvider({ bridge, subject, children }: { bridge: Bridge; subject: string; children: ReactNode }) {
  const queries = useQueryClient();
  useEffect(() => {
    let state: 'idle' | 'refetching' | 'stale' = 'idle';
    // One refetch at a time: each new one would cancel the page of a long list that is being read.
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

/** Calls operations in one subject's memory and throws a failure with its code. */
export const memoryClient =
  (bridge: Bridge, subject: string): MemoryClient =>
  async <Name extends OperationName>(name: Name, input: OperationRequest<Name>, signal?: AbortSignal) => {
    const response = await bridge.call(subject, name, input, signal);
    if (!response.ok) throw new Failure(response.code, response.message);
    // The program uses the same table of operations.
    return response.value as OperationOutput<Name>;
  };

export function useMemory(): OpenMemory {
  const open = useContext(Context);
  if (!open) throw new Error('useMemory needs a MemoryProvider.');
  return open;
}

/**
 * Whether the program itself asks the owner before it deletes something. The desktop does, because a page must not confirm for the
 * owner; the window then shows no confirmation dialog.
 */
export const useDesktopConfirms = (): boolean => useMemory().bridge.place === 'desktop';

/** Runs a read operation and caches the result until this memory changes. */
export function useOperation<Name extends OperationName>(name: Name, input: OperationRequest<Name>, enabled = true) {
  const { call, subject } = useMemory();
  return useQuery<OperationOutput<Name>>({
    queryKey: [subject, name, input],
    queryFn: () => call(name, input),
    enabled,
    // Shows the previous result until the new one arrives, so that nothing flickers during typing.
    placeholderData: (before) => before as never,
  });
}
