import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isReadable } from '../src/contract/status.ts';
import { TokenRegistry } from '../src/core/access/token-registry.ts';
import { createCore } from '../src/core/operations/create-core.ts';
import type { Pack } from '../src/core/packs/pack.ts';
import { Finder } from '../src/core/search/finder.ts';
import { systemClock } from '../src/core/time/clock.ts';
import { startListener } from '../src/listeners/listener.ts';
import { type Options, ours } from './memory.ts';

export interface Served extends AsyncDisposable {
  readonly tokens: TokenRegistry;
  readonly url: string;
  readonly port: number;
}

/** Our store with the given number of facts, behind our listener. */
export async function served(facts: number, options?: Options, packs: readonly Pack[] = []): Promise<Served> {
  await using opened = new AsyncDisposableStack();
  const { store } = opened.use(await ours(facts, options));
  const tokens = opened.use(await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false }));
  const finder = opened.use(new Finder(store));
  const core = opened.use(createCore({ store, tokens, finder, clock: systemClock, packs: { packs } }));
  const { perform } = core;
  const folder = mkdtempSync(join(tmpdir(), 'helmdeck-bench-served-'));
  opened.defer(() => rmSync(folder, { recursive: true }));
  const { url } = opened.use(
    await startListener({
      perform,
      catalogue: core.packs.engine.catalogue,
      tokens,
      onChange: (hear) => store.onChange(hear),
      isReadable: () => isReadable(store.status()),
      folder,
      address: '127.0.0.1:0',
      version: 'bench',
      clock: systemClock,
    }),
  );
  const rest = opened.move();
  return { tokens, url, port: Number(new URL(url).port), [Symbol.asyncDispose]: () => rest.disposeAsync() };
}
