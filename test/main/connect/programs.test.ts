import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { environmentFor, findProgram, localMachine, versionOf } from '../../../src/main/connect/programs.ts';
import { tempFolder } from '../../support/temp-folder.ts';

function aMachine(path: (home: string) => string = () => '') {
  const home = tempFolder();
  const put = (name: string, text = '#!/bin/sh\n', mode = 0o755): string => {
    const file = join(home, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    chmodSync(file, mode);
    return file;
  };
  const environment = { PATH: path(home), HOME: home, HELMDECK_MEMORY_KEY: 'a key', NODE_OPTIONS: '--inspect' };
  return { home, put, host: localMachine({ environment, platform: process.platform, home: () => home }) };
}

describe('a program of another vendor', () => {
  test("is found in the PATH and in installers' folders (R-CONN-07)", () => {
    const { put, host } = aMachine((home) => `relative:${join(home, 'first')}:${join(home, 'second')}`);
    const nvm = [put('.nvm/versions/node/v9.1.0/bin/a-client'), put('.nvm/versions/node/v22.1.0/bin/a-client')];
    expect(findProgram(host, 'a-client')).toBe(nvm[1]);
    const local = put('.local/bin/a-client');
    expect(findProgram(host, 'a-client')).toBe(local);
    const second = put('second/a-client');
    expect(findProgram(host, 'a-client')).toBe(second);
    expect(findProgram(host, 'no-client')).toBeUndefined();
  });

  test('is ignored if other users can change it, or if it is not executable (R-CONN-07)', () => {
    const { home, put, host } = aMachine((folder) => join(folder, 'bin'));
    put('bin/written', '', 0o777);
    put('bin/text', '', 0o644);
    mkdirSync(join(home, 'bin/folder'));
    symlinkSync('nowhere', join(home, 'bin/dangling'));
    for (const name of ['written', 'text', 'folder', 'dangling']) expect(findProgram(host, name), name).toBeUndefined();
    // The same applies to links to it, and to folders in which other users can rename files.
    put('elsewhere/target', '', 0o777);
    symlinkSync('../elsewhere/target', join(home, 'bin/linked'));
    expect(findProgram(host, 'linked')).toBeUndefined();
    const open = put('bin/in-open-folder');
    expect(findProgram(host, 'in-open-folder')).toBe(open);
    chmodSync(join(home, 'bin'), 0o777);
    expect(findProgram(host, 'in-open-folder')).toBeUndefined();
    chmodSync(join(home, 'bin'), 0o1777);
    expect(findProgram(host, 'in-open-folder')).toBe(open);
    chmodSync(home, 0o777);
    expect(findProgram(host, 'in-open-folder')).toBeUndefined();
    chmodSync(home, 0o700);
    // Any user can create a program or a link in such a folder.
    if (process.getuid?.() !== 0) return;
    chownSync(open, 65534, 65534);
    expect(findProgram(host, 'in-open-folder')).toBeUndefined();
    put('elsewhere/safe');
    symlinkSync('../elsewhere/safe', join(home, 'bin/by-link'));
    expect(findProgram(host, 'by-link')).toBeDefined();
    lchownSync(join(home, 'bin/by-link'), 65534, 65534);
    expect(findProgram(host, 'by-link')).toBeUndefined();
  });

  test('is ignored if other users can change a folder of a link in its path (R-CONN-07)', () => {
    const { home, put, host } = aMachine((folder) => join(folder, 'bin'));
    put('opt/a-client');
    mkdirSync(join(home, 'bin'));
    mkdirSync(join(home, 'shared'));
    symlinkSync('../opt', join(home, 'shared/link'));
    symlinkSync('../shared/link/a-client', join(home, 'bin/a-client'));
    expect(findProgram(host, 'a-client')).toBe(join(home, 'bin/a-client'));
    chmodSync(join(home, 'shared'), 0o777);
    expect(findProgram(host, 'a-client')).toBeUndefined();
    // A circular link.
    symlinkSync('loop', join(home, 'bin/loop'));
    expect(findProgram(host, 'loop')).toBeUndefined();
  });

  test.skipIf(process.getuid?.() !== 0)(
    'is ignored if another user owns it, or if a group with other members can write it (R-CONN-07)',
    () => {
      const NOBODY = 65_534;
      const { home, put, host } = aMachine((folder) => join(folder, 'bin'));
      const program = put('bin/a-client');
      const found = () => findProgram(host, 'a-client');
      const [folder, own] = [join(home, 'bin'), [0, 0]] as const;
      for (const place of [program, folder]) {
        chownSync(place, NOBODY, NOBODY);
        expect(found(), `${place} belongs to another user`).toBeUndefined();
        chownSync(place, 0, NOBODY);
        expect(found(), 'the group can only read').toBe(program);
        chmodSync(place, 0o775);
        expect(found(), `${place} can be written by a group with other members`).toBeUndefined();
        // The owner's private group: some distributions create one for each user, and let it write.
        chownSync(place, ...own);
        expect(found(), 'no other user is in the group').toBe(program);
        chmodSync(place, 0o755);
      }
      // An unknown group comes from a directory service and may have any members.
      chownSync(program, 0, 54_321);
      chmodSync(program, 0o775);
      expect(found()).toBeUndefined();
    },
  );

  test('runs without our variables, in the home folder, with its own folder in the PATH (R-CONN-07)', async () => {
    const { home, put, host } = aMachine(() => '/usr/bin:/bin');
    const program = put('own/bin/a-client', '#!/bin/sh\npwd; env; echo wrong >&2; exit 3\n');
    const { code, stdout, stderr } = await host.run(program, ['$(touch x)', '; touch x'], { ADDED: 'yes' });
    expect({ code, stderr }).toEqual({ code: 3, stderr: 'wrong\n' });
    expect(stdout.split('\n')[0]).toBe(home);
    expect(stdout).toMatch('ADDED=yes');
    expect(stdout).toMatch(`PATH=/usr/bin:/bin:${dirname(program)}\n`);
    expect(stdout).not.toMatch(/HELMDECK_|NODE_OPTIONS/);
  });

  test('searches no folder of the PATH in which other users could place a program (R-CONN-07)', async () => {
    const { home, put, host } = aMachine((folder) =>
      ['.', 'gone', 'open', 'sticky', 'link', 'foreign', 'safe'].map((name) => join(name === '.' ? '' : folder, name)).join(':'),
    );
    const program = put('own/bin/a-client', '#!/bin/sh\n/usr/bin/env\n');
    for (const name of ['open', 'sticky', 'foreign', 'safe']) put(`${name}/node`);
    chmodSync(join(home, 'open'), 0o777);
    chmodSync(join(home, 'sticky'), 0o1777);
    symlinkSync('open', join(home, 'link'));
    const foreign = join(home, 'foreign');
    if (process.getuid?.() === 0) chownSync(foreign, 65_534, 65_534);
    else chmodSync(foreign, 0o777);
    const { stdout } = await host.run(program, []);
    expect(/^PATH=(.*)$/m.exec(stdout)?.[1]).toBe([join(home, 'safe'), dirname(program)].join(':'));
    expect(environmentFor({ ...host })['PATH']).toBe(join(home, 'safe'));
  });

  test('has its version in its package.json or its file name', () => {
    const { put } = aMachine();
    put('lib/a-client/package.json', '{"version": "1.2.3"}');
    expect(versionOf(put('lib/a-client/bin/a-client.js'))).toBe('1.2.3');
    expect(versionOf(put('share/a-client/versions/2.1.326'))).toBe('2.1.326');
    expect(versionOf(undefined)).toBeUndefined();
  });
});
