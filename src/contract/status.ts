/** Where the key that seals the memory stands. Each state carries what the owner can do about it. */
export type KeyState =
  | { at: 'ok'; source: string }
  | { at: 'ephemeral'; remedy: string }
  | { at: 'locked'; why: string; remedy: string }
  | { at: 'absent'; remedy: string }
  | { at: 'mismatch'; why: string; remedy: string }
  | { at: 'unavailable'; why: string; remedy: string };

/** Entries can be read and kept, if only in RAM. */
export const isKeyAvailable = (key: KeyState): key is Extract<KeyState, { at: 'ok' | 'ephemeral' }> =>
  key.at === 'ok' || key.at === 'ephemeral';

/** A key that is not at hand, in sentences that end with what to do. */
export function describeMissingKey(key: Exclude<KeyState, { at: 'ok' | 'ephemeral' }>): string {
  return `The key of this memory is ${'why' in key ? `${key.at}: ${key.why}` : key.at}. ${key.remedy}`;
}

/** The health of the file: `open`, or why it cannot be used at present. */
export type FileState = { at: 'open' } | { at: 'failed'; why: string; remedy: string };

/** The same of a file that cannot be reached. */
export const describeFileFailure = ({ why, remedy }: Extract<FileState, { at: 'failed' }>): string =>
  `The memory cannot be reached: ${why}. ${remedy}`;

/**
 * How the machine's clock compares with the time that the memory has seen. While it is ahead, expired entries are hidden
 * and nothing is deleted for good.
 */
export type ClockState =
  | { at: 'ok' }
  | { at: 'unchecked' }
  | { at: 'ahead'; machine: string; memory?: string; why: string; remedy: string; review_in_seconds?: number }
  | { at: 'behind'; machine: string; memory: string; why: string; remedy: string };

/** Whether nothing may be deleted because it seems to have expired. */
export const isClockInDoubt = (clock: ClockState): boolean => clock.at === 'ahead' || clock.at === 'unchecked';

export interface StoreStatus {
  /** `file` is sealed on disk; `memory` is gone when the program ends. */
  kept: 'file' | 'memory';
  key: KeyState;
  file: FileState;
  /** Entries whose seal was found broken since the program started. They are left out of every answer. */
  quarantined: number;
  clock: ClockState;
  rotation: { at: 'none' } | { at: 'running'; done: number; of: number };
}

/** Whether agents can come. */
export type ListeningState = { at: 'listening'; url: string } | { at: 'paused' } | { at: 'failed'; why: string };

/** What keeps embeddings away. Each has a remedy of its own. */
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

/** Where the machine's own embeddings stand. Each state carries only what is true in it, and what the owner can do about it. */
export type SidecarState =
  | { at: 'off' }
  | { at: 'asleep'; remedy: string }
  | { at: 'starting' }
  | { at: 'unapproved'; changed: boolean; remedy: string }
  | { at: 'no_model'; model: string; remedy: string }
  | { at: 'pulling'; model: string; done: number; of: number }
  | { at: 'ready'; model: string; whose: 'own' | 'adopted' }
  | { at: 'failed'; trouble: SidecarFailureCode; why: string; remedy: string; retry_at?: string };
