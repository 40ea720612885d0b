import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { buildIfStale } from '../../src/main/roots/start/build-if-stale.ts';

/** The file system in RAM of Linux. */
const RAM_FOLDER = '/dev/shm';
/** Free bytes that the folder in RAM needs. The tests use about a tenth of it. */
const RAM_BYTES = 1024 ** 3;

/** Runs before all tests, because two test files must not build, or unpack the browser, at the same time. */
export async function setup(): Promise<(() => void) | undefined> {
  const why = await buildIfStale(process.cwd(), console.log);
  if (why !== undefined) throw new Error(why);
  process.env['CHROME_PATH'] ??= await chromium.executablePath();
  // The tests wait mostly for disk flushes. `TMPDIR=/tmp npm test` runs them on the disk, as `npm run lane:soak` does.
  const folder = process.env['TMPDIR'] === undefined ? folderInRam() : undefined;
  if (folder === undefined) return undefined;
  process.env['HELMDECK_TEST_DISK'] = tmpdir();
  process.env['TMPDIR'] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Creates a folder for temporary files in RAM. Returns undefined if there is too little RAM, or programs cannot run in it. */
function folderInRam(): string | undefined {
  if (!existsSync(RAM_FOLDER)) return undefined;
  const { bavail, bsize } = statfsSync(RAM_FOLDER);
  if (Math.min(bavail * bsize, process.availableMemory()) < RAM_BYTES) return undefined;
  // Runs that were killed leave their folders.
  for (const name of readdirSync(RAM_FOLDER)) {
    const [, pid] = /^helmdeck-tests-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(RAM_FOLDER, name), { recursive: true, force: true });
  }
  const folder = mkdtempSync(join(RAM_FOLDER, `helmdeck-tests-${process.pid}-`));
  // Some tests run a program as another user.
  chmodSync(folder, 0o755);
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  if (spawnSync(program).status === 0) return folder;
  rmSync(folder, { recursive: true, force: true });
  return undefined;
}
