/** The state of the master key. `remedy` tells the owner what to do. */
export type KeyState =
  | { at: 'ok'; source: string }
  | { at: 'ephemeral'; remedy: string }
  | { at: 'locked'; why: string; remedy: string }
  | { at: 'absent'; remedy: string }
  | { at: 'mismatch'; why: string; remedy: string }
  | { at: 'unavailable'; why: string; remedy: string };

/** Whether entries can be read and written, even if only in RAM. */
export const isKeyAvailable = (key: KeyState): key is Extract<KeyState, { at: 'ok' | 'ephemeral' }> =>
  key.at === 'ok' || key.at === 'ephemeral';

/** Describes why the key is missing, and what to do. */
export function describeMissingKey(key: Exclude<KeyState, { at: 'ok' | 'ephemeral' }>): string {
  return `The key of this memory is ${'why' in key ? `${key.at}: ${key.why}` : key.at}. ${key.remedy}`;
}

/** Whether the database file can be used, and if not, why. */
export type FileState = { at: 'open' } | { at: 'failed'; why: string; remedy: string };

/** Describes why the file cannot be used, and what to do. */
export const describeFileFailure = ({ why, remedy }: Extract<FileState, { at: 'failed' }>): string =>
  `The memory cannot be opened: ${why}. ${remedy}`;

/**
 * Compares the machine's clock with the time that the memory has recorded. While the clock is ahead, expired entries are hidden
 * but not deleted.
 */
export type ClockState =
  | { at: 'ok' }
  | { at: 'unchecked' }
  | { at: 'ahead'; machine: string; memory?: string; why: string; remedy: string; review_in_seconds?: number }
  | { at: 'behind'; machine: string; memory: string; why: string; remedy: string };

/** While the clock is in doubt, expired entries must not be deleted. */
export const isClockInDoubt = (clock: ClockState): boolean => clock.at === 'ahead' || clock.at === 'unchecked';

export interface StoreStatus {
  /** `file`: stored on disk, sealed. `memory`: in RAM only, lost when the program ends. */
  kept: 'file' | 'memory';
  key: KeyState;
  file: FileState;
  /** Number of entries found with a broken seal since the program started. No response includes them. */
  quarantined: number;
  clock: ClockState;
  rotation: { at: 'none' } | { at: 'running'; done: number; of: number };
}

/** Whether the program accepts connections from agents. */
export type ListeningState = { at: 'listening'; url: string } | { at: 'paused' } | { at: 'failed'; why: string };

/** Why embeddings failed. Each code has its own remedy. */
export type SidecarFailureCode =
  | 'not_installed'
  | 'unsafe'
  | 'too_old'
  | 'port_taken'
  | 'crashed'
  | 'hanging'
  | 'broken'
  | 'flooding'
  | 'wrong_dimension'
  | 'pull_failed'
  | 'gone'
  | 'foreign';

/** The state of the local embeddings. `remedy` tells the owner what to do. */
export type SidecarState =
  | { at: 'off' }
  | { at: 'asleep'; remedy: string }
  | { at: 'starting' }
  | { at: 'unapproved'; changed: boolean; remedy: string }
  | { at: 'no_model'; model: string; remedy: string }
  | { at: 'pulling'; model: string; done: number; of: number }
  | { at: 'ready'; model: string; whose: 'own' | 'adopted' }
  | { at: 'failed'; trouble: SidecarFailureCode; why: string; remedy: string; retry_at?: string };
