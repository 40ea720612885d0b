import { createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  freePort,
  pidsInLsof,
  pidsInNetstat,
  isOwnedByTrustedUser,
  ownerOf,
  serviceUsers,
  usersInLsof,
} from '../../../src/main/sidecar/port-owner.ts';
import { listenAsUser } from '../../support/another-user.ts';

test.runIf(process.platform === 'linux')(
  'the owner of a port is this process, another process or unknown (R-EMB-05)',
  async () => {
    const port = await freePort();
    expect(await ownerOf(port, process.pid)).toBe('none');
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    expect(await ownerOf(port, process.pid)).toBe('expected');
    expect(await ownerOf(port, process.ppid)).toBe('another');
    const beside = createServer();
    await new Promise<void>((resolve) => void beside.listen(port, '127.0.0.2', resolve));
    onTestFinished(() => void beside.close());
    expect(await ownerOf(port, process.pid)).toBe('expected');
  },
);

test('the output of other systems is parsed regardless of its language (R-EMB-05)', () => {
  expect(pidsInLsof('p4711\nf12\np4712\n')).toEqual([4711, 4712]);
  const told = [
    '  Proto  Lokale Adresse         Remoteadresse          Status           PID',
    '  TCP    127.0.0.1:5000         0.0.0.0:0              ABHÖREN          4711',
    '  TCP    127.0.0.1:5000         127.0.0.1:61000        HERGESTELLT      4711',
    '  TCP    127.0.0.1:15000        0.0.0.0:0              ABHÖREN          9',
  ].join('\r\n');
  expect(pidsInNetstat(told, 5000)).toEqual([4711]);
});

describe('an adopted Ollama must not belong to another user (R-EMB-07)', () => {
  test.runIf(process.platform === 'linux')('a program of this user is accepted, and an unused port is not', async () => {
    const port = await freePort();
    expect(await isOwnedByTrustedUser(port)).toBe(false);
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    expect(await isOwnedByTrustedUser(port)).toBe(true);
  });

  test.runIf(process.platform === 'linux' && process.getuid?.() === 0)('a program of another user is refused', async () => {
    const port = await listenAsUser(65_534);
    expect(await isOwnedByTrustedUser(port)).toBe(false);
  });

  test('the user of the Ollama service is accepted', () => {
    expect(usersInLsof('p4711\nu501\nf12\np4712\nu0\n')).toEqual([501, 0]);
    expect(serviceUsers('root:x:0:0::/root:/bin/sh\nollama:x:998:998::/usr/share/ollama:/bin/false\n')).toEqual([998]);
    expect(serviceUsers('mallory:x:1001:1001:ollama:x:1:::\nollama2:x:5:5::/:\n')).toEqual([]);
  });
});
