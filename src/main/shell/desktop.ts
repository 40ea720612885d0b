import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { app, powerMonitor, session, shell } from 'electron';
import type { ClientRow } from '../../contract/client.ts';
import { asFailure, Failure } from '../../contract/failure.ts';
import type { DesktopCalls } from '../../contract/window.ts';
import { windowCaller } from '../../listeners/window/window-result.ts';
import type { Config } from '../config/config.ts';
import type { LoadedSettings } from '../config/settings-file.ts';
import type { RunningProgram } from '../roots/assemble.ts';
import { type BuildInfo, findClaudeBundle, findWindowFolder } from '../roots/installation.ts';
import { accentStyle } from './accent.ts';
import { DesktopState } from './desktop-state.ts';
import { DesktopWindow } from './desktop-window.ts';
import { type WindowBinding, bindWindow } from './ipc.ts';
import { launchWithElectron } from './launch-model.ts';
import { startAtLogin, startsAtLogin, wasStartedAtLogin } from './login.ts';
import { servePages } from './pages.ts';
import { registerShortcut, type Shortcut } from './shortcut.ts';
import { onAccentChange, systemAccent } from './system-accent.ts';
import { resumeListening, runTrayAction } from './tray-actions.ts';
import type { TrayAction, TrayState } from './tray-menu.ts';
import { MemoryTray, setApplicationMenu } from './tray.ts';
import type { AtLogin, WindowCall } from './window-calls.ts';

/**
 * Maximum milliseconds for closing. Stopping at the limit loses no acknowledged write, because every acknowledged write is
 * already on the disk.
 */
const CLOSING_MS = 10_000;
/** Maximum milliseconds for which startup waits for the window to appear. */
const WINDOW_MS = 1000;
/** Milliseconds that startup waits, so that the page receives its script before the main process is busy. */
const SCRIPT_MS = 25;

interface Options {
  readonly config: Config;
  readonly settings: LoadedSettings;
  readonly build: BuildInfo;
  /** Path of the folder with the built files and the icons. */
  readonly root: string;
}

type Modules = Awaited<ReturnType<typeof load>>;

/** Loads the modules that the window does not need. They are loaded later, so that the window appears sooner. */
async function load() {
  const [{ assemble }, { createWindowCalls: callsOf }] = await Promise.all([
    import('../roots/assemble.ts'),
    import('./window-calls.ts'),
  ]);
  return { assemble, callsOf };
}

/** Runs the desktop application: opens memory, window, tray and menu, and closes them in reverse order. */
export class Desktop implements AsyncDisposable {
  readonly #options: Options;
  readonly #stored: DesktopState;
  readonly #window: DesktopWindow;
  readonly #opened = new AsyncDisposableStack();
  readonly #calls = Promise.withResolvers<WindowCall>();
  #program: Promise<RunningProgram> | undefined;
  #running: RunningProgram | undefined;
  #binding: WindowBinding | undefined;
  #tray: MemoryTray | undefined;
  #startsAtLogin: boolean | undefined;
  #shortcut: Shortcut | undefined;
  /** Names of agents whose configuration no longer contains our entry. */
  #wiped: readonly string[] = [];
  /** The state that the tray and the menu show, as JSON. */
  #shown = '';
  /** False if the program must quit without asking the owner about unsaved text. */
  #mayAsk = true;
  #quitting = false;
  /** True when everything is closed, so that Electron can exit. */
  #closed = false;

  constructor(options: Options) {
    this.#options = options;
    this.#stored = new DesktopState(options.config.folder);
    this.#window = new DesktopWindow({ root: options.root, stored: this.#stored });
    this.#listenToSystem();
  }

  async run(): Promise<void> {
    const { root, build } = this.#options;
    await app.whenReady();
    app.setAboutPanelOptions({
      applicationName: 'Helmdeck Memory',
      applicationVersion: build.version,
      copyright: 'Helmdeck Memory never checks for updates without your consent. See Settings.',
    });
    if (this.#quitting) return;
    const pages = findWindowFolder();
    if (pages === undefined) throw new Failure('unavailable', "The window's files have not been built. Run: npm run build");
    const served = servePages(session.defaultSession, pages, () => accentStyle(systemAccent()));
    this.#binding = this.#opened.use(bindWindow({ calls: this.#calls.promise, window: () => this.#window.current }));
    this.#opened.use(onAccentChange(() => this.#binding?.notify({ namespace: '', kind: 'accent' })));
    if (!(wasStartedAtLogin(process.argv) && this.#stored.choices.startsHidden)) this.open();
    // Load the modules only while the renderer process builds the page.
    await this.#windowFirst(served.then(() => wait(SCRIPT_MS)));
    const modules = await load();
    await this.#windowFirst(this.#window.firstShown);
    if (this.#quitting) return;
    this.#program = this.#assemble(modules);
    const program = await this.#program;
    // If the owner quit during startup, disposing this object closes the program.
    if (this.#quitting) return;
    this.#running = this.#opened.use(program);
    // Answer the window's first request before creating the tray and opening the port.
    await this.#windowFirst(this.#binding.firstAnswer);
    if (this.#quitting) return;
    this.#startsAtLogin = startsAtLogin();
    const { shortcut } = this.#options.config;
    if (shortcut !== undefined) this.#shortcut = this.#opened.use(registerShortcut(shortcut, () => this.open()));
    this.#tray = this.#opened.use(
      new MemoryTray({
        icons: join(root, 'build/icons'),
        state: this.#state(program),
        act: (action) => void this.#act(program, action),
      }),
    );
    this.#subscribe(program);
    this.#refresh();
    await resumeListening(program);
    this.#checkClients();
    const { state } = program.listening;
    console.log(`Helmdeck Memory is running.${state.at === 'listening' ? ` Agents connect to ${state.url}.` : ''}`);
  }

  open(): void {
    if (!app.isReady() || this.#quitting) return;
    this.#checkClients();
    this.#window.open();
  }

  /** Quits without asking the owner, because a signal or a logout leaves no time to answer. */
  quit(): void {
    this.#mayAsk = false;
    app.quit();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Wait for the program, because it may still be starting.
    const program = await this.#program?.catch(() => undefined);
    if (!this.#running) await program?.[Symbol.asyncDispose]();
    await this.#opened.disposeAsync();
  }

  /**
   * Waits for a step of the window, so that opening the memory does not delay the window. Returns immediately if there is no
   * window.
   */
  async #windowFirst(step: Promise<unknown>): Promise<void> {
    if (this.#window.current) await Promise.race([step, wait(WINDOW_MS)]);
  }

  async #assemble({ assemble, callsOf }: Modules): Promise<RunningProgram> {
    const { config, settings, build } = this.#options;
    const onChange = (kind: string) => (): void => {
      this.#refresh();
      this.#binding?.notify({ namespace: '', kind });
    };
    const onClients = (clients: readonly ClientRow[]): void => {
      this.#wiped = clients.flatMap(({ state, name }) => (state === 'wiped' ? [name] : []));
      this.#refresh();
    };
    const program = await assemble(config, {
      ...settings,
      ...build,
      desktop: true,
      launchModel: launchWithElectron,
      onListening: onChange('listening'),
      onKey: onChange('key'),
      onEmbeddings: onChange('embeddings'),
      onClients,
      ownerIdleMs: idleTime,
    });
    const { listening, perform } = program;
    this.#calls.resolve(
      callsOf({
        perform,
        desktop: {
          listening: async () => listening.state,
          resumeListening: () => resumeListening(program),
          async showBundle() {
            shell.showItemInFolder(findClaudeBundle());
            return { shown: true };
          },
          atLogin: async () => this.#atLogin(),
        },
        chooseAtLogin: (choice) => this.#chooseAtLogin(choice),
        setUnsaved: (unsaved) => (this.#window.unsaved = unsaved),
        askOwner: (question) => this.#window.ask(question),
      }),
    );
    return program;
  }

  #subscribe(program: RunningProgram): void {
    const changes = program.store.onChange(({ namespace: { subject, session: packSession }, kind }) => {
      if (packSession === undefined) this.#binding?.notify({ namespace: subject, kind });
      this.#refresh();
    });
    this.#opened.use(changes);
    // Try again after sleep, because a port that was in use before may be free now.
    powerMonitor.on('resume', () => {
      this.#checkClients();
      if (program.listening.state.at === 'failed') void resumeListening(program);
    });
    powerMonitor.on('shutdown', () => this.quit());
    const { lockAfter } = program;
    powerMonitor.on('lock-screen', () => lockAfter?.lock('the screen was locked'));
    powerMonitor.on('suspend', () => lockAfter?.lock('the computer went to sleep'));
  }

  #listenToSystem(): void {
    app.on('second-instance', (_event, args) => {
      if (!wasStartedAtLogin(args)) this.open();
    });
    app.on('activate', () => this.open());
    // Keep the program running without a window: without this listener, Electron would quit.
    app.on('window-all-closed', () => undefined);
    app.on('before-quit', (event) => {
      if (this.#closed) return;
      // Make a second request to quit wait too: interrupting the close would leave work for the next startup.
      event.preventDefault();
      if (this.#quitting) return;
      if (this.#window.unsaved && this.#mayAsk) void this.#window.confirmLoss().then((confirmed) => confirmed && this.quit());
      else this.#close();
    });
  }

  #close(): void {
    this.#quitting = true;
    setTimeout(() => app.exit(1), CLOSING_MS).unref();
    void this[Symbol.asyncDispose]().finally(() => {
      this.#window.destroy();
      this.#closed = true;
      app.quit();
    });
  }

  #state({ store, listening, sidecar }: RunningProgram): TrayState {
    const { key, file } = store.status();
    const { startsHidden } = this.#stored.choices;
    return {
      listening: listening.state,
      key,
      file,
      embeddings: sidecar.state,
      startsAtLogin: this.#startsAtLogin,
      startsHidden,
      shortcut: this.#shortcut,
      wiped: this.#wiped,
    };
  }

  /**
   * Checks the clients' configuration files, because the clients do not report changes. Called when the owner is likely to look
   * at the list, and never on a timer.
   */
  #checkClients(): void {
    void this.#running?.perform(windowCaller('me'), 'clients', {}).catch(() => undefined);
  }

  /** Updates the tray and the menu if their state has changed. Called after every change of the memory. */
  #refresh(): void {
    const program = this.#running;
    if (!program || this.#quitting || !this.#tray) return;
    const state = this.#state(program);
    const text = JSON.stringify(state);
    if (text === this.#shown) return;
    this.#shown = text;
    this.#tray.show(state);
    setApplicationMenu(state, (action) => void this.#act(program, action));
  }

  #atLogin(): DesktopCalls['atLogin'] {
    const starts = this.#startsAtLogin;
    return { ...(starts !== undefined && { starts }), hidden: this.#stored.choices.startsHidden };
  }

  #chooseAtLogin({ starts, hidden }: AtLogin): DesktopCalls['atLogin'] {
    if (starts !== undefined && this.#startsAtLogin !== undefined) {
      startAtLogin(starts);
      this.#startsAtLogin = startsAtLogin();
    }
    if (hidden !== undefined) this.#stored.update({ startsHidden: hidden });
    this.#refresh();
    this.#binding?.notify({ namespace: '', kind: 'login' });
    return this.#atLogin();
  }

  async #act(program: RunningProgram, action: TrayAction): Promise<void> {
    try {
      await runTrayAction(action, {
        program,
        open: () => this.open(),
        atLogin: this.#atLogin(),
        chooseAtLogin: (choice) => this.#chooseAtLogin(choice),
      });
    } catch (error) {
      const detail = asFailure(error).message;
      void this.#window.showDialog({
        type: 'error',
        message: 'Helmdeck Memory could not run the command.',
        detail,
        buttons: ['OK'],
      });
    }
    // Force a new menu, because the system has toggled the item's checkbox even if the command failed.
    this.#shown = '';
    this.#refresh();
  }
}

/** Returns the milliseconds since the owner last used the computer. While the screen is locked, returns Infinity. */
function idleTime(): number {
  return powerMonitor.getSystemIdleState(1) === 'locked' ? Infinity : powerMonitor.getSystemIdleTime() * 1000;
}
