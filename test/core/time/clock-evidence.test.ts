import { describe, expect, test } from 'vitest';
import { uptimeOrigin, uptimeOriginOf, type UptimeSystem } from '../../../src/core/time/clock-evidence.ts';

const BOOT = 'd34887f2-2559-476f-ae7e-f27e6d361b1d';

const system = (parts: Partial<UptimeSystem>): UptimeSystem => {
  const unused = (): never => {
    throw new Error('This system has no such file or program.');
  };
  return { platform: 'linux', read: unused, readLink: unused, deviceOf: () => 22, run: unused, ...parts };
};

describe('the origin of the uptime (R-TIME-10)', () => {
  test('is the boot and the time namespace on Linux', () => {
    const read = (): string => `${BOOT}\n`;
    expect(uptimeOriginOf(system({ read }))).toBe(`${BOOT} `);
    expect(uptimeOriginOf(system({ read, readLink: () => 'time:[4026531834]' }))).toBe(`${BOOT} time:[4026531834]`);
  });

  test('is unknown where a container replaces /proc/uptime, or where there is no boot id', () => {
    const read = (): string => `${BOOT}\n`;
    expect(uptimeOriginOf(system({ read, deviceOf: (file) => (file === '/proc/uptime' ? 71 : 22) }))).toBeUndefined();
    expect(uptimeOriginOf(system({}))).toBeUndefined();
    expect(uptimeOriginOf(system({ read: () => '\n' }))).toBeUndefined();
  });

  test('is the boot session on macOS', () => {
    const run = (): string => 'DA90818C-0F6C-4A5E-9B53-0C1B7C4E4A11\n';
    expect(uptimeOriginOf(system({ platform: 'darwin', run }))).toBe('da90818c-0f6c-4a5e-9b53-0c1b7c4e4a11');
    expect(
      uptimeOriginOf(system({ platform: 'darwin', run: () => "sysctl: unknown oid 'kern.bootsessionuuid'\n" })),
    ).toBeUndefined();
    expect(uptimeOriginOf(system({ platform: 'darwin' }))).toBeUndefined();
  });

  test('is the installation on Windows', () => {
    const answer = (value: string): string =>
      `\r\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Cryptography\r\n    MachineGuid    REG_SZ    ${value}\r\n\r\n`;
    expect(uptimeOriginOf(system({ platform: 'win32', run: () => answer(BOOT) }))).toBe(BOOT);
    expect(uptimeOriginOf(system({ platform: 'win32', run: () => answer('') }))).toBeUndefined();
    expect(uptimeOriginOf(system({ platform: 'freebsd', run: () => BOOT }))).toBeUndefined();
  });

  test.runIf(process.platform === 'linux')('is read from this system', () => {
    expect(uptimeOrigin()).toBe(uptimeOrigin());
  });
});
