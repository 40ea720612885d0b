import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { app, type BrowserWindow, clipboard, dialog, type MessageBoxOptions, powerMonitor, session, shell } from 'electron';
import type { ClientRow } from '../../contract/client.ts';
import { asFailure, Failure } from '../../contract/failure.ts';
import type { ListeningState } from '../../contract/status.ts';
import type { DesktopCalls } from '../../contract/window.ts';
import { windowCaller } from '../../listeners/window/window-result.ts';
import type { Config } from '../config/config.ts';
import type { LoadedSettings } from '../config/settings-file.ts';
import type { RunningProgram } from '../roots/assemble.ts';
import { type BuildInfo, findClaudeBundle, findWindowFolder } from '../roots/installation.ts';
import { accentStyle } from './accent.ts';
import type { ConsentQuestion } from './consent.ts';
import { DesktopState } from './desktop-state.ts';
import { type WindowBinding, bindWindow } from './ipc.ts';
import { startAtLogin, startsAtLogin, wasStartedAtLogin } from './login.ts';
import { setApplicationMenu } from './menu.ts';
import { servePages } from './pages.ts';
import { registerShortcut, type Shortcut } from './shortcut.ts';
import { onAccentChange, systemAccent } from './system-accent.ts';
import { hasTrayHost } from './tray-host.ts';
import type { TrayAction, TrayState } from './tray-menu.ts';
import { MemoryTray } from './tray.ts';
import type { AtLogin, WindowCall } from './window-calls.ts';
import { createWindow } from './window.ts';

const MCP = '/api/v1/mcp';
/** What closes hangs nowhere for longer: every acknowledged write is on the disk already. */
const CLOSING_MS = 10_000;
/** A window that does not come keeps no agent waiting for longer. */
const WINDOW_MS = 1000;
/** For its script to go over. */
const READ_MS = 25;

const LOSING: ConsentQuestion = {
  message: 'What you typed in the window is not saved.',
  detail: 'It is nowhere but in the window, and goes with it.',
  yes: 'Quit and Lose It',
  no: 'Stay',
};

interface Options {
  readonly config: Config;
  readonly settings: LoadedSettings;
  readonly build: BuildInfo;
  /** Where the built files and the icons lie. */
  readonly root: string;
}

type Modules = Awaited<ReturnType<typeof load>>;

/** All but the shell: the window waits for none of it. */
async function load() {
  const [{ assemble }, { createWindowCalls: callsOf }] = await Promise.all([
    import('../roots/assemble.ts'),
    import('./window-calls.ts'),
  ]);
  return { assemble, callsOf };
}

/** The program, its icon and its window. What opens last closes first. */
export class Desktop implements AsyncDisposable {
  readonly #options: Options;
  readonly #kept: DesktopState;
  readonly #opened = new AsyncDisposableStack();
  readonly #calls = Promise.withResolvers<WindowCall>();
  #program: Promise<RunningProgram> | undefined;
  #running: RunningProgram | undefined;
  #window: BrowserWindow | undefined;
  #bound: WindowBinding | undefined;
  #tray: MemoryTray | undefined;
  #startsAtLogin: boolean | undefined;
  #shortcut: Shortcut | undefined;
  /** Agents that lost their entry, by name. */
  #wiped: readonly string[] = [];
  /** The window, for the first time. */
  readonly #shown = Promise.withResolvers<void>();
  /** What icon and menu show, as one text to compare. */
  #told = '';
  /** The page holds what was typed and not saved. */
  #unsaved = false;
  /** Whoever quits may be asked. */
  #asks = true;
  #asking = false;
  #quitting = false;
  /** All that was open is closed. */
  #closed = false;

  constructor(options: Options) {
    this.#options = options;
    this.#kept = new DesktopState(options.config.folder);
    this.#hearTheSystem();
  }

  async run(): Promise<void> {
    const { root, build } = this.#options;
    await app.whenReady();
    app.setAboutPanelOptions({
      applicationName: 'Helmdeck Memory',
      applicationVersion: build.version,
      copyright: 'It asks nobody for a newer version by itself. Settings, in its window, say more.',
    });
    if (this.#quitting) return;
    const pages = findWindowFolder();
    if (pages === undefined) throw new Failure('unavailable', 'The window was not built; run npm run build.');
    const served = servePages(session.defaultSession, pages, () => accentStyle(systemAccent()));
    this.#bound = this.#opened.use(bindWindow({ calls: this.#calls.promise, window: () => this.#window }));
    this.#opened.use(onAccentChange(() => this.#bound?.notify({ namespace: '', kind: 'accent' })));
    if (!(wasStartedAtLogin(process.argv) && this.#kept.choices.startsHidden)) this.open();
    // The page is read through this process and made in one of its own: in that time there is something to do here.
    await this.#windowFirst(served.then(() => wait(READ_MS)));
    const modules = await load();
    await this.#windowFirst(this.#shown.promise);
    if (this.#quitting) return;
    this.#program = this.#assemble(modules);
    const program = await this.#program;
    // Whoever ended it meanwhile closes the program too.
    if (this.#quitting) return;
    this.#running = this.#opened.use(program);
    // Its first facts are asked for by now, and are answered sooner than what comes next is done.
    await this.#windowFirst(this.#bound.firstAnswer);
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
    this.#hear(program);
    this.#show();
    await this.#resume(program);
    this.#lookAtAgents();
    const { state } = program.listening;
    console.log(`Helmdeck Memory is running.${state.at === 'listening' ? ` Agents reach it at ${state.url}.` : ''}`);
  }

  /** Shows the window, in front of others; a new one when there is something to see in it. */
  open(): void {
    if (!app.isReady() || this.#quitting) return;
    this.#lookAtAgents();
    const window = this.#window;
    if (!window) {
      this.#window = this.#makeWindow();
      this.#window.once('ready-to-show', () => {
        this.open();
        this.#shown.resolve();
      });
      return;
    }
    // One that died twice in a row stays dead until somebody wants to see it.
    if (window.webContents.isCrashed()) window.reload();
    if (window.isMinimized()) window.restore();
    window.show();
    window.focus();
  }

  /** Once, whoever asks how often. Nobody is asked anything: behind a signal or the end of a session there is nobody to answer. */
  quit(): void {
    this.#asks = false;
    app.quit();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A start that is under way ends in order too.
    const program = await this.#program?.catch(() => undefined);
    if (!this.#running) await program?.[Symbol.asyncDispose]();
    await this.#opened.disposeAsync();
  }

  /** Nothing that opens the memory keeps the window waiting; where there is none, nothing is waited for. */
  async #windowFirst(step: Promise<unknown>): Promise<void> {
    if (this.#window) await Promise.race([step, wait(WINDOW_MS)]);
  }

  async #assemble({ assemble, callsOf }: Modules): Promise<RunningProgram> {
    const { config, settings, build } = this.#options;
    const onListening = (): void => this.#listeningChanged();
    const onKey = (): void => this.#keyChanged();
    const onEmbeddings = (): void => this.#embeddingsChanged();
    const onClients = (clients: readonly ClientRow[]): void => this.#agentsStand(clients);
    const hearing = { onListening, onKey, onEmbeddings, onClients };
    const program = await assemble(config, { ...settings, desktop: true, ...build, ...hearing, ownerIdleMs: away });
    const { listening, perform } = program;
    this.#calls.resolve(
      callsOf({
        perform,
        desktop: {
          listening: async () => listening.state,
          resumeListening: () => this.#resume(program),
          async showBundle() {
            shell.showItemInFolder(findClaudeBundle());
            return { shown: true };
          },
          atLogin: async () => this.#atLogin(),
        },
        chooseAtLogin: (choice) => this.#chooseAtLogin(choice),
        setUnsaved: (unsaved) => (this.#unsaved = unsaved),
        askOwner: (question) => this.#agrees(question),
      }),
    );
    return program;
  }

  #hear(program: RunningProgram): void {
    const changes = program.store.onChange(({ namespace: { subject, session: own }, kind }) => {
      if (own === undefined) this.#bound?.notify({ namespace: subject, kind });
      this.#show();
    });
    this.#opened.use(changes);
    // What could not listen before the machine slept may now.
    powerMonitor.on('resume', () => {
      this.#lookAtAgents();
      if (program.listening.state.at === 'failed') void this.#resume(program);
    });
    powerMonitor.on('shutdown', () => this.quit());
    const { lockAfter } = program;
    powerMonitor.on('lock-screen', () => lockAfter?.lock('the screen was locked'));
    powerMonitor.on('suspend', () => lockAfter?.lock('the computer went to sleep'));
  }

  #hearTheSystem(): void {
    app.on('second-instance', (_event, args) => {
      if (!wasStartedAtLogin(args)) this.open();
    });
    app.on('activate', () => this.open());
    // Closing the window is no end; who quits says so.
    app.on('window-all-closed', () => undefined);
    app.on('before-quit', (event) => {
      if (this.#closed) return;
      // Whoever asks twice waits for the same end: cut short, it would leave what only a next start can mend.
      event.preventDefault();
      if (this.#quitting) return;
      if (this.#unsaved && this.#asks) void this.#askBeforeQuitting();
      else this.#end();
    });
  }

  /** By what the page told before: one that hangs is asked nothing, and one that died holds nothing. */
  async #askBeforeQuitting(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    this.open();
    const quits = await this.#agrees(LOSING);
    this.#asking = false;
    if (quits) this.quit();
  }

  #end(): void {
    this.#quitting = true;
    setTimeout(() => app.exit(1), CLOSING_MS).unref();
    void this[Symbol.asyncDispose]().finally(() => {
      this.#leave();
      this.#closed = true;
      app.quit();
    });
  }

  #makeWindow(): BrowserWindow {
    const { root } = this.#options;
    const window = createWindow({
      preload: join(root, 'out/preload/index.cjs'),
      place: this.#kept.choices.place,
      devTools: !app.isPackaged,
    });
    window.on('close', (event) => {
      event.preventDefault();
      this.#kept.update({ place: window.getNormalBounds() });
      void this.#putAway(window);
    });
    window.once('closed', () => (this.#window = undefined));
    window.webContents.on('render-process-gone', () => (this.#unsaved = false));
    return window;
  }

  /** At the end nobody asks the page: one that is still being made would never answer. */
  #leave(): void {
    if (!this.#window) return;
    this.#kept.update({ place: this.#window.getNormalBounds() });
    this.#window.destroy();
  }

  /** Agents still need the memory: the window goes, the program stays. Nobody is left with neither window nor icon. */
  async #putAway(window: BrowserWindow): Promise<void> {
    const hosted = await hasTrayHost();
    if (!this.#kept.choices.told && !(await this.#staysRunning(window, hosted))) return app.quit();
    if (window.isDestroyed()) return;
    if (hosted) window.hide();
    else window.minimize();
  }

  async #staysRunning(window: BrowserWindow, hosted: boolean): Promise<boolean> {
    const { response } = await dialog.showMessageBox(window, {
      type: 'info',
      message: 'Agents can still reach this memory.',
      detail: hosted
        ? 'Helmdeck Memory goes on in the tray: open it there, or start it again to see this window.'
        : 'Helmdeck Memory goes on. This desktop shows no icons of programs, so its window waits among your windows; start it again to see it.',
      buttons: ['Keep Running', 'Quit'],
      defaultId: 0,
      cancelId: 0,
    });
    this.#kept.update({ told: true });
    return response === 0;
  }

  async #agrees({ message, detail, yes, no = 'Cancel' }: ConsentQuestion): Promise<boolean> {
    return (await this.#dialog({ type: 'warning', message, detail, buttons: [no, yes], defaultId: 0, cancelId: 0 })) === 1;
  }

  /** Which of its buttons was pressed. */
  async #dialog(shown: MessageBoxOptions): Promise<number> {
    const { response } = await (this.#window ? dialog.showMessageBox(this.#window, shown) : dialog.showMessageBox(shown));
    return response;
  }

  #state({ store, listening, sidecar }: RunningProgram): TrayState {
    const { key, file } = store.status();
    const { startsHidden } = this.#kept.choices;
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

  /** Nobody tells that an agent's file has changed. It is looked at when its owner may come, and never by the clock. */
  #lookAtAgents(): void {
    void this.#running?.perform(windowCaller('me'), 'clients', {}).catch(() => undefined);
  }

  #agentsStand(clients: readonly ClientRow[]): void {
    this.#wiped = clients.flatMap(({ state, name }) => (state === 'wiped' ? [name] : []));
    this.#show();
  }

  /** Called whenever anything may have changed, which is often: an agent writes, and the icon stays as it is. */
  #show(): void {
    const program = this.#running;
    if (!program || this.#quitting || !this.#tray) return;
    const state = this.#state(program);
    const shown = JSON.stringify(state);
    if (shown === this.#told) return;
    this.#told = shown;
    this.#tray.show(state);
    setApplicationMenu(state, (action) => void this.#act(program, action));
  }

  #listeningChanged(): void {
    this.#show();
    this.#bound?.notify({ namespace: '', kind: 'listening' });
  }

  #keyChanged(): void {
    this.#show();
    this.#bound?.notify({ namespace: '', kind: 'key' });
  }

  #embeddingsChanged(): void {
    this.#show();
    this.#bound?.notify({ namespace: '', kind: 'embeddings' });
  }

  #atLogin(): DesktopCalls['atLogin'] {
    const starts = this.#startsAtLogin;
    return { ...(starts !== undefined && { starts }), hidden: this.#kept.choices.startsHidden };
  }

  #chooseAtLogin({ starts, hidden }: AtLogin): DesktopCalls['atLogin'] {
    if (starts !== undefined && this.#startsAtLogin !== undefined) {
      startAtLogin(starts);
      this.#startsAtLogin = startsAtLogin();
    }
    if (hidden !== undefined) this.#kept.update({ startsHidden: hidden });
    this.#show();
    this.#bound?.notify({ namespace: '', kind: 'login' });
    return this.#atLogin();
  }

  /** A port that is taken is a state, which icon and window show, and no end. */
  async #resume({ listening }: RunningProgram): Promise<ListeningState> {
    await listening.resume().catch(() => undefined);
    return listening.state;
  }

  /** What its owner picked in icon or menu. */
  async #act(program: RunningProgram, action: TrayAction): Promise<void> {
    try {
      await this.#do(program, action);
    } catch (error) {
      const detail = asFailure(error).message;
      void this.#dialog({ type: 'error', message: 'That could not be done.', detail, buttons: ['OK'] });
    }
    // The system has ticked a box by itself, whatever came of it.
    this.#told = '';
    this.#show();
  }

  async #do(program: RunningProgram, action: TrayAction): Promise<void> {
    const { perform, listening, sidecar } = program;
    switch (action) {
      case 'open':
        this.open();
        break;
      case 'pause':
        await listening.pause();
        break;
      case 'resume':
        await this.#resume(program);
        break;
      case 'lock':
      case 'unlock':
        // Where it fails, the state says why.
        await perform(windowCaller('me'), action, {}).catch(() => undefined);
        break;
      case 'copy-address':
        if (listening.state.at === 'listening') void clipboard.writeText(listening.state.url + MCP);
        break;
      case 'toggle-embeddings':
        await sidecar.configure({ on: sidecar.state.at === 'off' });
        break;
      case 'toggle-login':
        this.#chooseAtLogin({ starts: this.#startsAtLogin !== true });
        break;
      case 'toggle-hidden':
        this.#chooseAtLogin({ hidden: !this.#kept.choices.startsHidden });
        break;
      case 'quit':
        app.quit();
        break;
    }
  }
}

/** How long nobody touched the machine; a screen that is locked is as good as nobody for ever. */
function away(): number {
  return powerMonitor.getSystemIdleState(1) === 'locked' ? Infinity : powerMonitor.getSystemIdleTime() * 1000;
}
