import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { StoredClock } from '../../time/stored-clock.ts';
import { EntryWriter } from '../entry-writer.ts';
import { FairEviction } from '../fair-eviction.ts';
import type { Quota } from '../store.ts';
import type { ServerRows } from './rows.ts';
import type { ServerForgetting } from './server-forgetting.ts';
import { ServerWriteReader } from './server-write-reader.ts';
import type { WorkingSet } from './working-set.ts';

interface Deps {
  readonly set: WorkingSet;
  readonly rows: ServerRows;
  readonly keys: KeyKeeper;
  readonly time: StoredClock;
  readonly sweeper: { scheduleAt(time: number): void };
  readonly forgetting: ServerForgetting;
  readonly quota: Quota | undefined;
}

/** Creates the writer that also decides the writes of the SQLite store, over the rows of the running batch. */
export function createWriter({ set, rows, keys, time, sweeper, forgetting, quota }: Deps): EntryWriter {
  const reader = new ServerWriteReader(set, rows, time);
  const connection = {
    events: set.events,
    namespaceId: set.namespaceId.bind(set),
    ensureNamespace: set.ensureNamespace.bind(set),
    countUsage: () => undefined,
    usageCounters: { rows: set.rowCount.bind(set), usage: set.usage.bind(set), expired: set.expired.bind(set) },
  };
  // Vacuuming does not erase the bytes of deleted rows, so there is nothing to purge.
  const disk = { purgeSoon: () => undefined, purgeLater: () => undefined };
  return new EntryWriter(
    { connection, keys, rows, time, disk, sweeper, quota, freeSpace: undefined, sharesDatabase: true },
    { reader, forgetting, fairEviction: new FairEviction(connection, rows, reader) },
  );
}
