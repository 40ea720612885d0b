import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useMemo } from 'react';
import type { OperationName, OperationOutput, OperationRequest } from '../../contract/operations.ts';
import type { Bridge, MemoryClient } from '../../contract/window.ts';
import { clientOf } from './memory.ts';

interface OpenMemory {
  readonly bridge: Bridge;
  /** Whose memory is open. */
  readonly subject: string;
  readonly ask: MemoryClient;
}

const Context = createContext<OpenMemory | undefined>(undefined);

/** One write is told of more than once. */
const TOGETHER_MS = 30;

/** Opens one subject's memory for all that stands below, and looks again at what has changed. */
export function MemoryProvider({ bridge, subject, children }: { bridge: Bridge; subject: string; children: ReactNode }) {
  const queries = useQueryClient();
  useEffect(() => {
    let state: 'still' | 'looking' | 'changed' = 'still';
    // One look at a time: a long list under many writes would never be looked at to its end.
    const look = async (): Promise<void> => {
      do {
        state = 'looking';
        await new Promise((resolve) => setTimeout(resolve, TOGETHER_MS));
        await queries.invalidateQueries({ queryKey: [subject] });
      } while (changed());
      state = 'still';
    };
    const changed = (): boolean => state === 'changed';
    return bridge.onChange((change) => {
      if (change?.namespace === subject || change === undefined) {
        if (state === 'still') void look();
        else state = 'changed';
      } else if (change.kind === 'key') void queries.invalidateQueries({ queryKey: [subject, 'status'] });
      else void queries.invalidateQueries({ queryKey: [subject, 'callers'] });
    });
  }, [bridge, subject, queries]);
  const open = useMemo(() => ({ bridge, subject, ask: clientOf(bridge, subject) }), [bridge, subject]);
  return <Context value={open}>{children}</Context>;
}

export function useMemory(): OpenMemory {
  const open = useContext(Context);
  if (!open) throw new Error('No memory is open here.');
  return open;
}

/**
 * Whether the program itself asks before anything goes that cannot be brought back: the desktop does, where no page can answer for its
 * owner, and the window asks nothing beside it.
 */
export const useIsAsked = (): boolean => useMemory().bridge.place === 'desktop';

/** What an operation answers, kept until something in this memory changes. */
export function useAsked<Name extends OperationName>(name: Name, input: OperationRequest<Name>, enabled = true) {
  const { ask, subject } = useMemory();
  return useQuery<OperationOutput<Name>>({
    queryKey: [subject, name, input],
    queryFn: () => ask(name, input),
    enabled,
    // The old answer stays until the new one is there: nothing flickers while somebody types.
    placeholderData: (before) => before as never,
  });
}
