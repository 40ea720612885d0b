import { lstatSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { writeDurableFile } from '../../file/files.ts';
import { type KeySource, parseKey, type KeySlot } from './key-source.ts';

const files: Record<KeySlot, string> = { current: 'memory.key', next: 'memory.key.next' };

/**
 * Returns the source for key files in the data folder. Only the owner creates a key file, with `helmdeck-memory key init --file`.
 */
export function fileSource(folder: string): Required<KeySource> {
  const path = (slot: KeySlot) => join(folder, files[slot]);
  const read: KeySource['read'] = async (slot) => {
    const found = lstatSync(path(slot), { throwIfNoEntry: false });
    if (!found) return { at: 'absent' };
    const { mode } = found;
    // Reject symbolic links, which could point anywhere, and files that other users can read, which are not secret.
    if ((mode & 0o170000) !== 0o100000 || (process.platform !== 'win32' && (mode & 0o077) !== 0)) {
      throw new Failure(
        'key_unavailable',
        `The key file ${files[slot]} must be a regular file that only you can read; run: chmod 600 ${files[slot]}.`,
      );
    }
    return { at: 'found', key: parseKey(readFileSync(path(slot), 'utf8').replace(/\r?\n$/, ''), `The key file ${files[slot]}`) };
  };
  return {
    name: 'the key file',
    createsOnFirstStart: false,
    isShared: true,
    read,
    async save(slot, key) {
      writeDurableFile(path(slot), `${key.toString('hex')}\n`);
      const back = await read(slot);
      if (back.at !== 'found' || !back.key.equals(key)) {
        throw new Failure(
          'key_unavailable',
          'The key file could not be read back after it was written; check the disk and try again.',
        );
      }
    },
    async remove(slot) {
      rmSync(path(slot), { force: true });
    },
  };
}
