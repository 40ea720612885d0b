import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { fetchElectron, findElectron } from '../../../../src/main/roots/start/electron.ts';
import { tempFolder } from '../../../support/temp-folder.ts';
import { measureWait } from '../../../support/work.ts';

function write(root: string, files: Record<string, string>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

describe('the binary of Electron (R-DESK-12)', () => {
  const whole = { 'node_modules/electron/path.txt': 'electron', 'node_modules/electron/dist/electron': '' };

  test('is in the folder of its package', () => {
    const root = write(tempFolder(), whole);
    expect(findElectron(root, {})).toBe(join(root, 'node_modules/electron/dist/electron'));
  });

  test('is missing until the installer has finished', () => {
    const { 'node_modules/electron/path.txt': _, ...begun } = whole;
    expect(findElectron(write(tempFolder(), begun), {})).toBeUndefined();
    expect(findElectron(tempFolder(), {})).toBeUndefined();
  });

  test('comes from ELECTRON_OVERRIDE_DIST_PATH if set', () => {
    const other = write(tempFolder(), { electron: '' });
    const root = write(tempFolder(), whole);
    expect(findElectron(root, { ELECTRON_OVERRIDE_DIST_PATH: other })).toBe(join(other, 'electron'));
    expect(findElectron(root, { ELECTRON_OVERRIDE_DIST_PATH: '/nowhere' })).toBeUndefined();
  });
});

/** A fake installer of Electron. Its TMPDIR is a separate folder. */
const anInstaller = (script: string): { installer: string; into: string } => {
  const folder = write(tempFolder(), { 'install.mjs': `import fs from 'node:fs'; import os from 'node:os';\n${script}` });
  return { installer: join(folder, 'install.mjs'), into: join(folder, 'dist') };
};
/** Long enough for a slow or busy machine. */
const patience = { first: 50_000, next: 50_000, all: 50_000 };
const leftovers = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('helmdeck-electron-'));
const idle = 'setInterval(() => {}, 1000);';

describe('the download of Electron (R-DESK-12)', () => {
  test('reports its progress, and leaves no temporary files', async () => {
    const before = leftovers();
    const { installer, into } = anInstaller(`
      const part = os.tmpdir() + '/part';
      fs.writeFileSync(part, Buffer.alloc(1000));
      setTimeout(() => fs.appendFileSync(part, Buffer.alloc(1000)), 600);
      setTimeout(() => { fs.mkdirSync(process.argv[1].replace('install.mjs', 'dist')); }, 1200);
    `);
    const progress = vi.fn<(bytes: number) => void>();
    expect(await fetchElectron({ installer, into, progress, environment: process.env, timeouts: patience })).toBeUndefined();
    expect(progress.mock.calls).toEqual(expect.arrayContaining([[1000], [2000]]));
    expect(leftovers()).toEqual(before);
  });

  test.each([
    { what: 'a server that never responds', script: idle, why: 'no data for 2 seconds', first: 1500 },
    {
      what: 'a server that stops sending',
      script: `fs.writeFileSync(os.tmpdir() + '/part', 'x'); ${idle}`,
      why: 'no data for 1 seconds',
      next: 700,
    },
    { what: 'an exception', script: `throw new TypeError('fetch failed');`, why: /fetch failed/ },
    { what: 'an error message', script: `console.error('Error: checksum\\n at x'); process.exit(1);`, why: 'checksum' },
    { what: 'an exit code', script: 'process.exit(3);', why: 'exit code 3' },
  ])('fails quickly with the reason: $what', async ({ script, why, ...short }) => {
    const given = { ...anInstaller(script), environment: process.env, timeouts: { ...patience, ...short } };
    const waited = await measureWait(async () =>
      expect(await fetchElectron({ ...given, progress: () => undefined })).toMatch(why),
    );
    expect(waited).toBeLessThan(patience.first);
  });

  test('fails quickly with the real installer if the server accepts connections but sends nothing', async () => {
    const callers: Socket[] = [];
    const host = createServer((socket) => callers.push(socket)).listen(0, '127.0.0.1');
    await once(host, 'listening');
    onTestFinished(() => {
      for (const socket of callers) socket.destroy();
      host.close();
    });
    const folder = tempFolder();
    const environment = {
      PATH: process.env['PATH'],
      ELECTRON_MIRROR: `http://127.0.0.1:${(host.address() as AddressInfo).port}/`,
      electron_config_cache: join(folder, 'cache'),
      // Otherwise the installer would find an Electron that is already there.
      ELECTRON_OVERRIDE_DIST_PATH: folder,
    };
    const given = { installer: 'node_modules/electron/install.js', into: join(folder, 'dist'), environment };
    const short = { ...patience, first: 5000, next: 15_000 };
    expect(await fetchElectron({ ...given, progress: () => undefined, timeouts: short })).toBe('no data for 5 seconds');
    expect(callers.length).toBeGreaterThan(0);
  });

  test('is aborted when it takes too long', async () => {
    const script = `setInterval(() => fs.appendFileSync(os.tmpdir() + '/part', 'x'), 50);`;
    const all = { ...patience, all: 1200 };
    const asked = fetchElectron({ ...anInstaller(script), progress: () => undefined, environment: process.env, timeouts: all });
    expect(await asked).toMatch('took longer than');
  });
});
