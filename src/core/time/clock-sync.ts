import { execFile } from 'node:child_process';

const TIMEDATECTL = '/usr/bin/timedatectl';
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
