import { absoluteCliCommand } from '../../contract/cli-command.ts';
import { Failure } from '../../contract/failure.ts';
import { BRIEF } from '../../contract/limits.ts';
import { DEFAULT_ADDRESS } from '../../contract/names.ts';
import { CaptureChoices } from '../access/capture-choices.ts';
import type { TokenRegistry } from '../access/token-registry.ts';
import { WriteLimit } from '../access/write-limit.ts';
import { Receipts } from '../brief/receipts.ts';
import { Inbox } from '../inbox/inbox.ts';
import { createPropose, type RunAccepted } from '../inbox/propose.ts';
import { memoryPacks } from '../packs/builtin/memory.ts';
import { routePack } from '../packs/builtin/route.ts';
import { type CredentialSources, CredentialStore } from '../packs/credential-store.ts';
import { createPackServices, type PackServices, type PackServicesOptions } from '../packs/pack-services.ts';
import type { Finder } from '../search/finder.ts';
import { ForgetUndoBuffer } from '../store/forget-undo-buffer.ts';
import type { MemoryStore } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { brief } from './brief.ts';
import type { ClientConnections } from './clients-port.ts';
import { type Embeddings, noEmbeddings } from './embeddings-port.ts';
import { embeddings as embeddingOperations } from './embeddings.ts';
import { facts } from './facts.ts';
import { FairScheduler } from './fair-scheduler.ts';
import { createHold } from './held-writes.ts';
import { inbox } from './inbox.ts';
import { type MeaningModel, type MeaningVectors, noMeaning } from './meaning-port.ts';
import { meaning as meaningOperations } from './meaning.ts';
import type { BriefSettings, Memory, MemoryDeps, OwnerSettings, ProgramInfo } from './memory.ts';
import { owner } from './owner.ts';
import { packs as packOperations } from './packs.ts';
import { createPerform, type Perform } from './perform.ts';
import { pipelines } from './pipelines.ts';
import { previewImport } from './preview-import.ts';
import { search } from './search.ts';
import { transfer } from './transfer.ts';
import { undo } from './undo.ts';
import { upkeep } from './upkeep.ts';
import { views } from './views.ts';

interface CoreOptions {
  readonly store: MemoryStore;
  readonly tokens: TokenRegistry;
  readonly finder: Finder;
  readonly clock: Clock;
  readonly secrets?: 'refuse' | 'warn';
  readonly writesPerMinute?: number | undefined;
  readonly packs?: Omit<PackServicesOptions, 'store' | 'clock' | 'tokens'>;
  readonly settings?: OwnerSettings;
  /** The keychain and the settings that contain the owner's credentials for external services. */
  readonly credentials?: CredentialSources;
  /** Loads the module that connects clients. Called on first use. */
  readonly clients?: (() => Promise<ClientConnections>) | undefined;
  readonly embeddings?: Embeddings;
  readonly meaning?: MeaningModel;
  readonly meaningVectors?: MeaningVectors;
  readonly program?: ProgramInfo;
  readonly brief?: BriefSettings;
}

export interface Core extends Disposable {
  readonly perform: Perform;
  readonly packs: PackServices;
}

export function createCore({
  store,
  tokens,
  finder,
  clock,
  secrets = 'refuse',
  writesPerMinute,
  packs: options,
  credentials: sources = {},
  clients,
  embeddings = noEmbeddings,
  meaning = noMeaning,
  meaningVectors,
  settings = NO_SETTINGS,
  program = NOT_SERVED,
  brief: briefSettings = { bytes: BRIEF.bytes, receipts: true },
}: CoreOptions): Core {
  const credentials = new CredentialStore({ ...sources, store, clock, packs: () => packs.engine.catalogue.all });
  const packs = createPackServices({ credentials, ...options, store, clock, tokens });
  const scheduler = new FairScheduler();
  const forgotten = new ForgetUndoBuffer(store, clock);
  const receipts = new Receipts(store);
  const items = new Inbox({ store, scheduler });
  const captures = new CaptureChoices(store.vault);
  const run: RunAccepted = (caller, name, input, during) => perform(caller, name, input, during);
  const deps: MemoryDeps = {
    inbox: items,
    captures,
    propose: createPropose({ inbox: items, captures }, run),
    forgotten,
    store,
    scheduler,
    tokens,
    finder,
    packs,
    credentials,
    embeddings,
    meaning,
    meaningVectors,
    clock,
    secrets,
    settings,
    program,
    clients,
    brief: briefSettings,
    receipts,
  };
  const memory = createMemory(deps, run);
  const limit = writesPerMinute === undefined ? undefined : new WriteLimit(clock, writesPerMinute);
  const perform: Perform = createPerform(memory, { limit, scheduler, store, hold: createHold(memory, deps) });
  const { catalogue } = packs.engine;
  for (const pack of [...memoryPacks(perform), routePack({ ...packs, catalogue })]) catalogue.add(pack);
  return {
    perform,
    packs,
    [Symbol.dispose]: () => {
      forgotten[Symbol.dispose]();
      receipts[Symbol.dispose]();
      items[Symbol.dispose]();
      packs[Symbol.dispose]();
    },
  };
}

const createMemory = (deps: MemoryDeps, perform: RunAccepted): Memory => ({
  ...facts(deps),
  ...search(deps),
  ...views(deps),
  ...brief(deps),
  ...transfer(deps),
  ...previewImport(deps),
  ...packOperations(deps),
  ...embeddingOperations(deps),
  ...meaningOperations(deps),
  ...pipelines(deps),
  ...undo(deps),
  ...inbox(deps, perform),
  ...upkeep(deps),
  ...owner(deps),
});

const NOT_SERVED: ProgramInfo = { version: 'unknown', listening: () => ({ at: 'paused' }) };

const NO_SETTINGS: OwnerSettings = {
  snapshot: () => ({ folder: '', command: absoluteCliCommand(), address: DEFAULT_ADDRESS, settings: [] }),
  change() {
    throw new Failure('unavailable', 'This memory was opened without settings; there is nothing to change.');
  },
};
