import { fileSource } from '../../core/keys/file.ts';
import { keySources } from '../../core/keys/sources.ts';
import type { KeySources } from '../../core/open-store.ts';
import type { Desk } from './desk.ts';
import { refuseNamedKey } from './named-key.ts';

/** Twice what a recovery key takes with all its blanks. */
const MOST_READ = 4096;

/** Typed or handed in, and never an argument: those are seen by others. */
export async function recoveryKeyFrom({ terminal }: Desk): Promise<string> {
  if (terminal.answers) return terminal.ask('Recovery key: ');
  return (await terminal.read(MOST_READ))?.toString() ?? '';
}

/** Where a recovered key may go. */
export function recoveryPlaces({ config: { folder }, environment }: Desk, file: boolean): KeySources {
  if (!file) return keySources({ environment, folder, desktop: false });
  refuseNamedKey(environment);
  return () => [fileSource(folder)];
}
