import { Failure } from '../../contract/failure.ts';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import type { CommitQueue } from '../store/commit-queue.ts';
import type { Connection } from '../store/connection.ts';
import { namespaceOf } from '../store/forgetting.ts';
import type { SealedRows } from '../store/sealed-rows.ts';
import type { Kind } from '../store/store.ts';
import { moveRows, Rotation, ROTATION_PLACE, type RotatedSlice, type RowWithPlace } from './rotation.ts';
import { walkEntries } from './verification.ts';

/** Maximum milliseconds of one slice, so that waiting writers are not delayed noticeably. */
const SLICE_MS = 3;
const ROWS_AT_ONCE = 32;
const PAGES_AT_ONCE = 200;

export interface FileRotationDeps {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly rows: SealedRows;
  readonly queue: CommitQueue;
  /** Returns how many segments of the next key another file has already opened. */
  readonly segmentsOf?: (key: Buffer) => number;
}

/** The rotation of a memory in a file. */
export function rotationOf({ connection, keys, rows, queue, segmentsOf }: FileRotationDeps): Rotation {
  /** Encrypts the rows of one slice with the new key. Call it in a transaction. */
  const slice = (kinds: ReadonlySet<Kind>): RotatedSlice => {
    const namespaces = new Map(connection.namespaces().map((row) => [row.id, namespaceOf(row)]));
    const current = keys.ring.current.id;
    let place = Number(connection.meta(ROTATION_PLACE) ?? 0);
    let [seen, moved] = [0, 0];
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) {
      const walked = connection.sql.rowsAfter.all(place, ROWS_AT_ONCE) as RowWithPlace[];
      moved += moveRows(walked, { kinds, current, namespaceOf: (id) => namespaces.get(id) }, rows);
      seen += walked.length;
      place = walked.at(-1)?.row ?? place;
      if (walked.length < ROWS_AT_ONCE) break;
    }
    connection.setMeta(ROTATION_PLACE, place);
    return { seen, moved };
  };
  return new Rotation({
    keys,
    records: connection,
    commit: (step) => queue.run(step),
    countRows: () => connection.sql.countRows.get() as number,
    slice: (kinds) => queue.run(() => slice(kinds)),
    // Truncates the log when many pages have changed, so that the end of the rotation does not have to flush all pages at once.
    afterSlice: () => {
      if (connection.changedPages < PAGES_AT_ONCE) return;
      try {
        connection.truncateLog();
      } catch {
        // Ignore the error, because the next slice tries again.
      }
    },
    walk: () => walkEntries(connection, rows),
    get brokenCount() {
      return rows.brokenCount;
    },
    // Truncate the log, because it still contains rows that are encrypted with the old key.
    removeOldCopies: () => {
      if (connection.truncateLog()) return;
      throw new Failure(
        'store_unavailable',
        'Another program is reading the file memory.db; close that program and rotate the key again.',
      );
    },
    resealOthers: () => rows.authors.reseal(),
    ...(segmentsOf && { segmentsOf }),
  });
}
