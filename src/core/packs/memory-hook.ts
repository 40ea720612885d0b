import { isKeyAvailable } from '../../contract/status.ts';
import type { MemoryStore } from '../store/store.ts';
import type { PackHook, HookRun } from './hook.ts';
import { createPackMemory } from './pack-memory.ts';
import type { PackSessions } from './sessions.ts';

/** Gives a pack that declares `memory` its own storage, bound to the caller and session. */
export function memoryHook(store: MemoryStore, sessions: PackSessions): PackHook {
  const give = ({ pack, caller, session, context }: HookRun): undefined => {
    if (!pack.memory || !isKeyAvailable(store.status().key)) return;
    const namespace = { subject: caller.subject, ...(session !== undefined && { session }) };
    context.memory = createPackMemory({ store, pack, caller, namespace, signal: context.signal });
  };
  return {
    // Also for packs without memory: any run keeps its session alive.
    before: (run) => (run.session === undefined ? give(run) : sessions.open(run.caller, run.session).then(() => give(run))),

    // Time spent running does not count as idle time.
    after({ caller, session }) {
      if (session !== undefined) sessions.touch(caller, session);
    },
  };
}
