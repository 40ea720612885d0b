import type { KeySources } from '../../store/open-store.ts';
import { environmentSource } from './environment-source.ts';
import { fileSource } from './file-source.ts';
import { keychainSource, hasSessionBus } from './keychain.ts';

interface Places {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  /** A desktop creates its key in the keychain at the first start; on a server the owner chooses the place. */
  readonly desktop: boolean;
}

/** The key sources, in order (R-KEY-01). If the environment names a key, no other source is read. */
export const keySources =
  ({ environment, folder, desktop }: Places): KeySources =>
  (memory) => {
    const named = environmentSource(environment);
    if (named) return [named];
    return [keychainSource(memory, { creates: desktop, isReachable: () => hasSessionBus(environment) }), fileSource(folder)];
  };
