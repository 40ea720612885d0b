/** The state of the master key. `why` is the problem, and `remedy` is what the owner can do about the problem. */
export type KeyState =
  | { at: 'ok'; source: string }
  | { at: 'ephemeral'; remedy: string }
  | { at: 'locked'; why: string; remedy: string }
  | { at: 'absent'; remedy: string }
  | { at: 'mismatch'; why: string; remedy: string }
  | { at: 'unavailable'; why: string; remedy: string };

/** Whether entries can be read and written. With an ephemeral key, entries exist only in RAM. */
export const isKeyAvailable = (key: KeyState): key is Extract<KeyState, { at: 'ok' | 'ephemeral' }> =>
  key.at === 'ok' || key.at === 'ephemeral';

export function describeMissingKey(key: Exclude<KeyState, { at: 'ok' | 'ephemeral' }>): string {
  return `The key of this memory is ${'why' in key ? `${key.at}: ${key.why}` : key.at}. ${key.remedy}`;
}

export type FileState = { at: 'open' } | { at: 'failed'; why: string; remedy: string };

export const describeFileFailure = ({ why, remedy }: Extract<FileState, { at: 'failed' }>): string =>
  `The memory cannot be opened: ${why}. ${remedy}`;

/**
 * The state of this machine's clock, compared with the time that the memory has recorded. `machine` is the clock's time and
 * `memory` is the expected time. While the clock is ahead of the recorded time, expired entries are hidden but not deleted.
 */
export type ClockState =
  | { at: 'ok' }
  | { at: 'unchecked' }
  | { at: 'ahead'; machine: string; memory?: string; why: string; remedy: string; review_in_seconds?: number }
  | { at: 'behind'; machine: string; memory: string; why: string; remedy: string };

/** Whether the clock may be wrong. In that case, expired entries must not be deleted. */
export const isClockInDoubt = (clock: ClockState): boolean => clock.at === 'ahead' || clock.at === 'unchecked';

export interface StoreStatus {
  /**
   * `file`: entries are stored on disk, sealed. `database`: on a database server, sealed. `memory`: entries are only in RAM and are
   * lost when the program exits.
   */
  kept: 'file' | 'database' | 'memory';
  key: KeyState;
  file: FileState;
  /** Number of entries with a broken seal that were found since the program started. Responses never include these entries. */
  quarantined: number;
  clock: ClockState;
  rotation: { at: 'none' } | { at: 'running'; done: number; of: number };
}

/** Whether the entries can be read, as far as the last access showed. */
export const isReadable = ({ key, file }: Pick<StoreStatus, 'key' | 'file'>): boolean =>
  file.at === 'open' && isKeyAvailable(key);

export type ListeningState =
  | { at: 'listening'; url: string; server_url?: string }
  | { at: 'paused' }
  | { at: 'failed'; why: string };

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

/** The state of the local embeddings. `remedy` is what the owner can do about the problem. */
export type SidecarState =
  | { at: 'off' }
  | { at: 'asleep'; remedy: string }
  | { at: 'starting' }
  | { at: 'unapproved'; changed: boolean; remedy: string }
  | { at: 'no_model'; model: string; remedy: string }
  | { at: 'pulling'; model: string; done: number; of: number }
  | { at: 'ready'; model: string; whose: 'own' | 'adopted' | 'bundled' }
  | { at: 'failed'; trouble: SidecarFailureCode; why: string; remedy: string; retry_at?: string };

/** Which model search by meaning uses. */
export type MeaningChoice = 'bundled' | 'ollama' | 'off';

export type MeaningFailureCode = 'not_installed' | 'damaged' | 'crashed' | 'hanging' | 'ollama';

/** The state of search by meaning. While it is not `ready`, search works by words. */
export type MeaningState =
  | { at: 'off' }
  | { at: 'starting'; source: 'ollama' }
  | { at: 'ready'; source: 'bundled' | 'ollama'; model: string }
  | { at: 'failed'; source: 'bundled' | 'ollama'; trouble: MeaningFailureCode; why: string; remedy: string; retry_at?: string };
