import { existsSync, mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { operations } from '../../../src/contract/operations.ts';
import { type HostMachine, readConfig } from '../../../src/main/config/config.ts';
import { SettingsEditor } from '../../../src/main/config/settings-editor.ts';
import { readSettings } from '../../../src/main/config/settings-file.ts';
import { SETTINGS } from '../../../src/main/config/settings-table.ts';
import { openMemory } from '../../../src/main/roots/open-memory.ts';
import { theOwner } from '../../support/memory.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

async function asked(set: Record<string, string>, file?: object) {
  const folder = join(tempFolder(), 'memory');
  mkdirSync(folder, { mode: 0o700 });
  if (file) writeFileSync(join(folder, 'config.json'), JSON.stringify(file), { mode: 0o600 });
  const environment = { HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEANING: 'off', ...set };
  const machine: HostMachine = { environment, platform: process.platform, home: () => '/nowhere' };
  const settings = readSettings(machine);
  await using core = await openMemory(readConfig(settings), {
    ...settings,
    version: '1.2.3',
    desktop: false,
  });
  const answer = operations.settings.output().parse(await core.perform(theOwner, 'settings', {}));
  return { folder, answer, of: (name: string) => answer.settings.find((row) => row.name === name) };
}

test('every setting is listed with its value and source, and a secret without its value', async () => {
  const { folder, answer, of } = await asked(
    { HELMDECK_QUOTA_FACTS: '7' },
    { HELMDECK_ADDR: '127.0.0.1:7400', HELMDECK_QUOTA_FACTS: 9 },
  );
  expect(answer).toMatchObject({ folder, address: '127.0.0.1:7400', file: join(folder, 'config.json') });
  expect(of('HELMDECK_ADDR')).toEqual({
    name: 'HELMDECK_ADDR',
    label: 'Address and port',
    help: SETTINGS.HELMDECK_ADDR.help,
    from: 'file',
    value: '127.0.0.1:7400',
    usual: '127.0.0.1:7345',
    changeable: true,
  });
  expect(of('HELMDECK_QUOTA_FACTS')).toMatchObject({ from: 'environment', value: '7', usual: '10000' });
  expect(of('HELMDECK_SECRETS')).toEqual({
    name: 'HELMDECK_SECRETS',
    label: 'Values that look like credentials',
    help: SETTINGS.HELMDECK_SECRETS.help,
    from: 'nowhere',
    usual: 'refuse',
    changeable: true,
    choices: ['refuse', 'warn'],
  });
  expect(of('HELMDECK_MEMORY_KEY')).toEqual({
    name: 'HELMDECK_MEMORY_KEY',
    help: SETTINGS.HELMDECK_MEMORY_KEY.help,
    from: 'environment',
    changeable: false,
  });
  expect(of('HELMDECK_QUOTA_BYTES')).toMatchObject({ label: 'Maximum size of a memory', unit: 'bytes' });
  expect(JSON.stringify(answer)).not.toMatch(A_KEY);
  expect(answer.quota).toEqual({ facts: { used: 0, most: 7 }, bytes: { used: 0, most: 67_108_864 } });
});

test('without a configuration file, no file is named', async () => {
  expect((await asked({})).answer).not.toHaveProperty('file');
});

describe('a setting that is changed (R-SET-01)', () => {
  function settings(set: Record<string, string> = {}, file?: string) {
    const folder = tempFolder();
    const path = join(folder, 'config.json');
    if (file !== undefined) writeFileSync(path, file, { mode: 0o600 });
    const machine: HostMachine = {
      environment: { HELMDECK_DATA_DIR: folder, ...set },
      platform: process.platform,
      home: () => folder,
    };
    const read = () => readSettings(machine);
    const start = () => new SettingsEditor(readConfig(read()), read());
    return { path, start, text: () => readFileSync(path, 'utf8') };
  }
  const row = (owner: SettingsEditor, name: string) => owner.snapshot().settings.find((one) => one.name === name);

  test('is added to the file, and takes effect at the next start', () => {
    const { path, start, text } = settings({}, '{"HELMDECK_FETCH_HOSTS": ["docs.example.com"], "HELMDECK_QUOTA_FACTS": 5}');
    const owner = start();
    expect(owner.change('HELMDECK_QUOTA_FACTS', '7')).toMatchObject({ value: '5', from: 'file', next: '7' });
    owner.change('HELMDECK_ADDR', '127.0.0.1:7400');
    expect(JSON.parse(text())).toEqual({
      HELMDECK_FETCH_HOSTS: ['docs.example.com'],
      HELMDECK_QUOTA_FACTS: 7,
      HELMDECK_ADDR: '127.0.0.1:7400',
    });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(row(start(), 'HELMDECK_QUOTA_FACTS')).toEqual({
      name: 'HELMDECK_QUOTA_FACTS',
      label: 'Maximum number of facts per memory',
      help: SETTINGS.HELMDECK_QUOTA_FACTS.help,
      from: 'file',
      value: '7',
      usual: '10000',
      changeable: true,
    });
  });

  test('is removed from the file when reset to its default', () => {
    const { start, text } = settings({}, '{"HELMDECK_LOCK_AFTER": 5}');
    expect(start().change('HELMDECK_LOCK_AFTER', undefined)).toMatchObject({ value: '5', next: 'never' });
    expect(JSON.parse(text())).toEqual({});
    expect(row(start(), 'HELMDECK_LOCK_AFTER')).toMatchObject({ from: 'nowhere', usual: 'never' });
  });

  test('and changed back shows no pending change', () => {
    const owner = settings({}, '{"HELMDECK_LOCK_AFTER": 5}').start();
    owner.change('HELMDECK_LOCK_AFTER', '6');
    expect(owner.change('HELMDECK_LOCK_AFTER', '5')).not.toHaveProperty('next');
  });

  test.each([
    ['HELMDECK_QUOTA_FACTS', '0', /^HELMDECK_QUOTA_FACTS must be a whole number/],
    ['HELMDECK_LOCK_AFTER', '1441', /^HELMDECK_LOCK_AFTER must be at most 1440/],
    ['HELMDECK_ADDR', '0.0.0.0:7345', /^HELMDECK_ADDR must be 127\.0\.0\.1/],
    ['HELMDECK_SECRETS', 'off', /^HELMDECK_SECRETS must be refuse or warn/],
    ['HELMDECK_SHORTCUT', 'M', /^HELMDECK_SHORTCUT must be a key combination/],
    ['HELMDECK_OPENCLAW_QMD', 'false', /^HELMDECK_OPENCLAW_QMD must be on or off/],
    ['HELMDECK_MEMORY_KEY_FILE', '/tmp/key', /^HELMDECK_MEMORY_KEY_FILE cannot be changed here/],
    ['HELMDECK_PACKS', 'mine', /^HELMDECK_PACKS cannot be changed here/],
    ['HELMDECK_FETCH_HOSTS', 'example.com', /^HELMDECK_FETCH_HOSTS cannot be changed here/],
    ['HELMDECK_DATA_DIR', '/tmp', /^HELMDECK_DATA_DIR cannot be changed here/],
    ['HELMDECK_JWT_SECRET', 'x'.repeat(40), /^HELMDECK_JWT_SECRET cannot be changed here/],
    ['__proto__', 'x', /^This setting cannot be changed here/],
    ['HELMDECK_WRITES_PER_MINUTE', '5', /^HELMDECK_WRITES_PER_MINUTE is set by an environment variable/],
  ])('%s=%j is refused, and nothing is written', (name, value, says) => {
    const { path, start } = settings({ HELMDECK_WRITES_PER_MINUTE: '1' });
    expect(() => start().change(name, value)).toThrow(says);
    expect(existsSync(path)).toBe(false);
  });

  test('is refused if the file is invalid, and the file is unchanged', () => {
    const { path, start, text } = settings({}, '{}');
    const owner = start();
    for (const broken of ['{"HELMDECK_NOTHING": 1}', 'no JSON']) {
      writeFileSync(path, broken);
      expect(() => owner.change('HELMDECK_LOCK_AFTER', '5')).toThrow(/configuration file/);
      expect(text()).toBe(broken);
    }
  });

  test('is written to the target of a link, and the link stays', () => {
    const { path, start } = settings();
    const far = join(tempFolder(), 'far.json');
    writeFileSync(far, '{}', { mode: 0o600 });
    symlinkSync(far, path);
    start().change('HELMDECK_LOCK_AFTER', '5');
    expect(readlinkSync(path)).toBe(far);
    expect(JSON.parse(readFileSync(far, 'utf8'))).toEqual({ HELMDECK_LOCK_AFTER: 5 });
  });
});
