import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { asFailure } from '../../../src/contract/failure.ts';
import { readConfig } from '../../../src/main/config/config.ts';
import { readSettings } from '../../../src/main/config/settings-file.ts';
import { SETTINGS } from '../../../src/main/config/settings-table.ts';
import { runs } from '../../support/runs.ts';
import { A_KEY, ANOTHER_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

let folder: string;

beforeEach(() => {
  folder = join(tempFolder(), 'data');
  mkdirSync(folder, { mode: 0o700 });
});

const machine = (environment: Record<string, string> = {}) => ({
  environment: { HELMDECK_DATA_DIR: folder, ...environment },
  platform: process.platform,
  home: () => '/nowhere',
});
const read = (environment?: Record<string, string>) => readSettings(machine(environment));
const config = (environment?: Record<string, string>) => readConfig(read(environment));

function write(settings: unknown, { path = join(folder, 'config.json'), mode = 0o600 } = {}): string {
  writeFileSync(path, typeof settings === 'string' ? settings : JSON.stringify(settings));
  chmodSync(path, mode);
  return path;
}

describe('a setting in the configuration file (R-HTTP-12)', () => {
  test('has the same name and effect as in the environment', () => {
    write({
      HELMDECK_ADDR: '[::1]:0',
      HELMDECK_ALLOWED_HOSTS: ['memory.example', 'memory.example:8443'],
      HELMDECK_FETCH_HOSTS: ['docs.example.com', '*.example.org:8443'],
      HELMDECK_QUOTA_FACTS: 12,
      HELMDECK_QUOTA_BYTES: 3456,
      HELMDECK_WRITES_PER_MINUTE: 60,
      HELMDECK_BRIEF_BYTES: 500,
      HELMDECK_RECEIPTS: 'off',
      HELMDECK_SECRETS: 'warn',
      HELMDECK_PACKS: ['weather.today', 'words.count'],
      HELMDECK_OLLAMA: '/opt/ollama/bin/ollama',
      HELMDECK_OLLAMA_URL: 'http://[::1]:11434',
      HELMDECK_EMBEDDINGS_MODEL: 'all-minilm',
    });
    expect(config()).toEqual({
      folder,
      address: '[::1]:0',
      allowedHosts: ['memory.example', 'memory.example:8443'],
      fetchHosts: ['docs.example.com', '*.example.org:8443'],
      quota: { facts: 12, bytes: 3456 },
      writesPerMinute: 60,
      brief: { bytes: 500, receipts: false },
      secretPolicy: 'warn',
      packs: ['weather.today', 'words.count'],
      ollama: { path: '/opt/ollama/bin/ollama', url: new URL('http://[::1]:11434'), model: 'all-minilm' },
    });
  });

  test('is overridden by the environment', () => {
    write({ HELMDECK_ADDR: '[::1]:0', HELMDECK_SECRETS: 'warn' });
    expect(config({ HELMDECK_ADDR: '127.0.0.1:1' })).toMatchObject({ address: '127.0.0.1:1', secretPolicy: 'warn' });
  });

  test('is overridden by its other form in the environment (NAME and NAME_FILE)', () => {
    write({ HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_JWT_SECRET_FILE: '/nowhere' });
    const { environment } = read({ HELMDECK_MEMORY_KEY_FILE: '/etc/key', HELMDECK_JWT_SECRET: 'x' });
    expect(environment).toEqual({
      HELMDECK_DATA_DIR: folder,
      HELMDECK_MEMORY_KEY_FILE: '/etc/key',
      HELMDECK_JWT_SECRET: 'x',
    });
  });

  test('is read from config.json in the data folder, or from the file that HELMDECK_CONFIG names', () => {
    expect(read().file).toBeUndefined();
    const own = write({ HELMDECK_MEMORY_KEY: A_KEY });
    expect(read()).toMatchObject({ file: own, environment: { HELMDECK_MEMORY_KEY: A_KEY } });
    const other = write(
      { HELMDECK_MEMORY_KEY: ANOTHER_KEY, HELMDECK_DATA_DIR: '/elsewhere' },
      { path: join(folder, '..', 'other.json') },
    );
    const named = readSettings({ ...machine(), environment: { HELMDECK_CONFIG: other } });
    expect(named.environment).toMatchObject({ HELMDECK_MEMORY_KEY: ANOTHER_KEY, HELMDECK_DATA_DIR: '/elsewhere' });
  });

  test.each(Object.entries(SETTINGS))('%s is accepted', (name, { fileType }) => {
    const path = write({ [name]: { text: '/x', number: 5, list: ['a', 'b'] }[fileType] }, { path: join(folder, 'named.json') });
    expect(readSettings({ ...machine(), environment: { HELMDECK_CONFIG: path } }).environment).toMatchObject({
      [name]: { text: '/x', number: '5', list: 'a,b' }[fileType],
    });
  });
});

describe('an invalid configuration file stops the start and names the setting (R-HTTP-12, R-OPS-13)', () => {
  test.each([
    { what: 'an unknown name', settings: { HELMDECK_PORT: 1 }, says: /HELMDECK_PORT, which is not a setting/ },
    { what: 'a name without HELMDECK_', settings: { ADDR: 'x' }, says: /sets ADDR, which is not a setting/ },
    { what: '__proto__', settings: '{"__proto__": "x"}', says: /which is not a setting/ },
    { what: 'a number in quotes', settings: { HELMDECK_QUOTA_FACTS: '12' }, says: /^HELMDECK_QUOTA_FACTS must be a number/ },
    { what: 'a fraction', settings: { HELMDECK_QUOTA_FACTS: 1.5 }, says: /^HELMDECK_QUOTA_FACTS must be a whole number/ },
    { what: 'a number for a text', settings: { HELMDECK_ADDR: 7345 }, says: /^HELMDECK_ADDR must be text/ },
    { what: 'a text for a list', settings: { HELMDECK_ALLOWED_HOSTS: 'a' }, says: /^HELMDECK_ALLOWED_HOSTS must be a list/ },
    { what: 'null', settings: { HELMDECK_ADDR: null }, says: /^HELMDECK_ADDR must be text/ },
    {
      what: 'the data folder, in the file of that folder',
      settings: { HELMDECK_DATA_DIR: '/x' },
      says: /^HELMDECK_DATA_DIR cannot be set/,
    },
    { what: 'a list', settings: [], says: /config\.json in the data folder must contain one JSON object/ },
    {
      what: 'a file that is not JSON',
      settings: 'HELMDECK_JWT_SECRET=hush-5e5e',
      says: /^(?!.*5e5e).*config\.json in the data folder is not JSON/,
    },
  ])('$what', ({ settings, says }) => {
    write(settings);
    expect(() => config()).toThrow(says);
  });

  test('any file is either accepted or refused in one sentence', () => {
    const names = fc.constantFrom(...Object.keys(SETTINGS), '__proto__', 'x');
    const settings = fc
      .dictionary(names, fc.oneof(fc.jsonValue(), fc.constantFrom('/x', 'warn', 5, ['a.example'])))
      .map((set) => JSON.stringify(set));
    const cut = fc.tuple(settings, fc.nat(200)).map(([text, at]) => text.slice(0, at));
    const outcomes = { read: 0, refused: 0 };
    const outcomeOf = (text: string): string => {
      write(text);
      try {
        const { environment } = read();
        return Object.values(environment).every((value) => typeof value === 'string') ? 'read' : 'read as something else';
      } catch (error) {
        const { code, message } = asFailure(error);
        return code === 'invalid_config' && /^[^\n]+\.$/.test(message) ? 'refused' : `${code}: ${message}`;
      }
    };
    fc.assert(
      fc.property(fc.oneof(settings, cut, fc.string({ unit: 'binary' })), (text) => {
        const outcome = outcomeOf(text);
        expect(['read', 'refused']).toContain(outcome);
        outcomes[outcome as keyof typeof outcomes] += 1;
      }),
      { numRuns: runs(3000) },
    );
    expect(Math.min(outcomes.read, outcomes.refused)).toBeGreaterThan(runs(3000) / 30);
  });

  test('a file that other users can write', () => {
    write({ HELMDECK_ADDR: '127.0.0.1:0' }, { mode: 0o664 });
    expect(() => read()).toThrow(/must belong to you.*chmod 600/);
  });

  test('a file with a secret that other users can read', () => {
    const path = write({ HELMDECK_ADDR: '127.0.0.1:0' }, { mode: 0o644 });
    expect(read().file).toBe(path);
    write({ HELMDECK_JWT_SECRET: 'hush-5e5e' }, { mode: 0o644 });
    expect(() => read()).toThrow(/^(?!.*5e5e).*contains HELMDECK_JWT_SECRET, and other users can read the file/);
  });

  test('a missing file, a relative path, and a path that is not a file', () => {
    expect(() => read({ HELMDECK_CONFIG: join(folder, 'none.json') })).toThrow(/path in HELMDECK_CONFIG cannot be read/);
    expect(() => read({ HELMDECK_CONFIG: 'config.json' })).toThrow(/^HELMDECK_CONFIG must be an absolute path/);
    expect(() => read({ HELMDECK_CONFIG: folder })).toThrow(/regular file/);
  });

  test('but a link to a file is followed', () => {
    const path = write({ HELMDECK_SECRETS: 'warn' }, { path: join(folder, 'real.json') });
    symlinkSync(path, join(folder, 'config.json'));
    expect(config()).toMatchObject({ secretPolicy: 'warn' });
  });
});
