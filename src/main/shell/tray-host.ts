import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Absolute path of dbus-send. The PATH is not searched, because other users may be able to write to its folders. */
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
 * True if the desktop shows tray icons. On Linux desktops without tray icons, the owner could not reach a hidden window. Returns
 * false if the support cannot be determined.
 */
export function hasTrayHost(platform: NodeJS.Platform = process.platform): Promise<boolean> {
  if (platform !== 'linux') return Promise.resolve(true);
  if (!existsSync(DBUS_SEND)) return Promise.resolve(false);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  execFile(DBUS_SEND, ARGS, { timeout: TIMEOUT_MS }, (error, answer) => resolve(!error && /boolean true/.test(answer)));
  return promise;
}
