import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';

const TIMEDATECTL = '/usr/bin/timedatectl';
const SYSCTL = '/usr/sbin/sysctl';
const TIMEOUT_MS = 5000;

/**
 * Returns whether a time service synchronizes the wall clock, as the kernel reports through systemd. Setting the clock by hand
 * changes the result to false until the service has corrected the clock. Undefined (unknown) on systems without systemd.
 */
export function isSynchronized(): Promise<boolean | undefined> {
  if (process.platform !== 'linux') return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const options = { env: { LC_ALL: 'C' }, timeout: TIMEOUT_MS, encoding: 'utf8' } as const;
    execFile(TIMEDATECTL, ['show', '--property=NTPSynchronized', '--value'], options, (error, stdout) => {
      const answer = error ? '' : stdout.trim();
      resolve(answer === 'yes' ? true : answer === 'no' ? false : undefined);
    });
  });
}

/**
 * The system functions that read the identity of the uptime counter. Tests replace them.
 * @internal
 */
export interface UptimeSystem {
  readonly platform: NodeJS.Platform;
  read(file: string): string;
  readLink(file: string): string;
  deviceOf(file: string): number;
  run(program: string, args: readonly string[]): string;
}

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';

/**
 * Returns an id of the counter behind `os.uptime()`. If two readings have the same id, their difference is never more than the
 * time that passed between them, whatever the wall clock was set to. Undefined if the system cannot guarantee this.
 *
 * - Linux: the boot id and the time namespace. LXC containers replace /proc/uptime with the uptime of the container, so they
 *   give no id.
 * - macOS: the boot id. `os.uptime()` is the wall clock minus `kern.boottime`, and setting the clock moves both equally.
 * - Windows: the id of the installation, because programs cannot read a boot id. A new boot starts the counter at zero, so the
 *   difference is then less than the time between the readings.
 * @internal
 */
export function uptimeOriginOf(system: UptimeSystem): string | undefined {
  try {
    if (system.platform === 'linux') return linuxOrigin(system);
    if (system.platform === 'darwin') return uuidIn(system.run(SYSCTL, ['-n', 'kern.bootsessionuuid']), `^(${UUID})$`);
    if (system.platform !== 'win32') return undefined;
    const reg = join(process.env['SystemRoot'] ?? 'C:\\Windows', 'System32', 'reg.exe');
    const answer = system.run(reg, ['query', String.raw`HKLM\SOFTWARE\Microsoft\Cryptography`, '/v', 'MachineGuid']);
    return uuidIn(answer, String.raw`^\s*MachineGuid\s+REG_SZ\s+(${UUID})\s*$`);
  } catch {
    return undefined;
  }
}

function linuxOrigin(system: UptimeSystem): string | undefined {
  if (system.deviceOf('/proc/uptime') !== system.deviceOf('/proc')) return undefined;
  const boot = uuidIn(system.read('/proc/sys/kernel/random/boot_id'), `^(${UUID})$`);
  return boot && `${boot} ${timeNamespace(system)}`;
}

/** Returns the id of the time namespace, or an empty string on kernels before 5.6, which have no time namespaces. */
function timeNamespace(system: UptimeSystem): string {
  try {
    return system.readLink('/proc/self/ns/time');
  } catch {
    return '';
  }
}

const uuidIn = (text: string, pattern: string): string | undefined =>
  new RegExp(pattern, 'im').exec(text.trim())?.[1]?.toLowerCase();

let known: { readonly origin: string | undefined } | undefined;

/** Returns the id of this machine's uptime counter. Cached, because it does not change while the process runs. */
export function uptimeOrigin(): string | undefined {
  known ??= {
    origin: uptimeOriginOf({
      platform: process.platform,
      read: (file) => readFileSync(file, 'utf8'),
      readLink: readlinkSync,
      deviceOf: (file) => statSync(file).dev,
      run: (program, args) =>
        execFileSync(program, args, {
          encoding: 'utf8',
          timeout: TIMEOUT_MS,
          stdio: ['ignore', 'pipe', 'ignore'],
          windowsHide: true,
        }),
    }),
  };
  return known.origin;
}
