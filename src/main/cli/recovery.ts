import { fileSource } from '../../core/crypto/keys/file-source.ts';
import { keySources } from '../../core/crypto/keys/key-sources.ts';
import type { KeySources } from '../../core/store/open-store.ts';
import type { CommandContext } from './command-context.ts';
import { rejectKeyInEnvironment } from './named-key.ts';

/** Twice what a recovery key takes with all its blanks. */
const MOST_READ = 4096;

/** Typed or handed in, and never an argument: those are seen by others. */
export async function readRecoveryKey({ terminal }: CommandContext): Promise<string> {
  if (terminal.canAsk) return terminal.ask('Recovery key: ');
  return (await terminal.read(MOST_READ))?.toString() ?? '';
}

/** Where a recovered key may go. */
export function recoveryKeySources({ config: { folder }, environment }: CommandContext, file: boolean): KeySources {
  if (!file) return keySources({ environment, folder, desktop: false });
  rejectKeyInEnvironment(environment);
  return () => [fileSource(folder)];
}
