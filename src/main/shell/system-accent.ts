import { systemPreferences } from 'electron';

/** The notification that macOS sends to all programs. */
const CHANGED = 'AppleColorPreferencesChangedNotification';

/** The system's accent colour in hexadecimal; empty if the system has none. */
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
