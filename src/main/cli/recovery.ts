import { Failure } from '../../contract/failure.ts';
import { fileSource } from '../../core/crypto/keys/file-source.ts';
import { keySources } from '../../core/crypto/keys/key-sources.ts';
import type { KeySources } from '../../core/store/open-store.ts';
import type { HostMachine } from '../config/config.ts';
import type { CommandContext } from './command-context.ts';

/** More than twice the length of a recovery key with all its spaces. */
const MAX_BYTES = 4096;

/** Read from the terminal or standard input, never from an argument: other users can see arguments. */
export async function readRecoveryKey({ terminal }: CommandContext): Promise<string> {
  if (terminal.canAsk) return terminal.ask('Recovery key: ');
  return terminal.readText(MAX_BYTES);
}

/** Where a recovered key can be stored. */
export function recoveryKeySources({ config: { folder }, environment }: CommandContext, file: boolean): KeySources {
  if (!file) return keySources({ environment, folder, desktop: false });
  rejectKeyInEnvironment(environment);
  return () => [fileSource(folder)];
}

/** A key in the environment takes precedence, so a key created here would never be used. */
export function rejectKeyInEnvironment(environment: HostMachine['environment']): void {
  const named = ['HELMDECK_MEMORY_KEY', 'HELMDECK_MEMORY_KEY_FILE'].find((name) => environment[name] !== undefined);
  if (named === undefined) return;
  throw new Failure('invalid_input', `${named} is set, so only that key is used. Unset it and try again.`);
}
