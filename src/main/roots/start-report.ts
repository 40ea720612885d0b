import { withCliCommand } from '../../contract/cli-command.ts';
import type { KeyState, StoreStatus } from '../../contract/status.ts';
import type { PackServices } from '../../core/packs/pack-services.ts';
import { type Config, memoryPlace } from '../config/config.ts';

/** Returns the startup lines of the headless program: the path of the memory, the state of its key, and what to do. */
export function startReport({ kept, key }: StoreStatus, { folder, database }: Pick<Config, 'folder' | 'database'>): string[] {
  if (kept === 'memory') return WITHOUT_KEY.map(withCliCommand);
  return [`The memory is sealed in ${memoryPlace({ folder, database })}.`, ...keyReport(key)];
}

/** Returns a warning for each pack that could not be loaded. The program runs without these packs. */
export const packReport = (skipped: PackServices['skipped']): string[] =>
  skipped.map(({ name, why }) => `WARNING: THE PACK ${name} WAS SKIPPED. ${why}`);

/** Warning that there is no key. Starts in capitals, because a user who does not notice the warning loses all facts. */
const WITHOUT_KEY = [
  'WARNING: THERE IS NO KEY, SO NOTHING IS SAVED. Facts are in RAM only and will be lost when this program exits.',
  'To save facts, stop this program, create a key, and start again:',
  '  helmdeck-memory key init --file',
  'Or set HELMDECK_MEMORY_KEY to a key of 64 hexadecimal characters, or HELMDECK_MEMORY_KEY_FILE to the path of a file that contains a key.',
  'Anyone with the key can read the memory. Without the key, the memory cannot be read, so keep a recovery key in a safe place.',
];

function keyReport(key: KeyState): string[] {
  if (key.at === 'ok') return [`The key was loaded from ${key.source}.`];
  const why = 'why' in key ? `: ${key.why}` : '';
  return [
    `WARNING: THE KEY IS ${key.at.toUpperCase()}${why}. Until the key is available, nothing can be read or stored.`,
    key.remedy,
    'Then run helmdeck-memory unlock, or restart this program.',
  ].map(withCliCommand);
}
