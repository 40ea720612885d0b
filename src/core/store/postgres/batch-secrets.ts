import { Failure } from '../../../contract/failure.ts';
import type { KeyRecord } from '../../crypto/find-keys.ts';
import type { RotatedRecords } from '../../upkeep/rotation.ts';
import type { ChangeSet } from './change-set.ts';
import type { Meta, Mirror, StoredKeyRecord, Topic } from './mirror.ts';
import type { UndoLog } from './undo-log.ts';

/** The secrets and the key records, as the running batch has changed them. */
export class BatchSecrets implements RotatedRecords {
  onRollback: (() => void) | undefined;
  /** Whether a write is running. Only a write can change the tables. */
  active = false;
  /** Runs a step in a commit. Set by the store, because its queue commits. */
  commit: (<T>(step: () => T) => Promise<T>) | undefined;
  readonly #mirror: Mirror;
  readonly #undo: UndoLog;
  readonly #changed: (topic: Topic) => void;
  readonly #meta = new Map<string, Meta | undefined>();
  #keys: StoredKeyRecord[] | undefined;

  constructor(mirror: Mirror, undo: UndoLog, changed: (topic: Topic) => void) {
    this.#mirror = mirror;
    this.#undo = undo;
    this.#changed = changed;
  }

  changes(): Pick<ChangeSet, 'meta' | 'keys'> {
    return { meta: this.#meta, keys: this.#keys };
  }

  end(): void {
    this.#meta.clear();
    this.#keys = undefined;
  }

  /** Undoes the batch. If it changed the keys, it may have opened a segment that is not stored now. */
  rollback(): void {
    if (this.#keys) this.onRollback?.();
    this.end();
  }

  /** Copies the changes of the batch to the mirror, after they were committed. */
  committed(): void {
    for (const [name, value] of this.#meta) {
      if (value === undefined) this.#mirror.meta.delete(name);
      else this.#mirror.meta.set(name, value);
    }
    if (this.#keys) this.#mirror.keys = this.#keys;
  }

  meta(name: string): Meta | undefined {
    return this.active && this.#meta.has(name) ? this.#meta.get(name) : this.#mirror.meta.get(name);
  }

  setMeta(name: string, value: number | Buffer | string): void {
    this.#requireActive();
    this.#undo.set(this.#meta, name, typeof value === 'number' ? String(value) : value);
    this.#changed('meta');
  }

  deleteMeta(name: string): void {
    this.#requireActive();
    this.#undo.set(this.#meta, name, undefined);
    this.#changed('meta');
  }

  secretNames(): string[] {
    return [...this.#mirror.meta].filter(([, value]) => Buffer.isBuffer(value)).map(([name]) => name);
  }

  keyRecords(): StoredKeyRecord[] {
    return (this.active && this.#keys) || this.#mirror.keys;
  }

  insertKeyRecord(record: KeyRecord): void {
    this.#setKeys([...this.keyRecords(), { ...record, segment: 0 }]);
  }

  setSegment(keyId: Buffer, segment: number): void {
    this.#setKeys(this.keyRecords().map((record) => (record.id.equals(keyId) ? { ...record, segment } : record)));
  }

  retireKey(): void {
    this.#setKeys(this.keyRecords().map((record) => ({ ...record, role: 'retiring' })));
  }

  deleteRetiredKey(): void {
    this.#setKeys(this.keyRecords().filter(({ role }) => role !== 'retiring'));
  }

  #setKeys(keys: StoredKeyRecord[]): void {
    this.#requireActive();
    const before = this.#keys;
    this.#keys = keys;
    this.#changed('keys');
    this.#undo.push(() => {
      this.#keys = before;
      // The change may have opened a segment of the key.
      this.onRollback?.();
    });
  }

  transaction<T>(step: () => T): Promise<T> {
    if (!this.commit) throw new Error('The store has no queue yet.');
    return this.commit(step);
  }

  #requireActive(): void {
    if (!this.active) throw new Failure('internal', 'A change was made outside a transaction; this is a bug.');
  }
}
