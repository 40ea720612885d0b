import { Failure } from '../../contract/failure.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { isNewer } from './versions.ts';

type OwnerOperations = Pick<
  Memory,
  | 'clients'
  | 'planConnection'
  | 'connectClient'
  | 'disconnectClient'
  | 'verifyClient'
  | 'offerPacks'
  | 'setCapture'
  | 'credentials'
  | 'setCredential'
  | 'dropCredential'
  | 'settings'
  | 'changeSetting'
  | 'checkForUpdates'
  | 'windowSessions'
  | 'endWindowSession'
>;

export const owner = ({
  clients: loadClients,
  captures,
  credentials,
  packs: {
    engine: { catalogue },
  },
  settings,
  store,
  tokens,
  program: { version, updates, windowSessions },
}: MemoryDeps): OwnerOperations => {
  const connections = async () => {
    if (loadClients) return loadClients();
    throw new Failure(
      'not_found',
      'This program does not manage clients; use Helmdeck Memory on the machine where the clients run.',
    );
  };
  return {
    async clients() {
      const { clients } = loadClients ? await (await loadClients()).list() : { clients: [] };
      // While the memory is locked, the choices cannot be read.
      const choices = await captures.all().catch(() => new Map<string, never>());
      return {
        clients: clients.map((row) => {
          const packs = tokens.offers.isLoaded ? tokens.offers.of(row.id) : undefined;
          const { capture = false, accept = false } = choices.get(row.id) ?? {};
          return {
            ...row,
            ...(packs && { packs: [...packs] }),
            ...(capture && { capture }),
            ...(accept && { accept }),
          };
        }),
      };
    },
    planConnection: async (_caller, input) => (await connections()).plan(input),
    connectClient: async (_caller, input) => (await connections()).connect(input),
    disconnectClient: async (_caller, input) => (await connections()).disconnect(input),
    async offerPacks(_caller, offer) {
      // Refuse unknown names, which are usually misspelled.
      if (offer.packs !== 'all') for (const name of offer.packs) catalogue.find(name);
      return tokens.offerPacks(offer);
    },
    setCapture: async (_caller, choice) => captures.change(choice),
    verifyClient: async (_caller, input) => (await connections()).verify(input),

    credentials: () => credentials.list(),
    async setCredential(_caller, input) {
      await credentials.set(input);
      return { name: input.name };
    },
    async dropCredential(_caller, { name }) {
      await credentials.delete(name);
      return { name };
    },

    async settings({ subject }) {
      const { used, most } = await store.usage(subject);
      return {
        ...settings.snapshot(),
        ...(updates && { updates: updates.host }),
        quota: {
          facts: { used: used.facts, most: most.facts },
          bytes: { used: used.bytes, most: most.bytes },
        },
      };
    },
    changeSetting: async (_caller, { name, value }) => settings.change(name, value),

    async checkForUpdates(_caller, _input, { signal = new AbortController().signal }) {
      if (!updates) {
        throw new Failure('not_found', 'This build cannot check for updates; look for a newer version where you downloaded it.');
      }
      const newest = await updates.newest(signal).catch((error: unknown) => {
        if (error instanceof Failure || !signal.aborted) throw error;
        throw new Failure('cancelled', 'The request was cancelled; send it again if needed.', { cause: error });
      });
      return { version, ...(isNewer(newest.version, version) && { newer: newest }) };
    },

    windowSessions: async () => ({ sessions: [...(windowSessions?.()?.list() ?? [])] }),
    async endWindowSession(_caller, { id }) {
      if (windowSessions?.()?.end(id) === true) return { id };
      throw new Failure('not_found', 'There is no such browser session; list the browser sessions to see which are open.');
    },
  };
};
