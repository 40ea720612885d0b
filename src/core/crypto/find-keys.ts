import { randomBytes } from 'node:crypto';
import type { KeyState } from '../../contract/status.ts';
import { KeyRing, MASTER_KEY_BYTES, SealingKey } from './cipher.ts';
import type { KeyReading, KeySource, KeySlot } from './keys/key-source.ts';

/** The database's record of a key that encrypted it: enough to recognize the key, but not to derive it. */
export interface KeyRecord {
  readonly id: Buffer;
  readonly role: 'current' | 'retiring';
  readonly proof: Buffer;
  readonly source: string;
}

export interface HeldKeys {
  readonly ring: KeyRing;
  readonly source: KeySource;
  readonly slot: KeySlot;
}

/** Result of the search for keys. `none`: there is no key, and no key has encrypted the database yet. */
export type KeyLookup =
  | { at: 'ok'; keys: HeldKeys }
  | { at: 'none'; unreadable: boolean }
  | Exclude<KeyState, { at: 'ok' | 'ephemeral' }>;

interface Candidate {
  readonly key: SealingKey;
  readonly source: KeySource;
  readonly slot: KeySlot;
}

/**
 * Finds the keys that encrypted a database. Never creates a key. If the keys are not found, reports which source is locked,
 * unreachable, empty or has the wrong key (R-KEY).
 */
export async function findKeys(records: readonly KeyRecord[], sources: readonly KeySource[]): Promise<KeyLookup> {
  const candidates: Candidate[] = [];
  const refusals: { source: KeySource; reading: Exclude<KeyReading, { at: 'found' }> }[] = [];
  for (const slot of ['current', 'next'] as const) {
    for (const source of sources) {
      // Do not read a locked source twice, because each read can show a dialog on the owner's screen.
      if (refusals.some((refusal) => refusal.source === source && refusal.reading.at !== 'absent')) continue;
      const reading = await source.read(slot);
      if (reading.at === 'found') {
        candidates.push({ key: new SealingKey(reading.key), source, slot });
        reading.key.fill(0);
      } else if (slot === 'current') refusals.push({ source, reading });
    }
    const keys = records.length > 0 ? match(records, candidates) : candidates[0] && heldKeysOf(candidates[0]);
    if (keys) return { at: 'ok', keys };
  }
  for (const { source, reading } of refusals) if (reading.at === 'locked') return lockedAt(source, reading.why);
  const unavailable = refusals.flatMap(({ source, reading }) =>
    reading.at === 'unavailable' ? [{ source, why: reading.why }] : [],
  )[0];
  if (records.length === 0) return { at: 'none', unreadable: unavailable !== undefined };
  if (candidates.length > 0) return mismatch(candidates, records);
  return unavailable ? unavailableAt(unavailable.source, unavailable.why) : absent(records);
}

/** Creates the first key of a new memory, in the first source that allows this without asking the owner. */
export async function createFirstKey(sources: readonly KeySource[]): Promise<HeldKeys | undefined> {
  for (const source of sources) {
    if (!source.createsOnFirstStart || !source.save || (await source.read('current')).at !== 'absent') continue;
    const master = randomBytes(MASTER_KEY_BYTES);
    await source.save('current', master);
    const keys = heldKeysOf({ key: new SealingKey(master), source, slot: 'current' });
    master.fill(0);
    return keys;
  }
  return undefined;
}

const heldKeysOf = ({ key, source, slot }: Candidate): HeldKeys => ({ ring: new KeyRing(key), source, slot });

function match(records: readonly KeyRecord[], candidates: readonly Candidate[]): HeldKeys | undefined {
  const candidateFor = (role: KeyRecord['role']): Candidate | undefined => {
    const record = records.find((one) => one.role === role);
    return record && candidates.find(({ key }) => key.id.equals(record.id) && key.matchesProof(record.proof));
  };
  const current = candidateFor('current');
  const retiring = candidateFor('retiring');
  // An interrupted rotation needs both keys, because some entries are still encrypted with the old key.
  if (!current || (records.length > 1 && !retiring)) return undefined;
  return { ring: new KeyRing(current.key, retiring?.key), source: current.source, slot: current.slot };
}

const lockedAt = (source: KeySource, why: string): KeyLookup => ({
  at: 'locked',
  why: `${source.name} is locked: ${why}`,
  remedy: `Unlock ${source.name}, for example by logging in to the desktop, and try again.`,
});

const unavailableAt = (source: KeySource, why: string): KeyLookup => ({
  at: 'unavailable',
  why: `${source.name} cannot be reached: ${why}`,
  remedy: `Start Helmdeck Memory in a session in which ${source.name} is available, or provide the key with HELMDECK_MEMORY_KEY or HELMDECK_MEMORY_KEY_FILE.`,
});

const absent = (records: readonly KeyRecord[]): KeyLookup => ({
  at: 'absent',
  remedy: `The key of this memory is missing from ${records[0]?.source ?? 'its source'}; restore it with: helmdeck-memory key recovery --use, or forget the facts that it encrypted.`,
});

const mismatch = (candidates: readonly Candidate[], records: readonly KeyRecord[]): KeyLookup => ({
  at: 'mismatch',
  why: `the key in ${candidates[0]?.source.name ?? 'the key source'} is not the key that this memory was encrypted with`,
  remedy: `Provide the key that was stored in ${records[0]?.source ?? 'another source'}, or restore it from the recovery key with: helmdeck-memory key recovery --use.`,
});
