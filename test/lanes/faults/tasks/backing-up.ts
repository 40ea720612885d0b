import { basename } from 'node:path';
import { fileSource } from '../../../../src/core/crypto/keys/file-source.ts';
import { openKeptStore } from '../memory.ts';
import type { Tell } from '../worker.ts';

/** Makes backups until the process is killed. */
export async function backUpForEver({ folder }: { folder: string }, tell: Tell): Promise<void> {
  const store = await openKeptStore(folder, fileSource(folder));
  tell({ says: 'ready', pid: process.pid });
  for (;;) {
    const made = await store.upkeep?.backup();
    tell({ says: 'done', figures: { file: basename(made?.file ?? '') } });
  }
}
