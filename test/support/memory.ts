import { onTestFinished } from 'vitest';
import { TOKEN_SCOPES } from '../../src/contract/limits.ts';
import type { OperationName, Output, Request } from '../../src/contract/operations.ts';
import type { TokenScope } from '../../src/contract/token.ts';
import type { Caller } from '../../src/core/caller.ts';
import { openDoor } from '../../src/core/door.ts';
import type { Embeddings } from '../../src/core/embeddings.ts';
import { Finder } from '../../src/core/finder.ts';
import { openStore } from '../../src/core/open-store.ts';
import type { CredentialPlaces } from '../../src/core/packs/kept-credentials.ts';
import type { Packs, PacksOptions } from '../../src/core/packs/packs.ts';
import type { Perform } from '../../src/core/perform.ts';
import type { MemoryStore, Quota } from '../../src/core/store.ts';
import { Tokens } from '../../src/core/tokens.ts';
import { type HandClock, handClock } from './clock.ts';
import { withKey } from './store.ts';
import { tempFolder } from './temp-folder.ts';

export const aCaller = (over: Partial<Caller> & { may?: readonly TokenScope[] } = {}): Caller => {
  const { may = TOKEN_SCOPES.filter((scope) => scope !== 'admin'), ...rest } = over;
  return { subject: 'me', client: 'claude-code', transport: 'mcp', token: 'token-1', scopes: new Set(may), ...rest };
};

export const theOwner = aCaller({ client: 'command-line', transport: 'owner', token: '', may: ['admin'], owner: true });

interface Options {
  readonly folder?: string;
  readonly clock?: HandClock;
  readonly quota?: Quota;
  readonly secrets?: 'refuse' | 'warn';
  readonly writesPerMinute?: number;
  readonly packs?: Omit<PacksOptions, 'store' | 'clock'>;
  readonly credentials?: CredentialPlaces;
  readonly embeddings?: Embeddings;
  readonly keyless?: boolean;
}

export interface OpenedMemory {
  readonly store: MemoryStore;
  readonly tokens: Tokens;
  readonly clock: HandClock;
  readonly folder: string;
  readonly perform: Perform;
  readonly packs: Packs;
  /** Asks as one caller, with the input checked by the compiler. */
  readonly as: (caller: Caller) => <Name extends OperationName>(name: Name, input: Request<Name>) => Promise<Output<Name>>;
}

/** A real memory in a file of its own, asked through its one door. */
export async function openMemory(options: Options = {}): Promise<OpenedMemory> {
  const {
    folder = tempFolder(),
    clock = handClock(),
    secrets = 'refuse',
    quota,
    writesPerMinute,
    packs,
    credentials,
    embeddings,
    keyless = false,
  } = options;
  const sources = keyless ? () => [] : withKey();
  const store = await openStore({ folder, clock, sources, ...(quota && { quota }) });
  const tokens = await Tokens.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  onTestFinished(async () => {
    await tokens[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  const door = openDoor({
    store,
    tokens,
    finder: new Finder(store),
    clock,
    secrets,
    writesPerMinute,
    ...(packs && { packs }),
    ...(credentials && { credentials }),
    ...(embeddings && { embeddings }),
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
