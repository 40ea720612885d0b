import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { writeFirst } from '../../core/files.ts';
import { fileSource } from '../../core/keys/file.ts';
import type { KeySource } from '../../core/keys/key-source.ts';

export const keyFileOf = (folder: string): string => join(folder, 'memory.key');

/** A key file that a first start may make, and only where nothing stands: whatever is there may be the key of something. */
export function newKeyFile(folder: string): KeySource {
  const source = fileSource(folder);
  return {
    name: source.name,
    createsOnFirstStart: true,
    read: (slot) => source.read(slot),
    async keep(slot, key) {
      if (slot !== 'current') return source.keep(slot, key);
      writeFirst(keyFileOf(folder), `${key.toString('hex')}\n`);
      const back = await source.read(slot);
      if (back.at === 'found' && back.key.equals(key)) return;
      throw new Failure('key_unavailable', 'The key file did not read back as it was written; check the disk and try again.');
    },
    remove: (slot) => source.remove(slot),
  };
}
