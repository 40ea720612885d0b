import { globalShortcut } from 'electron';

/** A global shortcut that opens the window. */
export interface Shortcut {
  readonly keys: string;
  /** False if another program uses the keys, or the desktop does not support global shortcuts. */
  readonly works: boolean;
}

export function registerShortcut(keys: string, open: () => void): Shortcut & Disposable {
  const works = tryRegister(keys, open);
  return {
    keys,
    works,
    [Symbol.dispose]: () => {
      if (works) globalShortcut.unregister(keys);
    },
  };
}

function tryRegister(keys: string, open: () => void): boolean {
  try {
    return globalShortcut.register(keys, open) && globalShortcut.isRegistered(keys);
  } catch {
    // The system does not support one of the keys.
    return false;
  }
}
