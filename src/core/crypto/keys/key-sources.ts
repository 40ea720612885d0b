import { environmentSource } from './environment-source.ts';
import { fileSource } from './file-source.ts';
import type { KeySources } from './key-source.ts';
import { keychainSource, hasSessionBus } from './keychain.ts';

interface Places {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  /**
   * True for the desktop application, which creates its key in the keychain at the first startup. On a server, the owner chooses
   * where the key is stored.
   */
  readonly desktop: boolean;
}

/**
 * Returns the key sources in the order in which they are read (R-KEY-01). If the environment provides a key, no other source is
 * read.
 */
export const keySources =
  ({ environment, folder, desktop }: Places): KeySources =>
  (memory) => {
    const named = environmentSource(environment);
    if (named) return [named];
    return [keychainSource(memory, { creates: desktop, isReachable: () => hasSessionBus(environment) }), fileSource(folder)];
  };
