import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DiskReserve } from '../../../src/core/file/disk-space.ts';
import { lockFolder } from '../../../src/core/file/folder.ts';
import { prepareFolder } from '../../../src/core/file/prepare-folder.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import { manualClock } from '../../support/clock.ts';
import { withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

describe('the data folder (R-STORE-03)', () => {
  test('is created with its parents, for its owner only', () => {
    const folder = join(tempFolder(), 'a', 'b');
    prepareFolder(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, '..')).mode & 0o777).toBe(0o700);
  });

  test.each([
    {
      what: 'open to others',
      make: (path: string) => chmodSync(mkdirSync(path, { recursive: true }) ?? path, 0o750),
      says: /chmod 700/,
    },
    { what: 'a link', make: (path: string) => symlinkSync(tempFolder(), path), says: /not a symbolic link/ },
  ])('$what is refused with the remedy', ({ make, says }) => {
    const path = join(tempFolder(), 'data');
    make(path);
    expect(() => prepareFolder(path)).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(says) as string }),
    );
  });

  test.runIf(process.platform === 'linux')('is refused at once where the system cannot create it and gives no reason', () => {
    const code = "import { prepareFolder } from './src/core/file/prepare-folder.ts'; prepareFolder('/proc/none/deeper');";
    const { signal, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], { timeout: 30_000 });
    expect([signal, String(stderr)]).toEqual([null, expect.stringContaining('The data folder cannot be created or read')]);
  });

  test('can be created by several processes at once', async () => {
    const above = tempFolder();
    const code = `
      import { prepareFolder } from './src/core/file/prepare-folder.ts';
      while (Date.now() < ${Date.now() + 1500});
      for (let n = 0; n < 100; n += 1) prepareFolder(${JSON.stringify(above)} + '/' + n + '/b/c');`;
    const starts = Array.from({ length: 3 }, () => spawn(process.execPath, ['--input-type=module', '--eval', code]));
    const codes = await Promise.all(starts.map(async (start) => (await once(start, 'exit'))[0] as unknown));
    expect(codes).toEqual(starts.map(() => 0));
  });

  test.runIf(process.platform === 'linux')('is opened by a process without core dumps (R-KEY-13)', async () => {
    await using _store = await openStore({ folder: tempFolder(), clock: manualClock(), sources: withKey() });
    expect(Number.parseInt(readFileSync('/proc/self/coredump_filter', 'utf8'), 16)).toBe(0);
  });

  test('is refused with the remedy if it cannot be created', () => {
    const file = join(tempFolder(), 'file');
    writeFileSync(file, '');
    expect(() => prepareFolder(join(file, 'data'))).toThrow(
      expect.objectContaining({
        code: 'invalid_config',
        message: expect.stringMatching(/cannot be created.*HELMDECK_DATA_DIR/) as string,
      }),
    );
  });

  test.runIf(process.getuid?.() === 0)('is refused with the remedy if it belongs to another user', async () => {
    const path = join(tempFolder(), 'theirs');
    mkdirSync(path, { mode: 0o700 });
    const { chownSync } = await import('node:fs');
    chownSync(path, 65_534, 65_534);
    expect(() => prepareFolder(path)).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(/another user/) as string }),
    );
  });
});

describe('one process per data folder (R-DUR-12)', () => {
  test('a second start is refused with the remedy, and the first process continues', async () => {
    const folder = tempFolder();
    await using store = await openStore({ folder, clock: manualClock(), sources: withKey() });
    await expect(openStore({ folder, clock: manualClock(), sources: withKey() })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(
        /Another Helmdeck Memory process is using this data folder; use that process, stop it/,
      ) as string,
    });
    expect(store.status().file).toEqual({ at: 'open' });
  });

  test('a killed process leaves no lock', async () => {
    const folder = tempFolder();
    const holder = spawn(process.execPath, [
      '--input-type=module',
      '-e',
      `import { lockFolder } from ${JSON.stringify(join(import.meta.dirname, '../../../src/core/file/folder.ts'))};
       globalThis.lock = lockFolder(${JSON.stringify(folder)});
       console.log('held');
       setInterval(() => undefined, 1000);`,
    ]);
    await once(holder.stdout, 'data');
    expect(() => lockFolder(folder)).toThrow(/Another Helmdeck Memory/);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    lockFolder(folder)[Symbol.dispose]();
  });

  test('a damaged lock file is reported as damaged', () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'lock.db'), 'x'.repeat(200));
    expect(() => lockFolder(folder)).toThrow(
      expect.objectContaining({ code: 'store_unavailable', message: expect.stringMatching(/lock\.db.*delete it/) as string }),
    );
  });

  test('closing releases the folder', async () => {
    const folder = tempFolder();
    for (let turn = 0; turn < 3; turn += 1)
      await (await openStore({ folder, clock: manualClock(), sources: withKey() }))[Symbol.asyncDispose]();
    expect(() => lockFolder(folder)[Symbol.dispose]()).not.toThrow();
  });
});

describe('the reserve for a full disk (R-DUR-03)', () => {
  test('allocates space, releases it and takes it again', () => {
    const folder = tempFolder();
    const file = join(folder, 'reserve');
    const reserve = new DiskReserve(folder);
    expect(statSync(file).blocks * 512).toBeGreaterThanOrEqual(1024 * 1024);
    reserve.release();
    expect(existsSync(file)).toBe(false);
    reserve.release();
    reserve.refill();
    // If there was room for a part only, the rest is taken later.
    truncateSync(file, 1024 * 128);
    const next = new DiskReserve(folder);
    expect(next.isFull).toBe(true);
    expect(statSync(file).size).toBe(1024 * 1024);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
