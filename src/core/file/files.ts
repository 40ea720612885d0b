import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Whole or not at all, readable by the owner only, and in the place of a link rather than where it points. */
export function writePrivateFile(path: string, content: string): void {
  renameSync(writeDraft(path, content), path);
}

/** The same, and there after a power cut. */
export function writeDurableFile(path: string, content: string): void {
  const draft = writeDraft(path, content);
  syncFile(draft);
  renameSync(draft, path);
  syncFolder(dirname(path));
}

/** The same, but only where nothing stands: a second name, unlike a new one, fails where the first is taken. */
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
  // One that was left there may be readable by others, or lead elsewhere.
  rmSync(draft, { force: true });
  writeFileSync(draft, content, { mode: 0o600, flag: 'wx' });
  return draft;
}

/** A name is durable only when its folder is. */
export function syncFolder(folder: string): void {
  // Windows has no handle on a folder; its journal keeps names in order by itself.
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

/** As the system or a library names it; empty where it has no name. */
export const errorCodeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');
