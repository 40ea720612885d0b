import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates a private folder and deletes it after the test. It is in RAM if the machine has enough. */
export const tempFolder = (): string => folderIn(tmpdir());

/** The same on the disk, for tests of what is stored there. */
export const diskFolder = (): string => folderIn(process.env['HELMDECK_TEST_DISK'] ?? tmpdir());

function folderIn(parent: string): string {
  const folder = mkdtempSync(join(parent, 'helmdeck-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Reads all files below a folder. */
export const filesBelow = (folder: string): { path: string; bytes: Buffer }[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => ({ path, bytes: readFileSync(path) }));
