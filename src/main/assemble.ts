import { systemClock } from '../core/clock.ts';
import { startListener } from '../listeners/server.ts';
import type { Config } from './config.ts';
import { type Core, openCore, type Surroundings } from './open-core.ts';

/** The memory, served. */
export interface Program extends Core {
  /** Where agents reach it. */
  readonly url: string;
}

/** What both roots run: the desktop adds a window to it. */
export async function assemble(config: Config, surroundings: Surroundings & { readonly version: string }): Promise<Program> {
  await using opened = new AsyncDisposableStack();
  const core = opened.use(await openCore(config, surroundings));
  const { store, tokens, finder, perform } = core;
  const listener = opened.use(
    await startListener({
      perform,
      tokens,
      onChange: (hear) => store.onChange(hear),
      folder: config.folder,
      address: config.address,
      allowedHosts: config.allowedHosts,
      version: surroundings.version,
      clock: surroundings.clock ?? systemClock,
      // What went wrong may hold what was sent, so only the question and who asked are told.
      log: ({ operation, client }) => console.error(`Something went wrong inside: ${operation}, asked by ${client}.`),
    }),
  );
  // Whoever asks first should not have to wait; until it is there, answers say that they are partial.
  void finder.prepare().catch(() => undefined);
  const rest = opened.move();
  return { ...core, url: listener.url, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}
