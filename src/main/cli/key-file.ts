import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { fileSource } from '../../core/crypto/keys/file-source.ts';
import type { KeySource } from '../../core/crypto/keys/key-source.ts';
import { writeNewFile } from '../../core/file/files.ts';

export const keyFileOf = (folder: string): string => join(folder, 'memory.key');

/** A key file that a first start may make, and only where nothing stands: whatever is there may be the key of something. */
export function newKeyFile(folder: string): KeySource {
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
      throw new Failure('key_unavailable', 'The key file did not read back as it was written; check the disk and try again.');
    },
    remove: (slot) => source.remove(slot),
  };
}
