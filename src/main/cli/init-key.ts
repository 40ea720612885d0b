import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import type { KeyState, StoreStatus } from '../../contract/status.ts';
import { fileSource } from '../../core/crypto/keys/file-source.ts';
import type { KeySource, KeySources } from '../../core/crypto/keys/key-source.ts';
import { keySources } from '../../core/crypto/keys/key-sources.ts';
import { keychainSource } from '../../core/crypto/keys/keychain.ts';
import { writeNewFile } from '../../core/file/files.ts';
import { openStore } from '../../core/store/open-store.ts';
import { systemClock } from '../../core/time/clock.ts';
import { type Config, type HostMachine, memoryPlace } from '../config/config.ts';
import { rejectKeyInEnvironment } from './recovery.ts';

interface CreatedKey {
  readonly source: string;
  /** Path of the key file. Undefined if the key is in the OS keychain. */
  readonly path: string | undefined;
  readonly memory: string;
}

/** Creates the first key of a memory. Lets the store create the key, because the store does not replace an existing key. */
export async function initKey(config: Config, environment: HostMachine['environment'], file: boolean): Promise<CreatedKey> {
  rejectKeyInEnvironment(environment);
  const { folder } = config;
  const before = await statusWith(config, keySources({ environment, folder, desktop: false }));
  if (before.key.at === 'ok') {
    throw new Failure(
      'invalid_input',
      `This memory already has a key, in ${before.key.source}. To replace the key, run: helmdeck-memory key rotate`,
    );
  }
  const { kept, key } = await statusWith(config, (memory) => [
    file ? newKeyFile(folder) : keychainSource(memory, { creates: true }),
  ]);
  if (kept === 'memory') {
    throw new Failure('key_unavailable', `No OS keychain is available, so no key was created. ${USE_KEY_FILE}`);
  }
  if (key.at !== 'ok') throw keyNotCreated(before.kept === 'memory' ? key : before.key);
  return { source: key.source, path: file ? keyFileOf(folder) : undefined, memory: memoryPlace(config) };
}

const USE_KEY_FILE = 'To use a key file instead, run: helmdeck-memory key init --file';

async function statusWith({ folder, database }: Config, sources: KeySources): Promise<StoreStatus> {
  await using store = await openStore({ folder, database, clock: systemClock, sources });
  return store.status();
}

function keyNotCreated(key: Exclude<KeyState, { at: 'ok' }>): Failure {
  const why = 'why' in key ? `${key.at}: ${key.why}` : key.at;
  const other = key.at === 'locked' ? ` ${USE_KEY_FILE}` : '';
  return new Failure('key_unavailable', `No key was created, because the key of this memory is ${why}. ${key.remedy}${other}`);
}

const keyFileOf = (folder: string): string => join(folder, 'memory.key');

/** Returns a key source that creates a key file. Never overwrites a key file, because it can belong to another memory. */
function newKeyFile(folder: string): KeySource {
  const source = fileSource(folder);
  return {
    name: source.name,
    createsOnFirstStart: true,
    read: (slot) => source.read(slot),
    async save(slot, key) {
      if (slot !== 'current') return source.save(slot, key);
      writeNewFile(keyFileOf(folder), `${key.toString('hex')}\n`);
      const back = await source.read(slot);
      if (back.at === 'found' && back.key.equals(key)) return;
      throw new Failure('key_unavailable', 'The key file could not be read back after writing. Check the disk and try again.');
    },
    remove: (slot) => source.remove(slot),
  };
}
