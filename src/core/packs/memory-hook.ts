import { isAtHand } from '../../contract/status.ts';
import type { MemoryStore } from '../store.ts';
import type { Hook, Run } from './hook.ts';
import { packMemory } from './pack-memory.ts';
import type { Sessions } from './sessions.ts';

/** Gives a pack that asks for it a memory of its own, bound to its caller and session. */
export function memoryHook(store: MemoryStore, sessions: Sessions): Hook {
  const give = ({ pack, caller, session, context }: Run): undefined => {
    if (!pack.memory || !isAtHand(store.status().key)) return;
    const namespace = { subject: caller.subject, ...(session !== undefined && { session }) };
    context.memory = packMemory({ store, pack, caller, namespace });
  };
  return {
    // Also of a pack without memory: a session lives as long as something runs in it.
    before: (run) =>
      run.session === undefined ? give(run) : sessions.open(run.caller.subject, run.session).then(() => give(run)),

    // What it ran for so long was no rest.
    after({ caller, session }) {
      if (session !== undefined) sessions.use(caller.subject, session);
    },
  };
}
