import { Failure } from '../../contract/failure.ts';
import type { Memory, MemoryDeps } from './memory.ts';

type OfClients = Pick<Memory, 'clients' | 'planConnection' | 'connectClient' | 'disconnectClient' | 'verifyClient'>;

/** Programs of others that are connected to this memory, and how. */
export const clients = ({ clients: load }: MemoryDeps): OfClients => {
  const known = async () => {
    if (load) return load();
    throw new Failure('not_found', 'No clients are looked for here; ask the program that runs on their machine.');
  };
  return {
    clients: async () => (load ? (await load()).list() : { clients: [] }),
    planConnection: async (_caller, input) => (await known()).plan(input),
    connectClient: async (_caller, input) => (await known()).connect(input),
    disconnectClient: async (_caller, input) => (await known()).disconnect(input),
    verifyClient: async (_caller, input) => (await known()).verify(input),
  };
};
