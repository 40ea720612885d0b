import type { OperationInput, OperationName, OperationOutput } from '../../contract/operations.ts';
import type { SettingRow, SettingsSnapshot } from '../../contract/settings.ts';
import type { ListeningState } from '../../contract/status.ts';
import type { Release } from '../../contract/updates.ts';
import type { WindowSession } from '../../contract/window-session.ts';
import type { Caller } from '../access/caller.ts';
import type { TokenRegistry } from '../access/token-registry.ts';
import type { CredentialStore } from '../packs/credential-store.ts';
import type { PackServices } from '../packs/pack-services.ts';
import type { Finder } from '../search/finder.ts';
import type { ForgetUndoBuffer } from '../store/forget-undo-buffer.ts';
import type { MemoryStore } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import type { CallContext } from './call-context.ts';
import type { ClientConnections } from './clients-port.ts';
import type { Embeddings } from './embeddings-port.ts';
import type { FairScheduler } from './fair-scheduler.ts';

/** Exactly what the table of operations says can be asked; the compiler compares. */
export type Memory = {
  readonly [Name in OperationName]: (
    caller: Caller,
    input: OperationInput<Name>,
    during: CallContext,
  ) => Promise<OperationOutput<Name>>;
};

/** What its owner has set, where that is kept outside of the memory. */
export interface OwnerSettings {
  snapshot(): SettingsSnapshot;
  /** Keeps it for the next start, undefined: as usual. A `Failure` says why it cannot be. */
  change(name: string, value: string | undefined): SettingRow;
}

/** What serves this memory, as it says itself. */
export interface ProgramInfo {
  readonly version: string;
  /** Whether agents can come. */
  listening(): ListeningState;
  /** Absent in a build that has no place to ask. */
  readonly updates?: UpdateSource | undefined;
  /** Absent where no window is served to browsers. */
  readonly windowSessions?: () => WindowSessionPort | undefined;
}

/** Browsers that have the window open. */
export interface WindowSessionPort {
  list(): readonly WindowSession[];
  /** Whether there was such a session to end. */
  end(id: string): boolean;
}

/** Where it can be asked for a newer version. */
export interface UpdateSource {
  /** Who is asked. */
  readonly host: string;
  newest(signal: AbortSignal): Promise<Release>;
}

/** What the use cases need. */
export interface MemoryDeps {
  readonly store: MemoryStore;
  readonly scheduler: FairScheduler;
  readonly tokens: TokenRegistry;
  readonly finder: Finder;
  readonly packs: PackServices;
  readonly credentials: CredentialStore;
  readonly embeddings: Embeddings;
  readonly clock: Clock;
  /** What the window forgot a moment ago. */
  readonly forgotten: ForgetUndoBuffer;
  /** What happens to a value that looks like a credential. */
  readonly secrets: 'refuse' | 'warn';
  readonly settings: OwnerSettings;
  readonly program: ProgramInfo;
  /** Absent where nobody's programs are looked for. */
  readonly clients?: (() => Promise<ClientConnections>) | undefined;
}
