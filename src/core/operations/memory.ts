import type { Input, OperationName, Output } from '../../contract/operations.ts';
import type { SettingRow, StartedWith } from '../../contract/settings.ts';
import type { ListeningState } from '../../contract/status.ts';
import type { Release } from '../../contract/updates.ts';
import type { WindowSession } from '../../contract/window-session.ts';
import type { Caller } from '../caller.ts';
import type { Clients } from '../clients.ts';
import type { Clock } from '../clock.ts';
import type { During } from '../during.ts';
import type { Embeddings } from '../embeddings.ts';
import type { Finder } from '../finder.ts';
import type { ForgottenFacts } from '../forgotten-facts.ts';
import type { KeptCredentials } from '../packs/kept-credentials.ts';
import type { Packs } from '../packs/packs.ts';
import type { MemoryStore } from '../store.ts';
import type { Tokens } from '../tokens.ts';
import type { Turns } from '../turns.ts';

/** Exactly what the table of operations says can be asked; the compiler compares. */
export type Memory = {
  readonly [Name in OperationName]: (caller: Caller, input: Input<Name>, during: During) => Promise<Output<Name>>;
};

/** What its owner has set, where that is kept outside of the memory. */
export interface OwnerSettings {
  told(): StartedWith;
  /** Keeps it for the next start, undefined: as usual. A `Failure` says why it cannot be. */
  change(name: string, value: string | undefined): SettingRow;
}

/** What serves this memory, as it says itself. */
export interface Program {
  readonly version: string;
  /** Whether agents can come. */
  listening(): ListeningState;
  /** Absent in a build that has no place to ask. */
  readonly updates?: Updates | undefined;
  /** Absent where no window is served to browsers. */
  readonly windowSessions?: () => WindowSessions | undefined;
}

/** Browsers that have the window open. */
export interface WindowSessions {
  list(): readonly WindowSession[];
  /** Whether there was such a session to end. */
  end(id: string): boolean;
}

/** Where it can be asked for a newer version. */
export interface Updates {
  /** Who is asked. */
  readonly host: string;
  newest(signal: AbortSignal): Promise<Release>;
}

/** What the use cases need. */
export interface MemoryDeps {
  readonly store: MemoryStore;
  readonly turns: Turns;
  readonly tokens: Tokens;
  readonly finder: Finder;
  readonly packs: Packs;
  readonly credentials: KeptCredentials;
  readonly embeddings: Embeddings;
  readonly clock: Clock;
  /** What the window forgot a moment ago. */
  readonly forgotten: ForgottenFacts;
  /** What happens to a value that looks like a credential. */
  readonly secrets: 'refuse' | 'warn';
  readonly settings: OwnerSettings;
  readonly program: Program;
  /** Absent where nobody's programs are looked for. */
  readonly clients?: (() => Promise<Clients>) | undefined;
}
