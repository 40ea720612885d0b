import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startAtLogin, startsAtLogin } from '../../../src/main/shell/login.ts';
import { tempFolder } from '../../support/temp-folder.ts';

vi.mock('electron', () => import('../../support/electron.ts'));

let folder: string;

beforeEach(() => {
  folder = tempFolder();
  vi.stubEnv('XDG_CONFIG_HOME', folder);
});
afterEach(() => void vi.unstubAllEnvs());

describe.runIf(process.platform === 'linux')('starting at login', () => {
  test('creates and deletes an entry in the autostart folder (R-DESK-09)', () => {
    expect(startsAtLogin()).toBe(false);
    startAtLogin(true);
    expect(startsAtLogin()).toBe(true);
    const entry = join(folder, 'autostart/helmdeck-memory.desktop');
    expect(readFileSync(entry, 'utf8')).toContain(`Exec="${process.execPath}" "/a/source/folder" "--at-login"`);
    startAtLogin(false);
    startAtLogin(false);
    expect(existsSync(entry)).toBe(false);
  });

  test.each([
    { what: 'a file in place of the folder', starts: true, make: () => writeFileSync(join(folder, 'autostart'), '') },
    {
      what: 'an entry that cannot be removed',
      starts: false,
      make: () => mkdirSync(join(folder, 'autostart/helmdeck-memory.desktop'), { recursive: true }),
    },
  ])('reports why it cannot be changed: $what (R-DESK-03)', ({ starts, make }) => {
    make();
    const before = startsAtLogin();
    expect(() => startAtLogin(starts)).toThrow(
      expect.objectContaining({ code: 'unavailable', message: expect.stringMatching(/^The autostart folder .* Check/) }),
    );
    expect(startsAtLogin()).toBe(before);
  });
});
