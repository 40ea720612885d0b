import type { OperationInput, OperationName, OperationOutput } from '../../contract/operations.ts';
import type { SettingRow, SettingsSnapshot } from '../../contract/settings.ts';
import type { ListeningState } from '../../contract/status.ts';
import type { Release } from '../../contract/updates.ts';
import type { WindowSession } from '../../contract/window-session.ts';
import type { Caller } from '../access/caller.ts';
import type { CaptureChoices } from '../access/capture-choices.ts';
import type { TokenRegistry } from '../access/token-registry.ts';
import type { Receipts } from '../brief/receipts.ts';
import type { Inbox } from '../inbox/inbox.ts';
import type { Propose } from '../inbox/propose.ts';
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
import type { MeaningModel, MeaningVectors } from './meaning-port.ts';

/** The operations of a memory: one method for each row of the operations table. The compiler checks that no method is missing. */
export type Memory = {
  readonly [Name in OperationName]: (
    caller: Caller,
    input: OperationInput<Name>,
    context: CallContext,
  ) => Promise<OperationOutput<Name>>;
};

/** The owner's settings, which are stored outside the memory. */
export interface OwnerSettings {
  snapshot(): SettingsSnapshot;
  /**
   * Stores a setting that applies after a restart of the program. The value undefined restores the default. Throws a `Failure` if
   * the value is invalid.
   */
  change(name: string, value: string | undefined): SettingRow;
}

export interface ProgramInfo {
  readonly version: string;
  /** Returns whether agents can connect, and at which address. */
  listening(): ListeningState;
  /** Checks for updates. Absent in a build that cannot check for updates. */
  readonly updates?: UpdateSource | undefined;
  /** Returns the browser sessions of the window. Absent if the program does not serve the window to browsers. */
  readonly windowSessions?: () => WindowSessionPort | undefined;
}

export interface WindowSessionPort {
  list(): readonly WindowSession[];
  end(id: string): boolean;
}

export interface UpdateSource {
  readonly host: string;
  newest(signal: AbortSignal): Promise<Release>;
}

export interface BriefSettings {
  /** Maximum bytes of a brief. With 0, every brief is empty. */
  readonly bytes: number;
  /** Whether the activity record says what was put before which agent. */
  readonly receipts: boolean;
}

export interface MemoryDeps {
  readonly store: MemoryStore;
  readonly scheduler: FairScheduler;
  readonly tokens: TokenRegistry;
  readonly finder: Finder;
  readonly packs: PackServices;
  readonly credentials: CredentialStore;
  /** The writes that wait until the owner accepts them. */
  readonly inbox: Inbox;
  /** For which clients facts from prompts are proposed. */
  readonly captures: CaptureChoices;
  /** Proposes facts from a prompt, if the owner chose this for the client. */
  readonly propose: Propose;
  readonly embeddings: Embeddings;
  /** The model of search by meaning. */
  readonly meaning: MeaningModel;
  /** The vectors that the model made of the facts. Absent in a process without a model. */
  readonly meaningVectors?: MeaningVectors | undefined;
  readonly clock: Clock;
  /** Facts that the window forgot less than ten seconds ago, and can still restore. */
  readonly forgotten: ForgetUndoBuffer;
  /** Whether a fact that looks like a credential is refused, or stored with a warning. */
  readonly secrets: 'refuse' | 'warn';
  readonly settings: OwnerSettings;
  readonly program: ProgramInfo;
  readonly brief: BriefSettings;
  readonly receipts: Receipts;
  /** Loads the module that connects clients. Absent if the program does not look for clients on this machine. */
  readonly clients?: (() => Promise<ClientConnections>) | undefined;
}
