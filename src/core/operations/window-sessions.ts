import { Failure } from '../../contract/failure.ts';
import type { Memory, MemoryDeps } from './memory.ts';

/** Browsers that have the window open; none where this program serves no window. */
export const windowSessions = ({
  program: { windowSessions: open },
}: MemoryDeps): Pick<Memory, 'windowSessions' | 'endWindowSession'> => ({
  async windowSessions() {
    return { sessions: [...(open?.()?.list() ?? [])] };
  },

  async endWindowSession(_caller, { id }) {
    if (open?.()?.end(id) === true) return { id };
    throw new Failure('not_found', 'There is no such browser session; list them to see which are open.');
  },
});
