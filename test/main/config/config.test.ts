import { describe, expect, test } from 'vitest';
import { type HostMachine, readConfig } from '../../../src/main/config/config.ts';

const linux: HostMachine = { environment: {}, platform: 'linux', home: () => '/home/ada' };
const mac: HostMachine = { environment: {}, platform: 'darwin', home: () => '/Users/ada' };
const windows: HostMachine = { environment: {}, platform: 'win32', home: () => String.raw`C:\Users\ada` };
const homeless = (): string => {
  throw new Error('no entry for this user');
};

describe('the data folder (R-STORE-03)', () => {
  test.each([
    { where: 'on Linux', machine: linux, folder: '/home/ada/.local/share/helmdeck-memory' },
    {
      where: 'on Linux with XDG_DATA_HOME',
      machine: { ...linux, environment: { XDG_DATA_HOME: '/data' } },
      folder: '/data/helmdeck-memory',
    },
    {
      where: 'on Linux with a relative XDG_DATA_HOME, which the specification ignores',
      machine: { ...linux, environment: { XDG_DATA_HOME: 'data' } },
      folder: '/home/ada/.local/share/helmdeck-memory',
    },
    {
      where: 'on Linux with an empty XDG_DATA_HOME',
      machine: { ...linux, environment: { XDG_DATA_HOME: '' } },
      folder: '/home/ada/.local/share/helmdeck-memory',
    },
    { where: 'on macOS', machine: mac, folder: '/Users/ada/Library/Application Support/Helmdeck Memory' },
    {
      where: 'on Windows',
      machine: { ...windows, environment: { APPDATA: String.raw`D:\Roaming` } },
      folder: String.raw`D:\Roaming\Helmdeck Memory`,
    },
    {
      where: 'on Windows without APPDATA',
      machine: windows,
      folder: String.raw`C:\Users\ada\AppData\Roaming\Helmdeck Memory`,
    },
    {
      where: 'by HELMDECK_DATA_DIR',
      machine: { ...linux, environment: { HELMDECK_DATA_DIR: '/srv/memory', XDG_DATA_HOME: '/data' } },
      folder: '/srv/memory',
    },
    {
      where: 'by HELMDECK_DATA_DIR on Windows',
      machine: { ...windows, environment: { HELMDECK_DATA_DIR: String.raw`E:\memory` } },
      folder: String.raw`E:\memory`,
    },
    {
      where: 'by HELMDECK_DATA_DIR without a home folder',
      machine: { ...linux, home: homeless, environment: { HELMDECK_DATA_DIR: '/srv/memory' } },
      folder: '/srv/memory',
    },
  ])('is found $where', ({ machine, folder }) => {
    expect(readConfig(machine).folder).toBe(folder);
  });

  test.each([
    { what: 'a relative path', machine: { ...linux, environment: { HELMDECK_DATA_DIR: 'secret-place' } } },
    {
      what: 'a path with a tilde',
      machine: { ...linux, environment: { HELMDECK_DATA_DIR: '~/secret-place' } },
    },
    { what: 'an empty path', machine: { ...linux, environment: { HELMDECK_DATA_DIR: '' } } },
    { what: 'a relative path on Windows', machine: { ...windows, environment: { HELMDECK_DATA_DIR: 'secret-place' } } },
    { what: 'no home folder and no setting', machine: { ...linux, home: homeless } },
    { what: 'an empty home folder and no setting', machine: { ...mac, home: () => '' } },
  ])('is refused with the name of its setting: $what', ({ machine }) => {
    expect(() => readConfig(machine)).toThrow(
      expect.objectContaining({
        name: 'Failure',
        message: expect.stringMatching(/^(?!.*secret-place).*HELMDECK_DATA_DIR/) as string,
      }),
    );
  });
});

describe('the other settings (R-OPS-13)', () => {
  const set = (environment: Record<string, string>) => readConfig({ ...linux, environment });

  test('have the documented defaults (R-FACT-16, R-FACT-17, R-FACT-18)', () => {
    expect(set({})).toMatchObject({
      quota: { facts: 10_000, bytes: 67_108_864 },
      secretPolicy: 'refuse',
      writesPerMinute: undefined,
      address: '127.0.0.1:7345',
    });
  });

  test('are read from the environment', () => {
    expect(
      set({
        HELMDECK_QUOTA_FACTS: '200000',
        HELMDECK_QUOTA_BYTES: '1000000000',
        HELMDECK_SECRETS: 'warn',
        HELMDECK_WRITES_PER_MINUTE: '60',
        HELMDECK_ADDR: '[::1]:0',
      }),
    ).toMatchObject({
      quota: { facts: 200_000, bytes: 1_000_000_000 },
      secretPolicy: 'warn',
      writesPerMinute: 60,
      address: '[::1]:0',
    });
  });

  test.each(
    ['HELMDECK_QUOTA_FACTS', 'HELMDECK_QUOTA_BYTES', 'HELMDECK_WRITES_PER_MINUTE', 'HELMDECK_LOCK_AFTER'].flatMap((name) =>
      ['', '0', '-1', '1.5', '1e3', '10k', ' 1', '9'.repeat(16)].map((text) => ({ name, text })),
    ),
  )('$name="$text" stops the start with a message that names it', ({ name, text }) => {
    expect(() => set({ [name]: text })).toThrow(new RegExp(`^${name} must be a whole number`));
  });

  test.each(['', 'Warn', 'off'])('HELMDECK_SECRETS="%s" stops the start with a message that names it', (text) => {
    expect(() => set({ HELMDECK_SECRETS: text })).toThrow(/^HELMDECK_SECRETS must be refuse or warn/);
  });

  test.each(['', 'ON', 'false'])('HELMDECK_OPENCLAW_QMD of "%s" stops the start with its name (R-OPS-13, R-CLAW-11)', (text) => {
    expect(() => readConfig({ ...linux, environment: { HELMDECK_OPENCLAW_QMD: text } })).toThrow(/^HELMDECK_OPENCLAW_QMD /);
  });

  test('HELMDECK_BRIEF_BYTES is 0 or a size of a brief (R-BRIEF-01, R-OPS-13)', () => {
    const bytes = (text: string): number => readConfig({ ...linux, environment: { HELMDECK_BRIEF_BYTES: text } }).brief.bytes;
    expect(readConfig(linux).brief).toEqual({ bytes: 1000, receipts: true });
    expect(readConfig({ ...linux, environment: { HELMDECK_RECEIPTS: 'off' } }).brief.receipts).toBe(false);
    expect(['0', '200', '4000'].map(bytes)).toEqual([0, 200, 4000]);
    for (const text of ['', '199', '4001', '-1', '1e3', '1000.0', 'off']) {
      expect(() => bytes(text), text).toThrow(/^HELMDECK_BRIEF_BYTES must be 0 or a whole number from 200 to 4000/);
    }
  });

  test('HELMDECK_LOCK_AFTER is at most a day (R-LOCK-01)', () => {
    expect(set({}).lockAfterMinutes).toBeUndefined();
    expect(set({ HELMDECK_LOCK_AFTER: '1440' }).lockAfterMinutes).toBe(1440);
    expect(() => set({ HELMDECK_LOCK_AFTER: '1441' })).toThrow(
      /^HELMDECK_LOCK_AFTER must be at most 1440 minutes, which is a day/,
    );
  });

  test.each(['Ctrl+Shift+M', 'CmdOrCtrl+Alt+Space', 'Super+F12', 'Alt+1'])('HELMDECK_SHORTCUT may be %s (R-DESK-16)', (keys) => {
    expect(set({}).shortcut).toBeUndefined();
    expect(set({ HELMDECK_SHORTCUT: keys }).shortcut).toBe(keys);
  });

  test.each(['', 'M', 'Shift+M', 'Ctrl', 'Ctrl+', 'ctrl+m', 'Ctrl+Shift+MM', 'Ctrl+F25', 'Ctrl+Enter', ' Ctrl+M'])(
    'HELMDECK_SHORTCUT of "%s" stops the start with its name (R-DESK-16)',
    (keys) => {
      expect(() => set({ HELMDECK_SHORTCUT: keys })).toThrow(/^HELMDECK_SHORTCUT must be a key combination such as/);
    },
  );

  test.each([
    ['HELMDECK_OLLAMA', 'bin/ollama'],
    ['HELMDECK_OLLAMA', ''],
    ['HELMDECK_OLLAMA_URL', 'http://192.168.1.5:11434'],
    ['HELMDECK_OLLAMA_URL', 'http://localhost.example:11434'],
    ['HELMDECK_OLLAMA_URL', 'https://127.0.0.1:11434'],
    ['HELMDECK_OLLAMA_URL', 'http://me:secret@127.0.0.1:11434'],
    ['HELMDECK_OLLAMA_URL', 'http://127.0.0.1:11434/v1'],
    ['HELMDECK_EMBEDDINGS_MODEL', 'gpt-oss:120b-cloud'],
    ['HELMDECK_EMBEDDINGS_MODEL', '../../etc'],
    ['HELMDECK_EMBEDDINGS_MODEL', ''],
  ])('%s="%s" stops the start with a message that names it (R-EMB-03, R-OPS-13)', (name, text) => {
    expect(() => set({ [name]: text })).toThrow(new RegExp(`^${name} must be`));
  });

  test('HELMDECK_FETCH_HOSTS lists the hosts of http.fetch; by default there are none (R-PACK-15)', () => {
    expect(set({}).fetchHosts).toEqual([]);
    expect(set({ HELMDECK_FETCH_HOSTS: 'docs.example.com, *.example.org:8443' }).fetchHosts).toEqual([
      'docs.example.com',
      '*.example.org:8443',
    ]);
  });

  test.each(['', '*', 'docs.example.com,', 'https://docs.example.com', '127.0.0.1', 'localhost', '*.com', 'DOCS.example.com'])(
    'HELMDECK_FETCH_HOSTS of "%s" stops the start with its name (R-PACK-15)',
    (text) => {
      expect(() => set({ HELMDECK_FETCH_HOSTS: text })).toThrow(/^HELMDECK_FETCH_HOSTS must be full host names/);
    },
  );
});

describe('a server for other machines (R-TEAM-01)', () => {
  const tls = { HELMDECK_TLS_CERT_FILE: '/etc/tls/cert.pem', HELMDECK_TLS_KEY_FILE: '/etc/tls/key.pem' };
  const proxy = { HELMDECK_TRUSTED_PROXY: '127.0.0.1, 172.18.0.0/16', HELMDECK_SERVER_HOSTS: 'memory.example' };
  const address = { HELMDECK_SERVER_ADDR: '0.0.0.0:7443' };
  const team = (environment: Record<string, string>) => readConfig({ ...linux, environment }).team;

  test('is off by default', () => {
    expect(team({})).toBeUndefined();
  });

  test('needs TLS or a proxy', () => {
    expect(team({ ...address, ...tls })).toEqual({
      address: { host: '0.0.0.0', port: 7443 },
      hosts: [],
      proxies: [],
      certificate: { certificateFile: '/etc/tls/cert.pem', keyFile: '/etc/tls/key.pem' },
    });
    expect(team({ HELMDECK_SERVER_ADDR: '[::]:0', ...proxy })).toEqual({
      address: { host: '::', port: 0 },
      hosts: ['memory.example'],
      proxies: ['127.0.0.1', '172.18.0.0/16'],
      certificate: undefined,
    });
    expect(team({ ...address, ...proxy, ...tls })).toMatchObject({ certificate: expect.anything() });
  });

  test.each([
    {
      what: 'neither TLS nor a proxy',
      settings: address,
      says: /^HELMDECK_SERVER_ADDR needs TLS, .* or set HELMDECK_TRUSTED_PROXY/,
    },
    { what: 'neither, also on loopback', settings: { HELMDECK_SERVER_ADDR: '127.0.0.1:7443' }, says: /needs TLS/ },
    { what: 'only a certificate', settings: { ...address, HELMDECK_TLS_CERT_FILE: '/a' }, says: /need each other/ },
    { what: 'only a key', settings: { ...address, ...proxy, HELMDECK_TLS_KEY_FILE: '/a' }, says: /need each other/ },
    {
      what: 'a relative path',
      settings: { ...address, ...tls, HELMDECK_TLS_KEY_FILE: 'key.pem' },
      says: /^HELMDECK_TLS_KEY_FILE must be an absolute path/,
    },
    {
      what: 'a proxy without names',
      settings: { ...address, HELMDECK_TRUSTED_PROXY: '127.0.0.1' },
      says: /^HELMDECK_TRUSTED_PROXY needs HELMDECK_SERVER_HOSTS/,
    },
    {
      what: 'a proxy that is everyone',
      settings: { ...address, ...proxy, HELMDECK_TRUSTED_PROXY: '0.0.0.0/0' },
      says: /^HELMDECK_TRUSTED_PROXY must be the IP address/,
    },
    {
      what: 'a proxy by name',
      settings: { ...address, ...proxy, HELMDECK_TRUSTED_PROXY: 'proxy' },
      says: /^HELMDECK_TRUSTED_PROXY must be the IP address/,
    },
    {
      what: 'a name',
      settings: { ...tls, HELMDECK_SERVER_ADDR: 'memory.example:7443' },
      says: /^HELMDECK_SERVER_ADDR must be an IP address/,
    },
    {
      what: 'no port',
      settings: { ...tls, HELMDECK_SERVER_ADDR: '0.0.0.0' },
      says: /^HELMDECK_SERVER_ADDR must be an IP address/,
    },
    {
      what: 'a port out of range',
      settings: { ...tls, HELMDECK_SERVER_ADDR: '0.0.0.0:65536' },
      says: /^HELMDECK_SERVER_ADDR must be an IP address/,
    },
    { what: 'TLS without an address', settings: tls, says: /^HELMDECK_TLS_CERT_FILE has no effect without HELMDECK_SERVER_ADDR/ },
    { what: 'a proxy without an address', settings: proxy, says: /^HELMDECK_SERVER_HOSTS has no effect/ },
  ])('is refused with $what', ({ settings, says }) => {
    expect(() => team(settings)).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(says) }),
    );
  });
});
