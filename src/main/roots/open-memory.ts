import { homedir } from 'node:os';
import type { ClientList } from '../../contract/client.ts';
import { isClockInDoubt, type ListeningState, type MeaningChoice, type SidecarState } from '../../contract/status.ts';
import { TokenRegistry } from '../../core/access/token-registry.ts';
import { keySources } from '../../core/crypto/keys/key-sources.ts';
import { openKeychainItems, hasSessionBus } from '../../core/crypto/keys/keychain.ts';
import { readProvidedCredentials } from '../../core/crypto/keys/provided-credentials.ts';
import { readTokenSecret } from '../../core/crypto/keys/token-secret.ts';
import { MeaningIndex } from '../../core/meaning/meaning-index.ts';
import type { ClientConnections } from '../../core/operations/clients-port.ts';
import { createCore } from '../../core/operations/create-core.ts';
import type { Embeddings } from '../../core/operations/embeddings-port.ts';
import type { WindowSessionPort } from '../../core/operations/memory.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { PackServices } from '../../core/packs/pack-services.ts';
import { Finder } from '../../core/search/finder.ts';
import { openStore } from '../../core/store/open-store.ts';
import type { MemoryStore } from '../../core/store/store.ts';
import { type Clock, systemClock } from '../../core/time/clock.ts';
import type { Config, HostMachine } from '../config/config.ts';
import { SettingsEditor } from '../config/settings-editor.ts';
import type { LoadedSettings } from '../config/settings-file.ts';
import type { Network } from '../egress/egress.ts';
import { createNetworkPacks, createLazyEgress } from '../egress/network-packs.ts';
import { updatesAt } from '../egress/updates.ts';
import { ChosenModel } from '../meaning/chosen-model.ts';
import { launchWithNode } from '../meaning/launch-model.ts';
import type { LaunchModel } from '../meaning/model-messages.ts';
import { ServedEmbeddings } from '../meaning/served-embeddings.ts';
import type { OwnPacks, SkippedPack } from '../own-packs/own-packs.ts';
import { LazySidecar } from '../sidecar/lazy-sidecar.ts';
import { refuseDebugger } from './debugger-guard.ts';

/** An open memory. All operations go through `perform`. */
export interface OpenMemory extends AsyncDisposable {
  readonly store: MemoryStore;
  readonly tokens: TokenRegistry;
  readonly finder: Finder;
  readonly perform: Perform;
  readonly packs: PackServices;
  /** Manages the Ollama process. Ollama is started only by the running program, not by a single command. */
  readonly sidecar: LazySidecar;
  /** Loads the owner's enabled packs. These packs are unavailable until the promise resolves. */
  loadPacks(): Promise<void>;
  /** Begins to make the vectors of facts in the background. Called only by the running program, not by a single command. */
  readonly startMeaning: () => void;
}

export interface OpenOptions extends Pick<LoadedSettings, 'environment'>, Partial<Pick<LoadedSettings, 'file' | 'fromFile'>> {
  readonly clock?: Clock;
  /** Replacements for network functions in tests. */
  readonly network?: Network;

  /** Starts the process of the bundled model. By default a Node process. */
  readonly launchModel?: LaunchModel;
  readonly onEmbeddings?: (state: SidecarState) => void;
  /** Called with the state of all agents each time an operation reads that state. */
  readonly onClients?: (clients: ClientList['clients']) => void;
  readonly version: string;
  /** Address for update checks, set at build time. If empty, the program does not check for updates. */
  readonly updates?: string;
  /** Returns whether the server accepts connections. Absent in a process without a server. */
  readonly listening?: () => ListeningState;
  /** Returns access to the browser sessions of the window. Returns undefined while the server is stopped. */
  readonly windowSessions?: () => WindowSessionPort | undefined;
  /** True for the desktop program, which creates a key at its first start. */
  readonly desktop: boolean;
  /** Called with each log line of a pack. */
  readonly packLog?: (pack: string, text: string) => void;
  /** Called with the place of an error that is not reported to a caller. */
  readonly reportError?: (where: string) => void;
}

interface ConnectionDeps {
  readonly machine: HostMachine;
  readonly embeddings: Embeddings;
  readonly tokens: TokenRegistry;
  readonly folder: string;
  readonly now: () => number;
  readonly onClients?: (clients: ClientList['clients']) => void;
}

/** Opens the memory for the program or for a single command. Disposing the result closes everything that was opened. */
export async function openMemory(config: Config, options: OpenOptions): Promise<OpenMemory> {
  const { environment, clock = systemClock, network = {}, version, updates = '', desktop, packLog: log, reportError } = options;
  const { listening = () => ({ at: 'paused' }), onClients, windowSessions } = options;
  const { folder, quota, secretPolicy: secrets, writesPerMinute, fetchHosts } = config;
  refuseDebugger();
  const secret = readTokenSecret(environment);
  const credentials = {
    keychain: openKeychainItems('the credential', { isReachable: () => hasSessionBus(environment) }),
    provided: readProvidedCredentials(environment),
  };
  await using opened = new AsyncDisposableStack();
  const sources = keySources({ environment, folder, desktop });
  const store = opened.use(await openStore({ folder, database: config.database, clock, sources, quota }));
  const tokens = opened.use(
    await TokenRegistry.open({
      vault: store.vault,
      now: () => store.now(),
      doubtful: () => isClockInDoubt(store.status().clock),
      secret,
    }),
  );
  const machine = { environment, platform: process.platform, home: () => homeIn(environment) };
  let clients: Promise<ClientConnections> | undefined;
  let ownPacks: OwnPacks | undefined;
  opened.defer(() => ownPacks?.[Symbol.dispose]());
  const skipped: SkippedPack[] = [];
  const egress = createLazyEgress({ ...network, clock });
  const packOptions = {
    packs: createNetworkPacks({ clock, egress, fetchHosts }),
    skipped,
    ...(log && { log }),
    ...(reportError && { reportError }),
  };
  const sidecar = opened.use(sidecarOf(config, options));
  const { launchModel: launch = launchWithNode } = options;
  const meaning = opened.use(new ChosenModel({ clock, sidecar, launch, choice: config.meaning }));
  const meaningIndex = opened.use(new MeaningIndex(store, meaning));
  const finder = opened.use(new Finder(store, { meaning: meaningIndex }));
  const deleteUnwanted = (): void => {
    // After a failure, the next start deletes the vectors.
    if (meaning.choice === 'off') void meaningIndex.turnOff().catch(() => undefined);
  };
  const embeddings = new ServedEmbeddings(sidecar, meaning, clock);
  const { perform, packs } = opened.use(
    createCore({
      store,
      tokens,
      finder,
      clock,
      secrets,
      writesPerMinute,
      brief: config.brief,
      credentials,
      embeddings,
      meaning,
      meaningVectors: meaningIndex,
      packs: packOptions,
      settings: new SettingsEditor(config, options, {
        HELMDECK_MEANING: (value) => {
          meaning.choose(value as MeaningChoice | undefined);
          deleteUnwanted();
        },
      }),
      program: { version, listening, updates: updatesAt(updates, egress), ...(windowSessions && { windowSessions }) },
      clients: () =>
        (clients ??= connectionsOf({
          machine,
          embeddings,
          tokens,
          folder,
          now: () => store.now(),
          ...(onClients && { onClients }),
        })),
    }),
  );
  const loadOnce = async (): Promise<void> => {
    if (config.packs.length === 0) return;
    const { OwnPacks } = await import('../own-packs/own-packs.ts');
    ownPacks = new OwnPacks({ clock, egress });
    const loaded = await ownPacks.load(folder, config.packs, packs.engine.catalogue);
    skipped.push(...loaded.skipped);
  };
  let loading: Promise<void> | undefined;
  const loadPacks = (): Promise<void> => (loading ??= loadOnce());
  const startMeaning = (): void => {
    deleteUnwanted();
    meaningIndex.start();
  };
  const rest = opened.move();
  return {
    store,
    tokens,
    finder,
    perform,
    packs,
    sidecar,
    loadPacks,
    startMeaning,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/** Returns the home folder like `os.homedir`, but reads the given environment. */
const homeIn = (environment: HostMachine['environment']): string =>
  environment[process.platform === 'win32' ? 'USERPROFILE' : 'HOME'] ?? homedir();

/** Creates the connections to agents. Imports their code only when needed, so that the program starts faster. */
async function connectionsOf({ machine: host, embeddings, ...deps }: ConnectionDeps): Promise<ClientConnections> {
  const { Connections } = await import('../connect/connections.ts');
  const { CONNECTORS } = await import('../connect/clients.ts');
  const { localMachine } = await import('../connect/programs.ts');
  const machine = { ...localMachine(host), embeddingsModel: () => embeddings.model };
  return new Connections({ ...deps, connectors: CONNECTORS, machine });
}

const sidecarOf = ({ folder, ollama }: Config, { environment, clock = systemClock, onEmbeddings }: OpenOptions): LazySidecar =>
  new LazySidecar({
    folder,
    clock,
    settings: ollama,
    machine: { environment, platform: process.platform, home: homedir },
    onStateChange: onEmbeddings,
  });
