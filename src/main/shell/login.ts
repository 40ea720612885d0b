import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { app } from 'electron';
import { Failure } from '../../contract/failure.ts';
import { writePrivateFile } from '../../core/file/files.ts';
import { desktopEntry } from './desktop-entry.ts';

/** Command line option with which the system starts the program at login. */
const AT_LOGIN = '--at-login';

/**
 * True if the system starts the program at login. Undefined if the program is not packaged, because the system then has no
 * program to start.
 */
export function startsAtLogin(): boolean | undefined {
  if (process.platform !== 'linux' && !app.isPackaged) return undefined;
  return process.platform === 'linux' ? existsSync(autostartFile()) : app.getLoginItemSettings({ args: [AT_LOGIN] }).openAtLogin;
}

export function startAtLogin(starts: boolean): void {
  if (process.platform !== 'linux') app.setLoginItemSettings({ openAtLogin: starts, args: [AT_LOGIN] });
  else if (starts) orFail(writeEntry);
  else orFail(() => rmSync(autostartFile(), { force: true }));
}

function writeEntry(): void {
  mkdirSync(dirname(autostartFile()), { recursive: true });
  writePrivateFile(autostartFile(), desktopEntry([...command(), AT_LOGIN]));
}

function orFail(change: () => void): void {
  try {
    change();
  } catch (cause) {
    const why = 'The autostart folder in your configuration folder cannot be changed. Check its permissions.';
    throw new Failure('unavailable', why, { cause });
  }
}

export function wasStartedAtLogin(args: readonly string[]): boolean {
  return args.includes(AT_LOGIN) || (process.platform === 'darwin' && app.getLoginItemSettings().wasOpenedAtLogin);
}

/** Returns the autostart file's path, as the XDG autostart specification defines it. */
function autostartFile(): string {
  const config = process.env['XDG_CONFIG_HOME'] ?? '';
  return join(isAbsolute(config) ? config : join(homedir(), '.config'), 'autostart', 'helmdeck-memory.desktop');
}

/**
 * Returns the command that starts this program. For an AppImage, this is the AppImage file, because its content runs from a
 * temporary folder.
 */
function command(): string[] {
  if (app.isPackaged) return [process.env['APPIMAGE'] ?? process.execPath];
  return [process.execPath, app.getAppPath()];
}
