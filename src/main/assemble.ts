import type { ListeningState } from '../contract/status.ts';
import { systemClock } from '../core/time/clock.ts';
import { type Listener, startListener } from '../listeners/listener.ts';
import { AutoLock } from './auto-lock.ts';
import type { Config } from './config/config.ts';
import { ListenerSwitch } from './listener-switch.ts';
import { type OpenMemory, openMemory, type OpenOptions } from './open-memory.ts';
import { toSafeLine } from './own-packs/safe-line.ts';
import { recordUnreachable } from './unreachable.ts';

const SOON_MS = 200;

/** The memory, and the listener that its owner switches. */
export interface RunningProgram extends OpenMemory {
  readonly listening: ListenerSwitch;
  /** Where it is set. */
  readonly lockAfter: AutoLock | undefined;
}

interface Whole extends Omit<OpenOptions, 'listening' | 'windowSessions'> {
  /** Where the built window lies, if it is to be served to browsers. */
  readonly pages?: string | undefined;
  readonly onListening?: (state: ListeningState) => void;
  /** For how many milliseconds the owner has been away, where the system knows. */
  readonly away?: () => number;
  /** The key came or went. */
  readonly onKey?: () => void;
}

/** What both roots run: the desktop adds a window to it. Nobody is let in yet. */
export async function assemble(config: Config, whole: Whole): Promise<RunningProgram> {
  await using opened = new AsyncDisposableStack();
  let listening: ListenerSwitch | undefined;
  const state = (): ListeningState => listening?.state ?? { at: 'paused' };
  const core = opened.use(
    await openMemory(config, {
      packLog: printLine,
      ...whole,
      listening: state,
      windowSessions: () => listening?.listener?.windowSessions,
    }),
  );
  const { store, tokens, finder, packs, sidecar } = core;
  const { clock = systemClock, away, onKey } = whole;
  const { lockAfterMinutes: minutes } = config;
  if (onKey) opened.use(store.onKeyChange(onKey));
  const lockAfter = minutes === undefined ? undefined : opened.use(new AutoLock({ store, clock, minutes, ownerIdleMs: away }));
  const perform = lockAfter?.trackUse(core.perform) ?? core.perform;
  // Whoever connects sees them all from the beginning.
  await core.loadPacks();
  const start = (): Promise<Listener> =>
    startListener({
      perform,
      catalogue: packs.engine.catalogue,
      tokens,
      onChange: (hear) => store.onChange(hear),
      onKeyChange: (listener) => store.onKeyChange(listener),
      folder: config.folder,
      address: config.address,
      allowedHosts: config.allowedHosts,
      windowFolder: whole.pages,
      version: whole.version,
      clock,
      // What went wrong may hold what was sent, so only the question and who asked are told.
      log: ({ operation, client }) => console.error(`Something went wrong inside: ${operation}, asked by ${client}.`),
    });
  const hear = (now: ListeningState): void => {
    recordUnreachable(config.folder, now);
    whole.onListening?.(now);
  };
  opened.defer(() => recordUnreachable(config.folder, undefined));
  listening = opened.use(new ListenerSwitch(start, hear));
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
const printLine = (pack: string, text: string): void => console.error(`${pack}: ${toSafeLine(text)}`);
