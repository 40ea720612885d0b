import type { Memory, MemoryDeps } from './memory.ts';

/** Secrets for services outside: put in and taken back by the owner, used by packs, and shown to nobody. */
export const credentials = ({
  credentials: kept,
}: MemoryDeps): Pick<Memory, 'credentials' | 'setCredential' | 'dropCredential'> => ({
  credentials: () => kept.list(),

  async setCredential(_caller, input) {
    await kept.set(input);
    return { name: input.name };
  },

  async dropCredential(_caller, { name }) {
    await kept.delete(name);
    return { name };
  },
});
