import { systemPreferences } from 'electron';

/** Name of the notification that macOS sends to all programs when the accent colour changes. */
const CHANGED = 'AppleColorPreferencesChangedNotification';

/** Returns the system's accent colour in hexadecimal, or an empty text if the system has none. */
export function systemAccent(): string {
  try {
    return systemPreferences.getAccentColor();
  } catch {
    return '';
  }
}

export function onAccentChange(listener: () => void): Disposable {
  if (process.platform === 'darwin') {
    const subscription = systemPreferences.subscribeNotification(CHANGED, listener);
    return { [Symbol.dispose]: () => systemPreferences.unsubscribeNotification(subscription) };
  }
  systemPreferences.on('accent-color-changed', listener);
  return { [Symbol.dispose]: () => void systemPreferences.off('accent-color-changed', listener) };
}
