import { isReadable, type ListeningState } from '../../contract/status.ts';
import { systemClock } from '../../core/time/clock.ts';
import { type Listener, startListener } from '../../listeners/listener.ts';
import type { Config } from '../config/config.ts';
import { toSafeLine } from '../own-packs/safe-line.ts';
import { AutoLock } from './auto-lock.ts';
import { ListenerSwitch } from './listener-switch.ts';
import { type OpenMemory, openMemory, type OpenOptions } from './open-memory.ts';
import { recordUnreachable } from './unreachable.ts';

const BACKGROUND_DELAY_MS = 200;

/** The open memory, and the server to which agents connect. */
export interface RunningProgram extends OpenMemory {
  readonly listening: ListenerSwitch;
  /** Present if HELMDECK_LOCK_AFTER is set. */
  readonly lockAfter: AutoLock | undefined;
}

interface ProgramOptions extends Omit<OpenOptions, 'listening' | 'windowSessions'> {
  /** Folder of the built window. Undefined if the window is not served to browsers. */
  readonly pages?: string | undefined;
  readonly onListening?: (state: ListeningState) => void;
  /** Returns the milliseconds since the owner last used the computer. Absent if the operating system does not report it. */
  readonly ownerIdleMs?: () => number;
  /** Called when the key becomes available or unavailable. */
  readonly onKey?: () => void;
}

/** Opens the memory and creates the server. Callers start the server with `listening.resume()`. */
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
  const { store, tokens, finder, packs, sidecar, startMeaning } = core;
  const { clock = systemClock, ownerIdleMs, onKey } = options;
  const { lockAfterMinutes: minutes } = config;
  if (onKey) opened.use(store.onKeyChange(onKey));
  const lockAfter = minutes === undefined ? undefined : opened.use(new AutoLock({ store, clock, minutes, ownerIdleMs }));
  const perform = lockAfter?.trackUse(core.perform) ?? core.perform;
  // Load the owner's packs before the first connection, so that every client can use the packs.
  await core.loadPacks();
  const start = (): Promise<Listener> =>
    startListener({
      perform,
      catalogue: packs.engine.catalogue,
      tokens,
      onChange: (subscriber) => store.onChange(subscriber),
      onKeyChange: (subscriber) => store.onKeyChange(subscriber),
      isReadable: () => isReadable(store.status()),
      folder: config.folder,
      address: config.address,
      allowedHosts: config.allowedHosts,
      team: config.team,
      windowFolder: options.pages,
      version: options.version,
      clock,
      warn: (problem) => console.error(problem),
      // The error can contain request data, so log only the operation and the client.
      log: ({ operation, client }) => console.error(`Internal error in ${operation}, called by ${client}.`),
    });
  const onListening = (state: ListeningState): void => {
    recordUnreachable(config.folder, state);
    options.onListening?.(state);
  };
  opened.defer(() => recordUnreachable(config.folder, undefined));
  listening = opened.use(new ListenerSwitch(start, onListening));
  // Delay background work, so that it does not slow down the first requests. Until the search index is ready, searches return
  // partial results. If the key is unavailable, the work is repeated when the key becomes available.
  const startBackgroundWork = (): void => {
    void finder.prepare().catch(() => undefined);
    startMeaning();
    void packs.resume().catch(() => undefined);
    // Ignore a failure to update the bridge, because an older bridge also works.
    void import('../connect/launch.ts').then(({ refreshLaunchers }) => refreshLaunchers(config.folder)).catch(() => undefined);
    void sidecar.wake().catch(() => undefined);
  };
  opened.use(clock.after(BACKGROUND_DELAY_MS, startBackgroundWork));
  const rest = opened.move();
  return { ...core, perform, listening, lockAfter, [Symbol.asyncDispose]: () => rest.disposeAsync() };
}

/** Logs a line of a pack, without characters that could imitate other log lines or control the terminal. */
const printLine = (pack: string, text: string): void => console.error(`${pack}: ${toSafeLine(text)}`);
