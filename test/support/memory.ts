import { onTestFinished } from 'vitest';
import { DEFAULT_SCOPES } from '../../src/contract/names.ts';
import type { OperationName, OperationOutput, OperationRequest } from '../../src/contract/operations.ts';
import type { TokenScope } from '../../src/contract/token.ts';
import type { Caller } from '../../src/core/access/caller.ts';
import { TokenRegistry } from '../../src/core/access/token-registry.ts';
import type { FactMeaning } from '../../src/core/meaning/nearest.ts';
import { createCore } from '../../src/core/operations/create-core.ts';
import type { Embeddings } from '../../src/core/operations/embeddings-port.ts';
import type { MeaningModel, MeaningVectors } from '../../src/core/operations/meaning-port.ts';
import type { Perform } from '../../src/core/operations/perform.ts';
import type { CredentialSources } from '../../src/core/packs/credential-store.ts';
import type { PackServices, PackServicesOptions } from '../../src/core/packs/pack-services.ts';
import { Finder } from '../../src/core/search/finder.ts';
import type { MemoryStore, Quota } from '../../src/core/store/store.ts';
import { openChosenStore } from './chosen-store.ts';
import { type ManualClock, manualClock } from './clock.ts';
import { withKey } from './store.ts';
import { tempFolder } from './temp-folder.ts';

export const aCaller = (over: Partial<Caller> & { may?: readonly TokenScope[] } = {}): Caller => {
  const { may = DEFAULT_SCOPES, ...rest } = over;
  return { subject: 'me', client: 'claude-code', transport: 'mcp', token: 'token-1', scopes: new Set(may), ...rest };
};

export const theOwner = aCaller({ client: 'command-line', transport: 'owner', token: '', may: ['admin'], owner: true });

interface Options {
  readonly folder?: string;
  readonly clock?: ManualClock;
  readonly quota?: Quota;
  readonly secrets?: 'refuse' | 'warn';
  readonly writesPerMinute?: number;
  readonly packs?: Omit<PackServicesOptions, 'store' | 'clock'>;
  readonly credentials?: CredentialSources;
  readonly embeddings?: Embeddings;
  readonly meaningModel?: MeaningModel;
  readonly meaningVectors?: MeaningVectors;
  readonly keyless?: boolean;
  /** Finds facts by their meaning. If absent, facts are found by their words only. */
  readonly meaning?: FactMeaning;
  /** Opens the store of the memory, instead of a store in a file. */
  readonly store?: MemoryStore;
}

export interface TestMemory {
  readonly store: MemoryStore;
  readonly tokens: TokenRegistry;
  readonly clock: ManualClock;
  readonly folder: string;
  readonly perform: Perform;
  readonly packs: PackServices;
  /** Calls operations as one caller, with inputs checked by the compiler. */
  readonly as: (
    caller: Caller,
  ) => <Name extends OperationName>(name: Name, input: OperationRequest<Name>) => Promise<OperationOutput<Name>>;
}

/** Opens a real memory in its own file, and calls it through `perform`. */
export async function openTestMemory(options: Options = {}): Promise<TestMemory> {
  const {
    folder = tempFolder(),
    clock = manualClock(),
    secrets = 'refuse',
    quota,
    writesPerMinute,
    packs,
    credentials,
    embeddings,
    meaningModel,
    meaningVectors,
    keyless = false,
    meaning,
  } = options;
  const sources = keyless ? () => [] : withKey();
  const store = options.store ?? (await openChosenStore({ folder, clock, sources, ...(quota && { quota }) }));
  const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  onTestFinished(async () => {
    await tokens[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  const door = createCore({
    store,
    tokens,
    finder: new Finder(store, { meaning }),
    clock,
    secrets,
    writesPerMinute,
    ...(packs && { packs }),
    ...(credentials && { credentials }),
    ...(embeddings && { embeddings }),
    ...(meaningModel && { meaning: meaningModel }),
    ...(meaningVectors && { meaningVectors }),
  });
  onTestFinished(() => door[Symbol.dispose]());
  const { perform } = door;
  return {
    store,
    tokens,
    clock,
    folder,
    perform,
    packs: door.packs,
    as: (caller) => (name, input) => perform(caller, name, input),
  };
}
