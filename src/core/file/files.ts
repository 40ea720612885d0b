import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Replaces a file atomically, readable by the owner only. A link is replaced, not followed. */
export function writePrivateFile(path: string, content: string): void {
  renameSync(writeDraft(path, content), path);
}

/** As `writePrivateFile`, and durable after a power cut. */
export function writeDurableFile(path: string, content: string): void {
  const draft = writeDraft(path, content);
  syncFile(draft);
  renameSync(draft, path);
  syncFolder(dirname(path));
}

/** As `writeDurableFile`, but fails if the path exists: unlike a rename, a link does not replace a file. */
export function writeNewFile(path: string, content: string): void {
  const draft = writeDraft(path, content);
  try {
    syncFile(draft);
    linkSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(dirname(path));
}

function writeDraft(path: string, content: string): string {
  const draft = `${path}.new`;
  // A file left there may be readable by others, or be a link.
  rmSync(draft, { force: true });
  writeFileSync(draft, content, { mode: 0o600, flag: 'wx' });
  return draft;
}

/** Makes new and changed names in a folder durable. */
export function syncFolder(folder: string): void {
  // Windows cannot open a folder. NTFS journals the names itself.
  if (process.platform === 'win32') return;
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

export function syncFile(path: string): void {
  const handle = openSync(path, 'r+');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** As `syncFile`, without blocking the event loop. */
export async function flushFile(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The code of an error of the system or of SQLite, or an empty string. */
export const errorCodeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');
