import { isKeyAvailable } from '../../contract/status.ts';
import type { MemoryStore } from '../store/store.ts';
import type { PackHook, HookRun } from './hook.ts';
import { createPackMemory } from './pack-memory.ts';
import type { PackSessions } from './sessions.ts';

/** Gives a pack that asks for it a memory of its own, bound to its caller and session. */
export function memoryHook(store: MemoryStore, sessions: PackSessions): PackHook {
  const give = ({ pack, caller, session, context }: HookRun): undefined => {
    if (!pack.memory || !isKeyAvailable(store.status().key)) return;
    const namespace = { subject: caller.subject, ...(session !== undefined && { session }) };
    context.memory = createPackMemory({ store, pack, caller, namespace });
  };
  return {
    // Also of a pack without memory: a session lives as long as something runs in it.
    before: (run) =>
      run.session === undefined ? give(run) : sessions.open(run.caller.subject, run.session).then(() => give(run)),

    // What it ran for so long was no rest.
    after({ caller, session }) {
      if (session !== undefined) sessions.touch(caller.subject, session);
    },
  };
}
