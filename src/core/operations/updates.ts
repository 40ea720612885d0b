import { Failure } from '../../contract/failure.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { isNewer } from './versions.ts';

const ALONE = 'The request was cancelled; send it again if needed.';

/** Whether there is a newer version: asked when the owner wants to know, and by nothing else here. */
export const updates = ({ program: { version, updates: place } }: MemoryDeps): Pick<Memory, 'checkForUpdates'> => ({
  async checkForUpdates(_caller, _input, { signal = new AbortController().signal }) {
    if (!place) {
      throw new Failure('not_found', 'This build has no place to ask for a newer version; compare it where you got it.');
    }
    const newest = await place.newest(signal).catch((error: unknown) => {
      throw error instanceof Failure || !signal.aborted ? error : new Failure('cancelled', ALONE, { cause: error });
    });
    return { version, ...(isNewer(newest.version, version) && { newer: newest }) };
  },
});
