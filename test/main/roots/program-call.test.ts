import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { setCliCommand, withCliCommand, withCliCommands } from '../../../src/contract/cli-command.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { programCall } from '../../../src/main/roots/program-call.ts';
import { openTestMemory, theOwner } from '../../support/memory.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** An installation and a folder in the PATH. */
function installed(): { root: string; bin: string } {
  const [root, bin] = [tempFolder(), tempFolder()];
  mkdirSync(join(root, 'bin'), { recursive: true });
  writeFileSync(join(root, 'bin/helmdeck-memory.js'), '');
  mkdirSync(bin, { recursive: true });
  return { root, bin };
}
const platform = 'linux';

describe('the command that starts the command line', () => {
  test('is its name if the PATH contains this installation', () => {
    const { root, bin } = installed();
    symlinkSync(join(root, 'bin/helmdeck-memory.js'), join(bin, 'helmdeck-memory'));
    expect(programCall({ root, path: ['/nowhere', bin].join(delimiter), platform, cwd: '/' })).toBe('helmdeck-memory');
  });

  test('is not its name if the PATH contains another installation or a temporary npm folder', () => {
    const { root, bin } = installed();
    const other = installed();
    symlinkSync(join(other.root, 'bin/helmdeck-memory.js'), join(bin, 'helmdeck-memory'));
    expect(programCall({ root, path: bin, platform, cwd: root })).toBe('npx helmdeck-memory');
    const npms = join(root, 'node_modules/.bin');
    mkdirSync(npms, { recursive: true });
    symlinkSync(join(root, 'bin/helmdeck-memory.js'), join(npms, 'helmdeck-memory'));
    expect(programCall({ root, path: npms, platform, cwd: root })).toBe('npx helmdeck-memory');
  });

  test('is the path of its file if npx would download a package', () => {
    const { root } = installed();
    expect(programCall({ root, path: '', platform, cwd: '/' })).toBe(`node ${join(root, 'bin/helmdeck-memory.js')}`);
  });

  test('is its name if the installation has no command line', () => {
    expect(programCall({ root: tempFolder(), path: '', platform, cwd: '/' })).toBe('helmdeck-memory');
  });
});

describe('a text that suggests a command', () => {
  afterEach(() => setCliCommand('helmdeck-memory'));

  test('names the command of this installation, once', () => {
    setCliCommand('npx helmdeck-memory');
    const told = withCliCommand('Make one with: helmdeck-memory key init, or helmdeck-memory key recovery.');
    expect(told).toBe('Make one with: npx helmdeck-memory key init, or npx helmdeck-memory key recovery.');
    expect(withCliCommand(told)).toBe(told);
    for (const path of ['/home/me/helmdeck-memory is there', '~/.local/share/helmdeck-memory/backups', 'helmdeck-memory.js x'])
      expect(withCliCommand(path)).toBe(path);
    expect(new Failure('not_found', 'See helmdeck-memory help.').message).toBe('See npx helmdeck-memory help.');
  });

  test('is adapted in messages, but not in stored text', () => {
    setCliCommand('npx helmdeck-memory');
    const stored = { key: { at: 'locked', remedy: 'Run helmdeck-memory unlock.' }, value: 'helmdeck-memory unlock' };
    expect(withCliCommands([stored])).toEqual([
      { key: { at: 'locked', remedy: 'Run npx helmdeck-memory unlock.' }, value: 'helmdeck-memory unlock' },
    ]);
  });

  test('is adapted on every surface', async () => {
    setCliCommand('npx helmdeck-memory');
    const memory = await openTestMemory();
    memory.clock.jump(400 * 86_400_000);
    const { store } = await memory.perform(theOwner, 'status', {});
    expect(JSON.stringify(store)).toContain('npx helmdeck-memory clock trust');
    expect((await memory.perform(theOwner, 'settings', {})).command).toBe('npx helmdeck-memory');
  });
});
