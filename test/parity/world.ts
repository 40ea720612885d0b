import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isReadable } from '../../src/contract/status.ts';
import type { TokenScope } from '../../src/contract/token.ts';
import { TokenRegistry } from '../../src/core/access/token-registry.ts';
import { createCore } from '../../src/core/operations/create-core.ts';
import type { Perform } from '../../src/core/operations/perform.ts';
import { Finder } from '../../src/core/search/finder.ts';
import type { Entry, MemoryStore, Quota } from '../../src/core/store/store.ts';
import { startListener } from '../../src/listeners/listener.ts';
import { openChosenStore } from '../support/chosen-store.ts';
import { manualClock, type ManualClock } from '../support/clock.ts';
import { withKey } from '../support/store.ts';
import { PACKS } from './packs.ts';
import { type Name, type Outcome, WIRES } from './wires.ts';

interface Who {
  readonly subject?: string;
  readonly scopes?: readonly TokenScope[];
  readonly quarantine?: boolean;
}

/** One caller on one wire. */
export interface Surface {
  readonly name: Name;
  /** The expected provenance of its writes. */
  readonly author: { readonly client: string; readonly origin: string; readonly token: string };
  readonly ask: (operation: string, input: unknown) => Promise<Outcome>;
}

export interface World extends AsyncDisposable {
  readonly folder: string;
  readonly url: string;
  readonly clock: ManualClock;
  readonly store: MemoryStore;
  readonly tokens: TokenRegistry;
  readonly perform: Perform;
  /** The log of the program. */
  readonly log: readonly object[];
  /** Each caller has its own token and client name. Other subjects have no owner wires. */
  readonly surfaces: (who?: Who) => Promise<ReadonlyMap<Name, Surface>>;
  /** Everything stored for a subject. */
  readonly state: (subject?: string) => Promise<Kept>;
}

interface Kept {
  readonly facts: readonly (Entry & { readonly versions: readonly Entry[] })[];
  readonly activity: readonly Entry[];
  readonly runs: readonly Entry[];
}

interface Options {
  readonly quota?: Quota;
  readonly writesPerMinute?: number;
}

/** A memory in a file, served on a port, and shared by all wires. It outlives a test, so that the tests of a table can share it. */
export async function openWorld({ quota, writesPerMinute }: Options = {}): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'helmdeck-parity-'));
  const clock = manualClock();
  const store = await openChosenStore({ folder, clock, sources: withKey(), ...(quota && { quota }) });
  const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  const door = createCore({ store, tokens, finder: new Finder(store), clock, writesPerMinute, packs: { packs: PACKS } });
  const { perform } = door;
  const log: object[] = [];
  const listener = await startListener({
    address: '127.0.0.1:0',
    version: '1.2.3',
    onChange: (hear) => store.onChange(hear),
    isReadable: () => isReadable(store.status()),
    log: (trouble) => void log.push(trouble),
    perform,
    catalogue: door.packs.engine.catalogue,
    tokens,
    folder,
    clock,
    windowFolder: 'out/renderer',
  });
  const closing = new AsyncDisposableStack();
  closing.defer(() => rmSync(folder, { recursive: true, force: true }));
  closing.use(store);
  closing.use(tokens);
  closing.use(door);
  closing.defer(() => listener.close());

  const surfaces: World['surfaces'] = async ({ subject = 'me', scopes, quarantine = false } = {}) => {
    const chosen = Object.values(WIRES).filter(({ owner }) => !owner || (subject === 'me' && !scopes && !quarantine));
    const opened = chosen.map(async ({ name, transport, owner, open }) => {
      const client = owner ? 'command-line' : `${quarantine ? 'stranger' : 'agent'} ${name}`;
      const minted = owner ? undefined : await tokens.mint({ ...mintable(client, subject, scopes), quarantine });
      const { ask, close, author } = await open({
        url: listener.url,
        folder,
        token: minted?.token ?? tokens.ownerToken(),
        now: () => clock.now(),
        verify: (token) => tokens.verify(token, transport),
        perform,
      });
      closing.defer(close);
      const { token: id } = await tokens.verify(minted?.token ?? tokens.ownerToken(), transport);
      return [name, { name, author: author ?? { client, origin: transport, token: id }, ask }] as const;
    });
    return new Map(await Promise.all(opened));
  };

  const all = async (subject: string, kind: 'fact' | 'activity' | 'audit'): Promise<Entry[]> => {
    const space = store.space({ subject }, kind);
    const entries: Entry[] = [];
    for (let after; ;) {
      const page = await space.page({ sort: 'updated', limit: 500, ...(after && { after }) });
      entries.push(...page.entries);
      after = page.next;
      if (!after) return entries;
    }
  };

  return {
    folder,
    url: listener.url,
    clock,
    store,
    tokens,
    perform,
    log,
    surfaces,
    async state(subject = 'me') {
      const facts = store.space({ subject }, 'fact');
      const entries = await all(subject, 'fact');
      return {
        facts: await Promise.all(entries.map(async (entry) => ({ ...entry, versions: await facts.history(entry.key) }))),
        activity: await all(subject, 'activity'),
        runs: await all(subject, 'audit'),
      };
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

const mintable = (client: string, subject: string, scopes: Who['scopes'] = ['memory:read', 'memory:write', 'packs:run']) => ({
  name: client,
  client,
  subject,
  scopes: [...scopes],
  days: 30,
});
