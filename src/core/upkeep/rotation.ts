import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { KeyRing, MASTER_KEY_BYTES, SealingKey, keyIdOf } from '../crypto/cipher.ts';
import type { KeyKeeper, KeyTables } from '../crypto/key-keeper.ts';
import type { KeySource } from '../crypto/keys/key-source.ts';
import { wrapKey, RECOVERY_WRAPPED_KEY, RECOVERY_PUBLIC_KEY, RECOVERY_WRAPPED_RETIRING_KEY } from '../crypto/recovery-key.ts';
import type { EntryRow } from '../store/connection.ts';
import { ALL_KINDS, KIND_BY_NUMBER } from '../store/statements.ts';
import type { Entry, Kind, Namespace } from '../store/store.ts';
import type { WalkedEntry } from './verification.ts';

/** Name of the position in the `meta` table. */
export const ROTATION_PLACE = 'rotation';

const EVERYTHING: ReadonlySet<Kind> = new Set(ALL_KINDS);
const FACTS_WITH_VERSIONS: ReadonlySet<Kind> = new Set(ALL_KINDS.filter((kind) => kind !== 'history'));

/** The records of the keys, which a rotation changes in its commits. */
export interface RotatedRecords extends KeyTables {
  retireKey(): void;
  deleteRetiredKey(): void;
}

/** Result of one slice: the rows that it walked, and those of them that it encrypted with the new key. */
export interface RotatedSlice {
  readonly seen: number;
  readonly moved: number;
}

/** What a rotation needs of a store. */
export interface RotatedStore {
  readonly keys: KeyKeeper;
  readonly records: RotatedRecords;
  /** Runs a step in one commit. */
  commit<T>(step: () => T): Promise<T>;
  countRows(): number | Promise<number>;
  /** Encrypts the next rows of these kinds after the stored position, and stores the new position, in one commit. */
  slice(kinds: ReadonlySet<Kind>): Promise<RotatedSlice>;
  /** Called between two slices. */
  afterSlice?(): void;
  /** Decrypts every row. */
  walk(): AsyncIterable<readonly WalkedEntry[]>;
  readonly brokenCount: number;
  /** Removes copies of rows that are still encrypted with the old key. Throws if the old key must be kept. */
  removeOldCopies?(): void;
  /** Throws if other processes would need the next key, so that this process must not create it. */
  requireOnlyProcess?(): Promise<void>;
  /** Encrypts what `walk` does not return. Called in the last commit. */
  resealOthers?(): void;
  /** Returns how many segments of the next key another file has already opened. */
  segmentsOf?(key: Buffer): number;
}

export interface RowWithPlace extends EntryRow {
  readonly kind: number;
  readonly namespace: number;
}

/**
 * Encrypts those of the rows that have one of the kinds and are still encrypted with the old key. Returns their number. Call it in a
 * transaction.
 */
export function moveRows(
  walked: readonly RowWithPlace[],
  {
    kinds,
    current,
    namespaceOf,
  }: { kinds: ReadonlySet<Kind>; current: Buffer; namespaceOf: (id: number) => Namespace | undefined },
  rows: {
    open(namespace: Namespace, kind: Kind, row: RowWithPlace): Entry | undefined;
    reseal(namespace: Namespace, kind: Kind, row: RowWithPlace, entry: Entry): void;
  },
): number {
  let moved = 0;
  for (const row of walked) {
    const [namespace, kind] = [namespaceOf(row.namespace), KIND_BY_NUMBER.get(row.kind)];
    if (!namespace || !kind || !kinds.has(kind) || current.equals(keyIdOf(row.sealed))) continue;
    const entry = rows.open(namespace, kind, row);
    // No key opens a row with a broken seal. The row stays, and is reported, until it is forgotten or expires.
    if (!entry) continue;
    rows.reseal(namespace, kind, row, entry);
    moved += 1;
  }
  return moved;
}

/**
 * Encrypts every row with a new master key while the memory stays readable and writable. Each slice is one commit that also
 * stores the position, so the rotation resumes there after a kill. The old key is dropped only after every row was checked again
 * (R-KEY).
 */
export class Rotation {
  readonly #store: RotatedStore;
  #stopped = false;

  constructor(store: RotatedStore) {
    this.#store = store;
  }

  /** Stops after the current slice. The next startup resumes the rotation. */
  stop(): void {
    this.#stopped = true;
  }

  /** Creates the next key, or uses the next key that the owner provided, and encrypts every row with it. */
  async run(): Promise<void> {
    const { keys } = this.#store;
    if (keys.rotation.at === 'running')
      throw new Failure('unavailable', 'A key rotation is already running; wait until it has finished.');
    const { retiring } = keys.ring;
    keys.rotation = { at: 'running', done: 0, of: 0 };
    try {
      if (!retiring) await this.#begin();
      await this.#walk();
    } finally {
      keys.rotation = { at: 'none' };
    }
  }

  async #begin(): Promise<void> {
    const { keys, records } = this.#store;
    const { source, ring } = keys.requireKeys();
    const bytes = await nextKey(source, async () => this.#store.requireOnlyProcess?.());
    const next = new SealingKey(bytes);
    if (next.id.equals(ring.current.id)) {
      throw new Failure(
        'invalid_config',
        'The new key is the same as the current key; provide a different key, created with: openssl rand -hex 32.',
      );
    }
    await this.#store.commit(() => {
      // Check again, because the memory may have been locked while the key source was read.
      if (keys.ring.retiring) throw new Failure('unavailable', 'A key rotation is already running; wait until it has finished.');
      records.retireKey();
      records.insertKeyRecord({ id: next.id, role: 'current', proof: next.proof(), source: source.name });
      records.setSegment(next.id, this.#store.segmentsOf?.(next.id) ?? 0);
      records.setMeta(ROTATION_PLACE, 0);
      // Wrap both keys for the recovery key, because both are needed until the rotation ends.
      const recovery = keys.readSecret(RECOVERY_PUBLIC_KEY);
      const wrapped = records.meta(RECOVERY_WRAPPED_KEY);
      if (recovery && Buffer.isBuffer(wrapped)) {
        records.setMeta(RECOVERY_WRAPPED_RETIRING_KEY, wrapped);
        records.setMeta(RECOVERY_WRAPPED_KEY, wrapKey(bytes, recovery));
      }
    });
    bytes.fill(0);
    keys.replaceKeys({ ring: new KeyRing(next, ring.current), source, slot: 'next' });
  }

  async #walk(): Promise<void> {
    const { records } = this.#store;
    // The first pass encrypts each fact together with its versions. The second pass encrypts the versions of facts with a broken
    // seal.
    for (const kinds of [FACTS_WITH_VERSIONS, EVERYTHING]) {
      for (let moved = -1; moved !== 0;) {
        moved = await this.#pass(kinds);
        await this.#store.commit(() => records.setMeta(ROTATION_PLACE, 0));
      }
    }
    await this.#verify();
    await this.#end();
  }

  /** Encrypts all rows after the stored position. Returns how many of them were still encrypted with the old key. */
  async #pass(kinds: ReadonlySet<Kind>): Promise<number> {
    const { keys } = this.#store;
    const of = await this.#store.countRows();
    let done = 0;
    for (let moved = 0; ;) {
      this.#requireTime();
      const slice = await this.#store.slice(kinds);
      moved += slice.moved;
      done += slice.seen;
      keys.rotation = { at: 'running', done: Math.min(done, of), of };
      if (slice.seen === 0) return moved;
      await nextTurn();
      this.#store.afterSlice?.();
    }
  }

  /** Decrypts every row again. Only rows that were already known to be broken can stay encrypted with the old key. */
  async #verify(): Promise<void> {
    const { keys } = this.#store;
    const known = this.#store.brokenCount;
    let left = 0;
    for await (const slice of this.#store.walk()) {
      this.#requireTime();
      left += slice.filter(({ row, entry }) => entry && !keys.ring.current.id.equals(keyIdOf(row.sealed))).length;
    }
    const broken = this.#store.brokenCount - known + left;
    if (broken <= 0) return;
    throw new Failure(
      'store_unavailable',
      `Entries that cannot be decrypted with the new key: ${broken}. The old key is kept; rotate again to continue without these entries.`,
    );
  }

  #requireTime(): void {
    if (this.#stopped) throw new Failure('cancelled', 'The key rotation was interrupted; it resumes at the next startup.');
  }

  /**
   * Drops the old key. The database drops it before the key source does, so that a crash between the two steps cannot lose the
   * key in use.
   */
  async #end(): Promise<void> {
    const { keys, records } = this.#store;
    const { ring, source } = keys.requireKeys();
    this.#store.removeOldCopies?.();
    const bytes = ring.current.export();
    await this.#store.commit(() => {
      keys.resealSecrets();
      this.#store.resealOthers?.();
      records.deleteMeta(RECOVERY_WRAPPED_RETIRING_KEY);
      records.deleteRetiredKey();
    });
    keys.replaceKeys({ ring: new KeyRing(ring.current), source, slot: 'current' });
    if (source.save) {
      await source.save('current', bytes);
      await source.remove?.('next');
    }
    bytes.fill(0);
  }
}

/**
 * Returns the next key, from its source or newly created. A new key is stored in the source before anything is encrypted with it.
 */
async function nextKey(source: KeySource, beforeCreating: () => Promise<void>): Promise<Buffer> {
  const waiting = await source.read('next');
  if (waiting.at === 'found') return waiting.key;
  if (!source.save) {
    throw new Failure(
      'invalid_config',
      `The current key comes from ${source.name}; provide the new key as HELMDECK_MEMORY_KEY_NEXT and rotate again.`,
    );
  }
  await beforeCreating();
  const key = randomBytes(MASTER_KEY_BYTES);
  await source.save('next', key);
  return key;
}
