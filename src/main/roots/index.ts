import { homedir } from 'node:os';
import { join } from 'node:path';
import { app, dialog } from 'electron';
import { Failure } from '../../contract/failure.ts';
import { prepareFolder } from '../../core/file/prepare-folder.ts';
import { exitCodeOf } from '../cli/exit-codes.ts';
import { readConfig } from '../config/config.ts';
import { readSettings } from '../config/settings-file.ts';
import { Desktop } from '../shell/desktop.ts';
import { restrictWebContents } from '../shell/guard.ts';
import { registerScheme } from '../shell/pages.ts';
import { ignoreDebuggerSignal, refuseRemoteControl } from './debugger-guard.ts';
import { readBuildInfo, ROOT } from './installation.ts';
import { configureProgramCall } from './program-call.ts';
import { startRefusal } from './refuse-start.ts';

try {
  start();
} catch (error) {
  refuse(error);
}

function start(): void {
  // Set the umask before the first write, so that only this user can read new files, even the files that Chromium writes.
  process.umask(0o077);
  ignoreDebuggerSignal();
  refuseRemoteControl(app);
  const settings = readSettings({ environment: process.env, platform: process.platform, home: homedir });
  const config = readConfig(settings);
  prepareFolder(config.folder);
  app.setPath('userData', join(config.folder, 'electron'));
  app.setPath('sessionData', join(config.folder, 'electron'));
  // Run only one desktop program for each memory. A second start shows the window of the first program and exits.
  if (!app.requestSingleInstanceLock()) {
    console.log('Helmdeck Memory is already running. Its window is now open.');
    app.exit();
    return;
  }
  // Without this switch, Chromium waits for a keychain key to encrypt cookies, although the program uses no cookies.
  app.commandLine.appendSwitch('password-store', 'basic');
  // Respect --no-sandbox, because root (for example in a container) cannot run Chromium without that switch.
  if (!app.commandLine.hasSwitch('no-sandbox')) app.enableSandbox();
  // On Wayland, a global shortcut works only with the desktop portal.
  if (config.shortcut !== undefined) app.commandLine.appendSwitch('enable-features', 'GlobalShortcutsPortal');
  registerScheme();
  restrictWebContents();
  configureProgramCall();
  const desktop = new Desktop({ config, settings, build: readBuildInfo(), root: ROOT });
  // Wait until Electron has installed its own signal handlers. Then replace them, because Electron's handlers would ask about
  // unsaved changes.
  void app.whenReady().then(() => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => desktop.quit());
  });
  desktop.run().catch(refuse);
}

/** Shows why the program cannot start, in a dialog and on standard error. Then exits. */
function refuse(error: unknown): void {
  const { code, message } = error instanceof Failure ? error : new Failure('internal', 'An internal error occurred.');
  console.error(startRefusal(message));
  if (!(error instanceof Failure)) console.error(error);
  dialog.showErrorBox('Helmdeck Memory cannot start', message);
  app.exit(exitCodeOf(code));
}
