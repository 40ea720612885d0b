import type { KeySources } from '../../store/open-store.ts';
import { environmentSource } from './environment-source.ts';
import { fileSource } from './file-source.ts';
import { keychainSource, hasSessionBus } from './keychain.ts';

interface Places {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  /** A desktop makes its key in the keychain at the first start; a server's owner says where. */
  readonly desktop: boolean;
}

/** Where a key is sought, in this order (R-KEY-01). What the environment names is what its owner wants, and nothing else is asked. */
export const keySources =
  ({ environment, folder, desktop }: Places): KeySources =>
  (memory) => {
    const named = environmentSource(environment);
    if (named) return [named];
    return [keychainSource(memory, { creates: desktop, isReachable: () => hasSessionBus(environment) }), fileSource(folder)];
  };
