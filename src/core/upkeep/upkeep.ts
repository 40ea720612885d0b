import { Failure } from '../../contract/failure.ts';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import { RECOVERY_WRAPPED_KEY } from '../crypto/recovery-key.ts';
import { diskFailureOf } from '../file/disk-failure.ts';
import type { CommitQueue } from '../store/commit-queue.ts';
import { Connection } from '../store/connection.ts';
import { connect } from '../store/database.ts';
import { SealedRows } from '../store/sealed-rows.ts';
import type { Backup, BackupResult, Upkeep, VerificationReport } from '../store/store.ts';
import { listBackups, writeBackup } from './backup.ts';
import { rotationOf } from './file-rotation.ts';
import { makeRecoveryKey } from './make-recovery-key.ts';
import type { Rotation } from './rotation.ts';
import { verifyMemory } from './verification.ts';

/** Number of pages to copy before the event loop runs other work. */
const PAGES_AT_ONCE = 200;

interface Deps {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly rows: SealedRows;
  readonly queue: CommitQueue;
  readonly folder: string;
  now(): number;
  isClockInDoubt(): boolean;
}

export class FileUpkeep implements Upkeep {
  readonly #deps: Deps;
  readonly #rotation: Rotation;
  #running: Promise<unknown> = Promise.resolve();
  #backingUp = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#rotation = rotationOf(deps);
  }

  async rotate(): Promise<void> {
    if (this.#backingUp > 0)
      throw new Failure('unavailable', 'A backup is running; rotate the key after the backup has finished.');
    return this.#track(this.#rotation.run());
  }

  /** Resumes a key rotation that an earlier process did not finish. */
  resume(): void {
    const { rotation, heldKeys } = this.#deps.keys;
    if (rotation.at === 'none' && heldKeys?.ring.retiring) this.rotate().catch(() => undefined);
  }

  makeRecoveryKey(): Promise<string> {
    const { connection, keys, queue } = this.#deps;
    return makeRecoveryKey(keys, connection, (step) => queue.run(step));
  }

  get recoverable(): boolean {
    return this.#deps.connection.meta(RECOVERY_WRAPPED_KEY) !== undefined;
  }

  async backup(): Promise<BackupResult> {
    const { connection, folder, keys } = this.#deps;
    if (keys.rotation.at === 'running') {
      throw new Failure('unavailable', 'A key rotation is running; create the backup after the rotation has finished.');
    }
    this.#backingUp += 1;
    try {
      return await this.#track(
        writeBackup(folder, { now: this.#deps.now(), isClockInDoubt: this.#deps.isClockInDoubt() }, async (draft) => {
          await connection.db.backup(draft, { progress: () => PAGES_AT_ONCE });
          return this.#verifyCopy(draft);
        }),
      );
    } catch (error) {
      throw diskFailureOf(error, folder)?.failure ?? error;
    } finally {
      this.#backingUp -= 1;
    }
  }

  async #verifyCopy(file: string): Promise<VerificationReport> {
    const copy = new Connection(file, connect(file));
    try {
      return await verifyMemory(copy, new SealedRows(copy, this.#deps.keys), this.#deps.keys);
    } finally {
      copy.close();
    }
  }

  backups(): readonly Backup[] {
    return listBackups(this.#deps.folder);
  }

  verify(): Promise<VerificationReport> {
    const { connection, rows, keys } = this.#deps;
    return this.#track(verifyMemory(connection, rows, keys));
  }

  /** Stops a rotation after its current slice and waits for all running maintenance. */
  async stop(): Promise<void> {
    this.#rotation.stop();
    await this.#running;
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#running = Promise.allSettled([this.#running, work]);
    return work;
  }
}
