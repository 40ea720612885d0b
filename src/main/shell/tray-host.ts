import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';

/** A fixed path: any user could have placed a program in a folder of the PATH. */
const DBUS_SEND = '/usr/bin/dbus-send';
const TIMEOUT_MS = 1000;
const ARGS = [
  '--session',
  '--print-reply',
  '--dest=org.freedesktop.DBus',
  '/org/freedesktop/DBus',
  'org.freedesktop.DBus.NameHasOwner',
  'string:org.kde.StatusNotifierWatcher',
];

/**
 * Whether the desktop shows tray icons. Some Linux desktops do not, and a hidden window would be unreachable there. False if this
 * cannot be determined.
 */
export function hasTrayHost(platform: NodeJS.Platform = process.platform): Promise<boolean> {
  if (platform !== 'linux') return Promise.resolve(true);
  if (!existsSync(DBUS_SEND)) return Promise.resolve(false);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  execFile(DBUS_SEND, ARGS, { timeout: TIMEOUT_MS }, (error, answer) => resolve(!error && /boolean true/.test(answer)));
  return promise;
}
