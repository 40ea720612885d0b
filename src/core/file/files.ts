import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Replaces a file atomically. Only the owner can read the new file. A symbolic link is replaced and not followed. */
export function writePrivateFile(path: string, content: string): void {
  renameSync(writeDraft(path, content), path);
}

/** Like `writePrivateFile`, but the new file also survives a power failure. */
export function writeDurableFile(path: string, content: string): void {
  const draft = writeDraft(path, content);
  syncFile(draft);
  renameSync(draft, path);
  syncFolder(dirname(path));
}

/** Like `writeDurableFile`, but fails if the path exists. Uses a hard link, because a rename would replace an existing file. */
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
  // Delete a leftover file, which could be a symbolic link or readable by other users.
  rmSync(draft, { force: true });
  writeFileSync(draft, content, { mode: 0o600, flag: 'wx' });
  return draft;
}

/** Flushes a folder, so that new and renamed files in it survive a power failure. */
export function syncFolder(folder: string): void {
  // Skip Windows, which cannot open a folder to flush it. NTFS already journals file names.
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

/** Like `syncFile`, but without blocking the event loop. */
export async function flushFile(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Returns the code of a system or SQLite error, or an empty string for other errors. */
export const errorCodeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');
