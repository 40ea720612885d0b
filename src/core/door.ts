import { Failure } from '../contract/failure.ts';
import { DEFAULT_ADDRESS } from '../contract/limits.ts';
import { programCallAnywhere } from '../contract/program-call.ts';
import type { Clients } from './clients.ts';
import type { Clock } from './clock.ts';
import { type Embeddings, noEmbeddings } from './embeddings.ts';
import type { Finder } from './finder.ts';
import { ForgottenFacts } from './forgotten-facts.ts';
import { createMemory } from './operations/create-memory.ts';
import type { OwnerSettings, Program } from './operations/memory.ts';
import { memoryPacks } from './packs/builtin/memory.ts';
import { routePack } from './packs/builtin/route.ts';
import { type CredentialPlaces, KeptCredentials } from './packs/kept-credentials.ts';
import { createPacks, type Packs, type PacksOptions } from './packs/packs.ts';
import { createPerform, type Perform } from './perform.ts';
import type { MemoryStore } from './store.ts';
import type { Tokens } from './tokens.ts';
import { Turns } from './turns.ts';
import { WriteLimit } from './write-limit.ts';

interface DoorOptions {
  readonly store: MemoryStore;
  readonly tokens: Tokens;
  readonly finder: Finder;
  readonly clock: Clock;
  readonly secrets?: 'refuse' | 'warn';
  /** Undefined while there is no limit. */
  readonly writesPerMinute?: number | undefined;
  readonly packs?: Omit<PacksOptions, 'store' | 'clock' | 'tokens'>;
  /** What its owner has set. */
  readonly settings?: OwnerSettings;
  /** Where the owner's credentials for services outside are. */
  readonly credentials?: CredentialPlaces;
  /** Loaded when somebody asks for them. */
  readonly clients?: (() => Promise<Clients>) | undefined;
  readonly embeddings?: Embeddings;
  readonly program?: Program;
}

export interface Door extends Disposable {
  readonly perform: Perform;
  readonly packs: Packs;
}

/** A memory behind its one door, with the packs that run in it. */
export function openDoor({
  store,
  tokens,
  finder,
  clock,
  secrets = 'refuse',
  writesPerMinute,
  packs: options,
  credentials: places = {},
  clients,
  embeddings = noEmbeddings,
  settings = NOTHING_SET,
  program = NOT_SERVED,
}: DoorOptions): Door {
  const credentials = new KeptCredentials({ ...places, store, clock, packs: () => packs.engine.catalogue.all });
  const packs = createPacks({ credentials, ...options, store, clock, tokens });
  const turns = new Turns();
  const forgotten = new ForgottenFacts(store, clock);
  const memory = createMemory({
    forgotten,
    store,
    turns,
    tokens,
    finder,
    packs,
    credentials,
    embeddings,
    clock,
    secrets,
    settings,
    program,
    clients,
  });
  const perform = createPerform(memory, new WriteLimit(clock, writesPerMinute), turns, store);
  const { catalogue } = packs.engine;
  for (const pack of [...memoryPacks(perform), routePack({ ...packs, catalogue })]) catalogue.add(pack);
  return {
    perform,
    packs,
    [Symbol.dispose]: () => {
      forgotten[Symbol.dispose]();
      packs[Symbol.dispose]();
    },
  };
}

const NOT_SERVED: Program = { version: 'unknown', listening: () => ({ at: 'paused' }) };

const NOTHING_SET: OwnerSettings = {
  told: () => ({ folder: '', command: programCallAnywhere(), address: DEFAULT_ADDRESS, settings: [] }),
  change() {
    throw new Failure('invalid_input', 'This memory was opened without settings; there is nothing to change.');
  },
};
