import { join } from 'node:path';
import type { KeyState, StoreStatus } from '../contract/status.ts';
import { MEMORY_FILE } from '../core/open-store.ts';

/** What the owner is told at a start without a window: what is kept where, how its key stands, and what to do about it. */
export function startReport({ kept, key }: StoreStatus, folder: string): string[] {
  if (kept === 'memory') return withoutKey(folder);
  return [`The memory is ${join(folder, MEMORY_FILE)}, sealed.`, ...keyReport(key)];
}

/** Whoever misses this loses what their agents were told. */
const withoutKey = (folder: string): string[] => [
  'WARNING: THERE IS NO KEY, SO NOTHING IS KEPT. What is remembered is in RAM only and gone when this program ends.',
  'To keep it, make a key file that only you can read, and start again:',
  `  (umask 077; openssl rand -hex 32 > ${quoted(join(folder, 'memory.key'))})`,
  'or hand in a key of 64 hexadecimal characters with HELMDECK_MEMORY_KEY, or a file that holds it with HELMDECK_MEMORY_KEY_FILE.',
  'Whoever has the key can read the memory, and without it nobody can: keep a copy of it in a safe place.',
];

function keyReport(key: KeyState): string[] {
  if (key.at === 'ok') return [`Its key was found in ${key.source}.`];
  const why = 'why' in key ? `: ${key.why}` : '';
  return [
    `WARNING: ITS KEY IS ${key.at.toUpperCase()}${why}. Until it is there, nothing can be read or remembered.`,
    key.remedy,
    'Then start again. The command helmdeck-memory is on the way; until it is there, hand in the key with HELMDECK_MEMORY_KEY or HELMDECK_MEMORY_KEY_FILE.',
  ];
}

/** For a shell: a path may hold blanks and quotes. */
const quoted = (path: string): string => `'${path.replaceAll("'", String.raw`'\''`)}'`;
