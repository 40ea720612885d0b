import { homedir } from 'node:os';
import { join } from 'node:path';
import { app, dialog } from 'electron';
import { Failure } from '../contract/failure.ts';
import { prepareFolder } from '../core/file/prepare-folder.ts';
import { readBuildInfo } from './build-info.ts';
import { readConfig } from './config/config.ts';
import { readSettings } from './config/settings-file.ts';
import { ignoreDebuggerSignal, refuseRemoteControl } from './debugger-guard.ts';
import { configureProgramCall } from './program-call.ts';
import { Desktop } from './shell/desktop.ts';
import { restrictWebContents } from './shell/guard.ts';
import { registerScheme } from './shell/pages.ts';

try {
  start();
} catch (error) {
  refuse(error);
}

function start(): void {
  // Before anything is written: nobody else may read what we write, whoever writes it for us.
  process.umask(0o077);
  ignoreDebuggerSignal();
  refuseRemoteControl(app);
  const machine = { environment: process.env, platform: process.platform, home: homedir };
  const settings = readSettings(machine);
  const config = readConfig({ ...machine, environment: settings.environment });
  prepareFolder(config.folder);
  app.setPath('userData', join(config.folder, 'electron'));
  app.setPath('sessionData', join(config.folder, 'electron'));
  // One desktop to a memory: whoever starts it again wants to see it.
  if (!app.requestSingleInstanceLock()) {
    console.log('Helmdeck Memory runs already, and shows its window.');
    app.exit();
    return;
  }
  // Chromium would ask the keychain for a key to cookies that there are none of, and wait for it.
  app.commandLine.appendSwitch('password-store', 'basic');
  // Root, as in containers, has no sandbox to enable, and starts only where it was told so.
  if (!app.commandLine.hasSwitch('no-sandbox')) app.enableSandbox();
  // On Wayland no program takes keys by itself; its desktop gives them, where it does.
  if (config.shortcut !== undefined) app.commandLine.appendSwitch('enable-features', 'GlobalShortcutsPortal');
  registerScheme();
  restrictWebContents();
  const root = join(import.meta.dirname, '../..');
  configureProgramCall(root);
  const desktop = new Desktop({ config, settings, build: readBuildInfo(root), root });
  // Until it is ready Electron takes these for itself, and would go on to ask as if its owner had quit.
  void app.whenReady().then(() => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => desktop.quit());
  });
  desktop.run().catch(refuse);
}

/** A start that fails is told where its owner looks: in a window, and to whoever started it. */
function refuse(error: unknown): void {
  const why = error instanceof Failure ? error.message : 'Something went wrong inside.';
  console.error(`Helmdeck Memory cannot start: ${why}`);
  if (!(error instanceof Failure)) console.error(error);
  dialog.showErrorBox('Helmdeck Memory cannot start', why);
  app.exit(1);
}
