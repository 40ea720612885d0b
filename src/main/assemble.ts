import { systemClock } from '../core/clock.ts';
import { startListener } from '../listeners/server.ts';
import type { Config } from './config.ts';
import { type Core, openCore, type Surroundings } from './open-core.ts';

const SOON_MS = 200;

/** The memory, served. */
export interface Program extends Core {
  /** Where agents reach it. */
  readonly url: string;
}

interface Whole extends Surroundings {
  readonly version: string;
}

/** What both roots run: the desktop adds a window to it. */
export async function assemble(config: Config, whole: Whole): Promise<Program> {
  await using opened = new AsyncDisposableStack();
  const core = opened.use(await openCore(config, whole));
  const { store, tokens, finder, perform } = core;
  const { clock = systemClock } = whole;
  const listener = opened.use(
    await startListener({
      perform,
      tokens,
      onChange: (hear) => store.onChange(hear),
      folder: config.folder,
      address: config.address,
      allowedHosts: config.allowedHosts,
      version: whole.version,
      clock,
      // What went wrong may hold what was sent, so only the question and who asked are told.
      log: ({ operation, client }) => console.error(`Something went wrong inside: ${operation}, asked by ${client}.`),
    }),
  );
  // Whoever searches should not have to wait; until it is there, answers say that they are partial. But whoever is there at
  // once asks what there is, and comes first.
  const later = (): void => {
    void finder.prepare().catch(() => undefined);
  };
  opened.use(clock.after(SOON_MS, later));
  const rest = opened.move();
  return { ...core, url: listener.url, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}
