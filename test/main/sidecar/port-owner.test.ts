import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { freePort, inLsof, inNetstat, ownerOf } from '../../../src/main/sidecar/port-owner.ts';

test.runIf(process.platform === 'linux')('a port is known to be a process’s own, another’s or nobody’s (R-EMB-05)', async () => {
  const port = await freePort();
  expect(await ownerOf(port, process.pid)).toBe('nobody');
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  expect(await ownerOf(port, process.pid)).toBe('it');
  expect(await ownerOf(port, process.ppid)).toBe('another');
  const beside = createServer();
  await new Promise<void>((resolve) => void beside.listen(port, '127.0.0.2', resolve));
  onTestFinished(() => void beside.close());
  expect(await ownerOf(port, process.pid)).toBe('it');
});

test('what other systems tell of it is read by form, not by words (R-EMB-05)', () => {
  expect(inLsof('p4711\nf12\np4712\n')).toEqual([4711, 4712]);
  const told = [
    '  Proto  Lokale Adresse         Remoteadresse          Status           PID',
    '  TCP    127.0.0.1:5000         0.0.0.0:0              ABHÖREN          4711',
    '  TCP    127.0.0.1:5000         127.0.0.1:61000        HERGESTELLT      4711',
    '  TCP    127.0.0.1:15000        0.0.0.0:0              ABHÖREN          9',
  ].join('\r\n');
  expect(inNetstat(told, 5000)).toEqual([4711]);
});
