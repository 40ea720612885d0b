import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { app } from 'electron';
import { Failure } from '../../contract/failure.ts';
import { writePrivateFile } from '../../core/file/files.ts';
import { desktopEntry } from './desktop-entry.ts';

/** Says to the program that its owner did not start it by hand. */
const AT_LOGIN = '--at-login';

/**
 * Whether the system starts the program with its owner's session; it is the system that remembers this, not we. Undefined where
 * there is nothing to start but a source folder.
 */
export function startsAtLogin(): boolean | undefined {
  if (process.platform !== 'linux' && !app.isPackaged) return undefined;
  return process.platform === 'linux' ? existsSync(autostartFile()) : app.getLoginItemSettings({ args: [AT_LOGIN] }).openAtLogin;
}

export function startAtLogin(starts: boolean): void {
  if (process.platform !== 'linux') app.setLoginItemSettings({ openAtLogin: starts, args: [AT_LOGIN] });
  else if (starts) orSay(writeEntry);
  else orSay(() => rmSync(autostartFile(), { force: true }));
}

function writeEntry(): void {
  mkdirSync(dirname(autostartFile()), { recursive: true });
  writePrivateFile(autostartFile(), desktopEntry([...command(), AT_LOGIN]));
}

function orSay(change: () => void): void {
  try {
    change();
  } catch (cause) {
    const why = 'The autostart folder among your settings cannot be changed; check what stands there and its permissions.';
    throw new Failure('unavailable', why, { cause });
  }
}

export function wasStartedAtLogin(args: readonly string[]): boolean {
  return args.includes(AT_LOGIN) || (process.platform === 'darwin' && app.getLoginItemSettings().wasOpenedAtLogin);
}

/** Where the XDG autostart specification has it. */
function autostartFile(): string {
  const config = process.env['XDG_CONFIG_HOME'] ?? '';
  return join(isAbsolute(config) ? config : join(homedir(), '.config'), 'autostart', 'helmdeck-memory.desktop');
}

/** An AppImage runs from a place that is gone afterwards. */
function command(): string[] {
  if (app.isPackaged) return [process.env['APPIMAGE'] ?? process.execPath];
  return [process.execPath, app.getAppPath()];
}
