import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';

const TIMEDATECTL = '/usr/bin/timedatectl';
const SYSCTL = '/usr/sbin/sysctl';
const TIMEOUT_MS = 5000;

/**
 * Asks the kernel, through systemd, whether a time service keeps the wall clock right. Setting the clock by hand turns the
 * answer to "no" until the service has corrected it. Undefined on systems without systemd: the answer is unknown there.
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
 * The parts of the system that identify its uptime counter.
 *
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
 * Identifies the counter behind `os.uptime()`. The difference of two readings with the same origin is never more than the
 * time that passed between them, whatever the wall clock was set to. Undefined if the system gives no proof of that.
 *
 * - Linux: the boot and the time namespace. LXC containers replace /proc/uptime by the uptime of the container.
 * - macOS: the boot. `os.uptime()` is the wall clock minus `kern.boottime`, and setting the clock moves both by the same amount.
 * - Windows: the installation, because programs cannot read a boot id. A new boot starts the counter at zero, so the
 *   difference then is less than the time that passed.
 *
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

/** Empty on kernels before 5.6, which have no time namespaces. */
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

/** Read once: it does not change while the program runs. */
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
