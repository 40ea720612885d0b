import { systemPreferences } from 'electron';

/** As macOS calls it among all programs. */
const CHANGED = 'AppleColorPreferencesChangedNotification';

/** The colour that the owner chose for the whole system, in hexadecimal; empty where it tells none. */
export function systemAccent(): string {
  try {
    return systemPreferences.getAccentColor();
  } catch {
    return '';
  }
}

export function onAccentChange(hear: () => void): Disposable {
  if (process.platform === 'darwin') {
    const hearing = systemPreferences.subscribeNotification(CHANGED, hear);
    return { [Symbol.dispose]: () => systemPreferences.unsubscribeNotification(hearing) };
  }
  systemPreferences.on('accent-color-changed', hear);
  return { [Symbol.dispose]: () => void systemPreferences.off('accent-color-changed', hear) };
}
