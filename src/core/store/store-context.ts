import type { KeyKeeper } from '../crypto/key-keeper.ts';
import type { FreeSpace } from '../file/disk-space.ts';
import type { Disk } from '../file/disk.ts';
import type { StoredClock } from '../time/stored-clock.ts';
import type { CommitQueue } from './commit-queue.ts';
import type { Connection } from './connection.ts';
import type { ChangeNotifier } from './events.ts';
import type { SealedRows } from './sealed-rows.ts';
import type { Quota } from './store.ts';

export interface StoreContext {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly rows: SealedRows;
  readonly time: StoredClock;
  readonly disk: Disk;
  readonly queue: CommitQueue;
  readonly sweeper: { scheduleAt(time: number): void };
  readonly changes: ChangeNotifier;
  /** Undefined if storage is unlimited. */
  readonly quota: Quota | undefined;
  readonly freeSpace: Pick<FreeSpace, 'isLow'> | undefined;
}
