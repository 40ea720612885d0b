import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import type { KeyState, StoreStatus } from '../../contract/status.ts';
import { keySources } from '../../core/crypto/keys/key-sources.ts';
import { keychainSource } from '../../core/crypto/keys/keychain.ts';
import { MEMORY_FILE } from '../../core/store/database.ts';
import { type KeySources, openStore } from '../../core/store/open-store.ts';
import { systemClock } from '../../core/time/clock.ts';
import type { Config, HostMachine } from '../config/config.ts';
import { keyFileOf, newKeyFile } from './key-file.ts';
import { rejectKeyInEnvironment } from './named-key.ts';

interface MadeKey {
  readonly source: string;
  /** Where it lies, if in a file. */
  readonly path: string | undefined;
  readonly memory: string;
}

/**
 * The first key of a memory. It is the store that makes it, as at the first start of a desktop, so everything that keeps a
 * key from being made over another holds here too.
 */
export async function initKey({ folder }: Config, environment: HostMachine['environment'], file: boolean): Promise<MadeKey> {
  rejectKeyInEnvironment(environment);
  const before = await statusWith(folder, keySources({ environment, folder, desktop: false }));
  if (before.key.at === 'ok') {
    throw new Failure(
      'invalid_input',
      `This memory has its key already, in ${before.key.source}; to change it, use: helmdeck-memory key rotate.`,
    );
  }
  const { kept, key } = await statusWith(folder, (memory) => [
    file ? newKeyFile(folder) : keychainSource(memory, { creates: true }),
  ]);
  if (kept === 'memory') {
    throw new Failure('key_unavailable', `There is no OS keychain here that answers, so no key was made; ${INSTEAD}.`);
  }
  if (key.at !== 'ok') throw notMade(before.kept === 'memory' ? key : before.key);
  return { source: key.source, path: file ? keyFileOf(folder) : undefined, memory: join(folder, MEMORY_FILE) };
}

const INSTEAD = 'make a key file with: helmdeck-memory key init --file';

async function statusWith(folder: string, sources: KeySources): Promise<StoreStatus> {
  await using store = await openStore({ folder, clock: systemClock, sources });
  return store.status();
}

function notMade(key: Exclude<KeyState, { at: 'ok' }>): Failure {
  const why = 'why' in key ? `${key.at}: ${key.why}` : key.at;
  const other = key.at === 'locked' ? ` Or ${INSTEAD}.` : '';
  return new Failure('key_unavailable', `No key was made, because that of this memory is ${why}. ${key.remedy}${other}`);
}
