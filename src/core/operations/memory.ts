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

/** One method for each row of the operations table. The compiler compares the two. */
export type Memory = {
  readonly [Name in OperationName]: (
    caller: Caller,
    input: OperationInput<Name>,
    during: CallContext,
  ) => Promise<OperationOutput<Name>>;
};

/** The owner's settings, which are stored outside the memory. */
export interface OwnerSettings {
  snapshot(): SettingsSnapshot;
  /** Stores a setting for the next start; undefined restores its default. Throws a `Failure` if the value is invalid. */
  change(name: string, value: string | undefined): SettingRow;
}

/** The program that serves this memory. */
export interface ProgramInfo {
  readonly version: string;
  /** Whether agents can connect. */
  listening(): ListeningState;
  /** Absent in a build that cannot check for updates. */
  readonly updates?: UpdateSource | undefined;
  /** Absent if the program serves no window to browsers. */
  readonly windowSessions?: () => WindowSessionPort | undefined;
}

/** The browser sessions of the window. */
export interface WindowSessionPort {
  list(): readonly WindowSession[];
  /** Returns false if there is no such session. */
  end(id: string): boolean;
}

/** The server of the update check. */
export interface UpdateSource {
  /** Its host name. */
  readonly host: string;
  newest(signal: AbortSignal): Promise<Release>;
}

/** What the operations depend on. */
export interface MemoryDeps {
  readonly store: MemoryStore;
  readonly scheduler: FairScheduler;
  readonly tokens: TokenRegistry;
  readonly finder: Finder;
  readonly packs: PackServices;
  readonly credentials: CredentialStore;
  readonly embeddings: Embeddings;
  readonly clock: Clock;
  /** Facts that the window forgot less than ten seconds ago. */
  readonly forgotten: ForgetUndoBuffer;
  /** Whether a value that looks like a credential is refused, or stored with a warning. */
  readonly secrets: 'refuse' | 'warn';
  readonly settings: OwnerSettings;
  readonly program: ProgramInfo;
  /** Absent if the program does not look for clients on this machine. */
  readonly clients?: (() => Promise<ClientConnections>) | undefined;
}
