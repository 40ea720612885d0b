import { homedir } from 'node:os';
import type { ClientList } from '../contract/client.ts';
import { isInDoubt, type ListeningState, type SidecarState } from '../contract/status.ts';
import type { Clients } from '../core/clients.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import { openDoor } from '../core/door.ts';
import { Finder } from '../core/finder.ts';
import { credentialsHandedIn } from '../core/keys/handed-in-credentials.ts';
import { keychainItems, sessionBus } from '../core/keys/keychain.ts';
import { keySources } from '../core/keys/sources.ts';
import { tokenSecret } from '../core/keys/token-secret.ts';
import { openStore } from '../core/open-store.ts';
import type { WindowSessions } from '../core/operations/memory.ts';
import type { Packs } from '../core/packs/packs.ts';
import type { Perform } from '../core/perform.ts';
import type { MemoryStore } from '../core/store.ts';
import { Tokens } from '../core/tokens.ts';
import type { Config, Machine } from './config.ts';
import { refuseDebugger } from './debugger.ts';
import type { Network } from './egress/egress.ts';
import { KeptSettings } from './kept-settings.ts';
import type { OwnPacks, Skipped } from './own-packs/own-packs.ts';
import { packsOutside, wayOut } from './packs.ts';
import type { Settings } from './settings-file.ts';
import { SidecarOnDemand } from './sidecar/on-demand.ts';
import { updatesAt } from './updates.ts';

/** The memory and its one door. Everything that asks goes through `perform`. */
export interface Core extends AsyncDisposable {
  readonly store: MemoryStore;
  readonly tokens: Tokens;
  readonly finder: Finder;
  readonly perform: Perform;
  readonly packs: Packs;
  /** Asleep until the program is there that serves what is embedded. */
  readonly sidecar: SidecarOnDemand;
  /** Takes the packs of the owner's own that are listed; until then they are not there. */
  loadPacks(): Promise<void>;
}

export interface Surroundings extends Partial<Omit<Settings, 'environment'>>, Pick<Settings, 'environment'> {
  readonly clock?: Clock;
  /** The system's own, unless a test has another. */
  readonly network?: Network;
  /** Hears where embeddings stand whenever that changes. */
  readonly onEmbeddings?: (state: SidecarState) => void;
  /** Hears how the programs of others stand whenever somebody looked. */
  readonly onClients?: (clients: ClientList['clients']) => void;
  readonly version: string;
  /** Where a newer version can be asked for; nowhere, unless the build says so. */
  readonly updates?: string;
  /** Whether agents can come; never, where nobody serves them. */
  readonly listening?: () => ListeningState;
  /** Browsers that have the window open, while it is served to them. */
  readonly windowSessions?: () => WindowSessions | undefined;
  /** A desktop makes its key at the first start. */
  readonly desktop: boolean;
  /** Hears what packs say while they run. */
  readonly packLog?: (pack: string, text: string) => void;
}

interface ConnectionDeps {
  readonly machine: Machine;
  readonly tokens: Tokens;
  readonly folder: string;
  readonly now: () => number;
  readonly hear?: (clients: ClientList['clients']) => void;
}

/** What every way of running the program begins with. What opens last closes first. */
export async function openCore(config: Config, surroundings: Surroundings): Promise<Core> {
  const { environment, clock = systemClock, network = {}, version, updates = '', desktop, packLog: log } = surroundings;
  const { listening = () => ({ at: 'paused' }), onClients, windowSessions } = surroundings;
  const { folder, quota, secrets, writesPerMinute, fetchHosts } = config;
  refuseDebugger();
  const secret = tokenSecret(environment);
  const credentials = {
    keychain: keychainItems('the credential', { reachable: () => sessionBus(environment) }),
    handedIn: credentialsHandedIn(environment),
  };
  await using opened = new AsyncDisposableStack();
  const sources = keySources({ environment, folder, desktop });
  const store = opened.use(await openStore({ folder, clock, sources, quota }));
  const tokens = opened.use(
    await Tokens.open({
      vault: store.vault,
      now: () => store.now(),
      doubtful: () => isInDoubt(store.status().clock),
      secret,
    }),
  );
  const finder = opened.use(new Finder(store));
  const machine = { environment, platform: process.platform, home: () => homeIn(environment) };
  let clients: Promise<Clients> | undefined;
  let ownPacks: OwnPacks | undefined;
  opened.defer(() => ownPacks?.[Symbol.dispose]());
  const skipped: Skipped[] = [];
  const egress = wayOut({ ...network, clock });
  const about = { packs: packsOutside({ clock, egress, fetchHosts }), skipped, ...(log && { log }) };
  const sidecar = opened.use(sidecarOf(config, surroundings));
  const { perform, packs } = opened.use(
    openDoor({
      store,
      tokens,
      finder,
      clock,
      secrets,
      writesPerMinute,
      credentials,
      embeddings: sidecar,
      packs: about,
      settings: new KeptSettings(config, surroundings),
      program: { version, listening, updates: updatesAt(updates, egress), ...(windowSessions && { windowSessions }) },
      clients: () =>
        (clients ??= connectionsOf({ machine, tokens, folder, now: () => store.now(), ...(onClients && { hear: onClients }) })),
    }),
  );
  const load = async (): Promise<void> => {
    if (config.packs.length === 0) return;
    const { OwnPacks } = await import('./own-packs/own-packs.ts');
    ownPacks = new OwnPacks({ clock, egress });
    const loaded = await ownPacks.load(folder, config.packs, packs.engine.catalogue);
    skipped.push(...loaded.skipped);
  };
  let loading: Promise<void> | undefined;
  const loadPacks = (): Promise<void> => (loading ??= load());
  const rest = opened.move();
  return { store, tokens, finder, perform, packs, sidecar, loadPacks, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

/** As Node itself finds it, but in the environment that was handed in. */
const homeIn = (environment: Machine['environment']): string =>
  environment[process.platform === 'win32' ? 'USERPROFILE' : 'HOME'] ?? homedir();

/** Loaded when somebody asks: a start need not wait for it. */
async function connectionsOf({ machine, ...deps }: ConnectionDeps): Promise<Clients> {
  const { Connections } = await import('./connect/connections.ts');
  const { CONNECTORS } = await import('./connect/clients.ts');
  const { surroundingsOf } = await import('./connect/programs.ts');
  return new Connections({ ...deps, connectors: CONNECTORS, around: surroundingsOf(machine) });
}
const sidecarOf = (
  { folder, ollama }: Config,
  { environment, clock = systemClock, onEmbeddings }: Surroundings,
): SidecarOnDemand =>
  new SidecarOnDemand({
    folder,
    clock,
    settings: ollama,
    machine: { environment, platform: process.platform, home: homedir },
    hear: onEmbeddings,
  });
