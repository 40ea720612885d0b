import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ServerCertificate } from '../../../src/listeners/team/certificate.ts';
import { addressGroup } from '../../../src/listeners/team/pending-connections.ts';
import { createProxyList } from '../../../src/listeners/team/proxy-list.ts';
import { createAuthority } from '../../support/certificates.ts';
import { serveTeam } from '../../support/team.ts';
import { tempFolder } from '../../support/temp-folder.ts';

function issued() {
  const authority = createAuthority();
  return { authority, good: authority.issue(['DNS:memory.test']), other: authority.issue(['DNS:memory.test']) };
}
type Issued = ReturnType<typeof issued>;

function written(name: string, text: string, mode = 0o600): string {
  const path = join(tempFolder(), name);
  writeFileSync(path, text, { mode });
  chmodSync(path, mode);
  return path;
}

function readableKey({ good }: Issued): string {
  const path = join(tempFolder(), 'key.pem');
  copyFileSync(good.keyFile, path);
  chmodSync(path, 0o644);
  return path;
}

function encryptedKey({ good }: Issued): string {
  const path = join(tempFolder(), 'key.pem');
  execFileSync('openssl', ['pkey', '-in', good.keyFile, '-aes128', '-passout', 'pass:secret', '-out', path]);
  chmodSync(path, 0o600);
  return path;
}

test.each([
  {
    what: 'a missing certificate',
    files: (given: Issued) => ({ ...given.good, certificateFile: '/nowhere/cert.pem' }),
    says: /CERT_FILE names cannot be read/,
  },
  {
    what: 'a missing key',
    files: (given: Issued) => ({ ...given.good, keyFile: '/nowhere/key.pem' }),
    says: /KEY_FILE names cannot be read/,
  },
  {
    what: 'a folder',
    files: (given: Issued) => ({ ...given.good, certificateFile: tempFolder() }),
    says: /CERT_FILE names cannot be read/,
  },
  {
    what: 'text',
    files: (given: Issued) => ({ ...given.good, certificateFile: written('cert.pem', 'hello') }),
    says: /no certificate in PEM/,
  },
  {
    what: 'text as key',
    files: (given: Issued) => ({ ...given.good, keyFile: written('key.pem', 'hello') }),
    says: /no private key in PEM/,
  },
  {
    what: 'a key with a password',
    files: (given: Issued) => ({ ...given.good, keyFile: encryptedKey(given) }),
    says: /without a password/,
  },
  {
    what: 'a key that others can read',
    files: (given: Issued) => ({ ...given.good, keyFile: readableKey(given) }),
    says: /Other users have access to the file that HELMDECK_TLS_KEY_FILE/,
  },
  {
    what: 'another key',
    files: (given: Issued) => ({ ...given.good, keyFile: given.other.keyFile }),
    says: /does not belong to the certificate/,
  },
  {
    what: 'an expired certificate',
    files: (given: Issued) => given.authority.issue(['DNS:a.test'], { from: -9, until: -2 }),
    says: /expired on \d{4}-\d\d-\d\d; renew it/,
  },
  {
    what: 'a future certificate',
    files: (given: Issued) => given.authority.issue(['DNS:a.test'], { from: 2, until: 9 }),
    says: /valid only from \d{4}-\d\d-\d\d/,
  },
])('the start refuses $what with one sentence (R-TEAM-02)', async ({ files, says }) => {
  const started = serveTeam({ team: { certificate: files(issued()) } });
  await expect(started).rejects.toMatchObject({ code: 'invalid_config', message: expect.stringMatching(says) });
  await expect(started).rejects.not.toThrow(/pass:|BEGIN|hello/);
});

test('a certificate knows its names and its expiry', () => {
  const certificate = new ServerCertificate(
    issued().authority.issue(['DNS:*.team.test', 'DNS:memory.test', 'IP:10.1.2.3', 'IP:fd00::1'], { until: 5 }),
    Date.now(),
  );
  expect(certificate.firstName).toBe('memory.test');
  expect(['memory.test', 'x.team.test', '10.1.2.3', 'fd00:0::1'].map((name) => certificate.isFor(name))).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect(['test', '10.1.2.4', '*.team.test', 'a.b.team.test'].map((name) => certificate.isFor(name))).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect(Math.round((certificate.expires - Date.now()) / 86_400_000)).toBe(5);
});

test('a certificate behind a link is reloaded when the link changes, as renewal programs do it', () => {
  const { good, other } = issued();
  const folder = tempFolder();
  const files = { certificateFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
  const link = (target: typeof files): void => {
    for (const name of ['certificateFile', 'keyFile'] as const) {
      rmSync(files[name], { force: true });
      symlinkSync(target[name], files[name]);
    }
  };
  link(good);
  const certificate = new ServerCertificate(files, Date.now());
  expect(certificate.reload(Date.now())).toBe(false);
  const { cert } = certificate.material;
  link(other);
  expect(certificate.reload(Date.now())).toBe(true);
  expect(certificate.material.cert).not.toBe(cert);
  link({ ...other, keyFile: '/nowhere' });
  expect(() => certificate.reload(Date.now())).toThrow(/cannot be read/);
  expect(certificate.reload(Date.now())).toBe(false);
  expect(certificate.isFor('memory.test')).toBe(true);
});

test.each([
  ['10.1.2.3', '10.1.2.3'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['fd00:1:2:3:4:5:6:7', 'fd00:1:2:3'],
  ['fd00::7', 'fd00:0:0:0'],
  ['::1', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
])('connections from %s are counted as %s (R-TEAM-06)', (address, group) => {
  expect(addressGroup(address)).toBe(group);
});

test('a proxy is an address or a small network (R-TEAM-05)', () => {
  const list = createProxyList(['10.1.0.0/16', '127.0.0.1', 'fd00::/64']);
  expect(list?.check('10.1.255.255')).toBe(true);
  expect(list?.check('::ffff:10.1.2.3', 'ipv6')).toBe(true);
  expect(list?.check('10.2.0.0')).toBe(false);
  expect(list?.check('fd00::9', 'ipv6')).toBe(true);
  for (const bad of ['0.0.0.0/0', '10.0.0.0/8', '::/0', 'fd00::/48', 'proxy.test', '10.1.0.0/33', '10.1.0.0/', '', '*'])
    expect([bad, createProxyList([bad])]).toEqual([bad, undefined]);
});
