import type { ListeningState } from '../contract/status.ts';
import { systemClock } from '../core/clock.ts';
import { type Listener, startListener } from '../listeners/server.ts';
import type { Config } from './config.ts';
import { KeyWatch } from './key-watch.ts';
import { Listening } from './listening.ts';
import { LockAfter } from './lock-after.ts';
import { type Core, openCore, type Surroundings } from './open-core.ts';
import { oneLine } from './own-packs/one-line.ts';
import { keepUnreachable } from './unreachable.ts';

const SOON_MS = 200;

/** The memory, and the listener that its owner switches. */
export interface Program extends Core {
  readonly listening: Listening;
  /** Where it is set. */
  readonly lockAfter: LockAfter | undefined;
}

interface Whole extends Omit<Surroundings, 'listening' | 'windowSessions'> {
  /** Where the built window lies, if it is to be served to browsers. */
  readonly pages?: string | undefined;
  readonly onListening?: (state: ListeningState) => void;
  /** For how many milliseconds the owner has been away, where the system knows. */
  readonly away?: () => number;
  /** The key came or went. */
  readonly onKey?: () => void;
}

/** What both roots run: the desktop adds a window to it. Nobody is let in yet. */
export async function assemble(config: Config, whole: Whole): Promise<Program> {
  await using opened = new AsyncDisposableStack();
  let listening: Listening | undefined;
  const state = (): ListeningState => listening?.state ?? { at: 'paused' };
  const core = opened.use(
    await openCore(config, {
      packLog: printLine,
      ...whole,
      listening: state,
      windowSessions: () => listening?.listener?.windowSessions,
    }),
  );
  const { store, tokens, finder, packs, sidecar } = core;
  const { clock = systemClock, away, onKey } = whole;
  const { lockAfter: minutes } = config;
  const key = new KeyWatch(store);
  if (onKey) opened.use(key.onChange(onKey));
  const lockAfter =
    minutes === undefined ? undefined : opened.use(new LockAfter({ store, clock, minutes, away, onLock: () => key.look() }));
  const perform = key.watching(lockAfter?.attended(core.perform) ?? core.perform);
  // Whoever connects sees them all from the beginning.
  await core.loadPacks();
  const start = (): Promise<Listener> =>
    startListener({
      perform,
      catalogue: packs.engine.catalogue,
      tokens,
      onChange: (hear) => store.onChange(hear),
      onKey: (hear) => key.onChange(hear),
      folder: config.folder,
      address: config.address,
      allowedHosts: config.allowedHosts,
      pages: whole.pages,
      version: whole.version,
      clock,
      // What went wrong may hold what was sent, so only the question and who asked are told.
      log: ({ operation, client }) => console.error(`Something went wrong inside: ${operation}, asked by ${client}.`),
    });
  const hear = (now: ListeningState): void => {
    keepUnreachable(config.folder, now);
    whole.onListening?.(now);
  };
  opened.defer(() => keepUnreachable(config.folder, undefined));
  listening = opened.use(new Listening(start, hear));
  // Whoever searches should not have to wait; until it is there, answers say that they are partial. But whoever is there at
  // once asks what there is, and comes first. What an earlier start left behind can wait as well; without the key it is tried
  // again when that has come.
  const later = (): void => {
    void finder.prepare().catch(() => undefined);
    void packs.resume().catch(() => undefined);
    // An older one works as well.
    void import('./connect/launch.ts').then(({ refreshBridge }) => refreshBridge(config.folder)).catch(() => undefined);
    void sidecar.wake().catch(() => undefined);
  };
  opened.use(clock.after(SOON_MS, later));
  const rest = opened.move();
  return { ...core, perform, listening, lockAfter, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

/** A pack's author may say what would move the cursor, or look like a line of ours. */
const printLine = (pack: string, text: string): void => console.error(`${pack}: ${oneLine(text)}`);
