import type { ListeningState } from '../../contract/status.ts';
import { systemClock } from '../../core/time/clock.ts';
import { type Listener, startListener } from '../../listeners/listener.ts';
import type { Config } from '../config/config.ts';
import { toSafeLine } from '../own-packs/safe-line.ts';
import { AutoLock } from './auto-lock.ts';
import { ListenerSwitch } from './listener-switch.ts';
import { type OpenMemory, openMemory, type OpenOptions } from './open-memory.ts';
import { recordUnreachable } from './unreachable.ts';

const BACKGROUND_DELAY_MS = 200;

/** The open memory, and the server for agents. */
export interface RunningProgram extends OpenMemory {
  readonly listening: ListenerSwitch;
  /** Present if HELMDECK_LOCK_AFTER is set. */
  readonly lockAfter: AutoLock | undefined;
}

interface ProgramOptions extends Omit<OpenOptions, 'listening' | 'windowSessions'> {
  /** Folder of the built window, if it is served to browsers. */
  readonly pages?: string | undefined;
  readonly onListening?: (state: ListeningState) => void;
  /** Milliseconds since the owner last used the computer, if the system knows. */
  readonly ownerIdleMs?: () => number;
  /** Called when the key becomes available or unavailable. */
  readonly onKey?: () => void;
}

/** Builds the program that both the desktop and the headless entry point run. The server does not accept connections yet. */
export async function assemble(config: Config, options: ProgramOptions): Promise<RunningProgram> {
  await using opened = new AsyncDisposableStack();
  let listening: ListenerSwitch | undefined;
  const core = opened.use(
    await openMemory(config, {
      packLog: printLine,
      reportError: (where) => console.error(`Internal error in ${where}.`),
      ...options,
      listening: () => listening?.state ?? { at: 'paused' },
      windowSessions: () => listening?.listener?.windowSessions,
    }),
  );
  const { store, tokens, finder, packs, sidecar } = core;
  const { clock = systemClock, ownerIdleMs, onKey } = options;
  const { lockAfterMinutes: minutes } = config;
  if (onKey) opened.use(store.onKeyChange(onKey));
  const lockAfter = minutes === undefined ? undefined : opened.use(new AutoLock({ store, clock, minutes, ownerIdleMs }));
  const perform = lockAfter?.trackUse(core.perform) ?? core.perform;
  // Load own packs before the first connection, so that every client sees them.
  await core.loadPacks();
  const start = (): Promise<Listener> =>
    startListener({
      perform,
      catalogue: packs.engine.catalogue,
      tokens,
      onChange: (subscriber) => store.onChange(subscriber),
      onKeyChange: (subscriber) => store.onKeyChange(subscriber),
      folder: config.folder,
      address: config.address,
      allowedHosts: config.allowedHosts,
      windowFolder: options.pages,
      version: options.version,
      clock,
      // The error can contain request data, so log only the operation and the client.
      log: ({ operation, client }) => console.error(`Internal error in ${operation}, called by ${client}.`),
    });
  const onListening = (state: ListeningState): void => {
    recordUnreachable(config.folder, state);
    options.onListening?.(state);
  };
  opened.defer(() => recordUnreachable(config.folder, undefined));
  listening = opened.use(new ListenerSwitch(start, onListening));
  // Background work waits a moment, so that the first requests are not delayed. Searches before the index is ready return
  // partial results. Without the key, this work is retried when the key becomes available.
  const startBackgroundWork = (): void => {
    void finder.prepare().catch(() => undefined);
    void packs.resume().catch(() => undefined);
    // Failure is harmless: an older bridge also works.
    void import('../connect/launch.ts').then(({ refreshBridge }) => refreshBridge(config.folder)).catch(() => undefined);
    void sidecar.wake().catch(() => undefined);
  };
  opened.use(clock.after(BACKGROUND_DELAY_MS, startBackgroundWork));
  const rest = opened.move();
  return { ...core, perform, listening, lockAfter, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

/** Pack output could contain control characters or imitate our own log lines. */
const printLine = (pack: string, text: string): void => console.error(`${pack}: ${toSafeLine(text)}`);
