import { Failure } from '../../contract/failure.ts';
import type { HostMachine } from '../config/config.ts';

/** Where the environment names a key nothing else is asked, and one that was made here would never be used. */
export function rejectKeyInEnvironment(environment: HostMachine['environment']): void {
  const named = ['HELMDECK_MEMORY_KEY', 'HELMDECK_MEMORY_KEY_FILE'].find((name) => environment[name] !== undefined);
  if (named === undefined) return;
  throw new Failure(
    'invalid_input',
    `${named} is set, so the key that it names is used and no other; unset it if that is not meant, and try again.`,
  );
}
