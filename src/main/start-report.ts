import { join } from 'node:path';
import { withCliCommand } from '../contract/cli-command.ts';
import type { KeyState, StoreStatus } from '../contract/status.ts';
import type { PackServices } from '../core/packs/pack-services.ts';
import { MEMORY_FILE } from '../core/store/database.ts';

/** What the owner is told at a start without a window: what is kept where, how its key stands, and what to do about it. */
export function startReport({ kept, key }: StoreStatus, folder: string): string[] {
  if (kept === 'memory') return WITHOUT_KEY.map(withCliCommand);
  return [`The memory is ${join(folder, MEMORY_FILE)}, sealed.`, ...keyReport(key)];
}

/** The rest goes on without them. */
export const packReport = (skipped: PackServices['skipped']): string[] =>
  skipped.map(({ name, why }) => `WARNING: THE PACK ${name} IS SKIPPED. ${why}`);

/** Whoever misses this loses what their agents were told. */
const WITHOUT_KEY = [
  'WARNING: THERE IS NO KEY, SO NOTHING IS KEPT. What is remembered is in RAM only and gone when this program ends.',
  'To keep it, end this program, make a key, and start again:',
  '  helmdeck-memory key init --file',
  'Or hand in a key of 64 hexadecimal characters with HELMDECK_MEMORY_KEY, or a file that holds it with HELMDECK_MEMORY_KEY_FILE.',
  'Whoever has the key can read the memory, and without it nobody can: keep a recovery key in a safe place.',
];

function keyReport(key: KeyState): string[] {
  if (key.at === 'ok') return [`Its key was found in ${key.source}.`];
  const why = 'why' in key ? `: ${key.why}` : '';
  return [
    `WARNING: ITS KEY IS ${key.at.toUpperCase()}${why}. Until it is there, nothing can be read or remembered.`,
    key.remedy,
    'Then run helmdeck-memory unlock, or start this program again.',
  ].map(withCliCommand);
}
