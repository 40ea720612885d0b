import { Failure } from '../../contract/failure.ts';
import { fileSource } from '../../core/crypto/keys/file-source.ts';
import type { KeySources } from '../../core/crypto/keys/key-source.ts';
import { keySources } from '../../core/crypto/keys/key-sources.ts';
import type { HostMachine } from '../config/config.ts';
import type { CommandContext } from './command-context.ts';

/** Maximum bytes of the input with a recovery key. A recovery key with spaces is less than half as long. */
const MAX_BYTES = 4096;

/** Reads the recovery key from standard input. Not from an argument, because other users can see the arguments of a process. */
export async function readRecoveryKey({ terminal }: CommandContext): Promise<string> {
  if (terminal.canAsk) return terminal.ask('Recovery key: ');
  return terminal.readText(MAX_BYTES);
}

export function recoveryKeySources({ config: { folder }, environment }: CommandContext, file: boolean): KeySources {
  if (!file) return keySources({ environment, folder, desktop: false });
  rejectKeyInEnvironment(environment);
  return () => [fileSource(folder)];
}

/** Throws if the environment provides a key. That key takes precedence, so a key that is stored elsewhere would never be used. */
export function rejectKeyInEnvironment(environment: HostMachine['environment']): void {
  const named = ['HELMDECK_MEMORY_KEY', 'HELMDECK_MEMORY_KEY_FILE'].find((name) => environment[name] !== undefined);
  if (named === undefined) return;
  throw new Failure('invalid_input', `${named} is set, so Helmdeck Memory uses only that key. Unset the variable and try again.`);
}
