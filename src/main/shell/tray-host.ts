import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';

/** By its full path: what a search of the PATH finds may be anybody's. */
const DBUS_SEND = '/usr/bin/dbus-send';
const PATIENCE_MS = 1000;
const QUESTION = [
  '--session',
  '--print-reply',
  '--dest=org.freedesktop.DBus',
  '/org/freedesktop/DBus',
  'org.freedesktop.DBus.NameHasOwner',
  'string:org.kde.StatusNotifierWatcher',
];

/**
 * Whether anybody shows the icons of programs. Only on Linux it may be nobody, and a window that hid itself there would be out of its
 * owner's reach. Where we cannot find out, nobody does.
 */
export function hasTrayHost(platform: NodeJS.Platform = process.platform): Promise<boolean> {
  if (platform !== 'linux') return Promise.resolve(true);
  if (!existsSync(DBUS_SEND)) return Promise.resolve(false);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  execFile(DBUS_SEND, QUESTION, { timeout: PATIENCE_MS }, (error, answer) => resolve(!error && /boolean true/.test(answer)));
  return promise;
}
