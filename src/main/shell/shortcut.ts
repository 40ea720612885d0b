import { globalShortcut } from 'electron';

/** Keys that open the window from anywhere, and whether they do. */
export interface Shortcut {
  readonly keys: string;
  readonly works: boolean;
}

/** What the owner set, held until the end. Another program may have the keys, and some desktops give none away. */
export function registerShortcut(keys: string, open: () => void): Shortcut & Disposable {
  const works = took(keys, open);
  return {
    keys,
    works,
    [Symbol.dispose]: () => {
      if (works) globalShortcut.unregister(keys);
    },
  };
}

function took(keys: string, open: () => void): boolean {
  try {
    return globalShortcut.register(keys, open) && globalShortcut.isRegistered(keys);
  } catch {
    // It names no key that this system knows.
    return false;
  }
}
