import { Failure } from '../../../contract/failure.ts';
import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import { RECOVERY_WRAPPED_KEY } from '../../crypto/recovery-key.ts';
import { diskFailureOf } from '../../file/disk-failure.ts';
import type { Clock } from '../../time/clock.ts';
import type { StoredClock } from '../../time/stored-clock.ts';
import { listBackups, writeBackup } from '../../upkeep/backup.ts';
import { makeRecoveryKey } from '../../upkeep/make-recovery-key.ts';
import { moveRows, Rotation, ROTATION_PLACE, type RotatedSlice } from '../../upkeep/rotation.ts';
import { countEntries, type WalkedEntry } from '../../upkeep/verification.ts';
import { KIND_BY_NUMBER } from '../statements.ts';
import type { Backup, BackupResult, Kind, Upkeep, VerificationReport } from '../store.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { PlacedRow } from './change-set.ts';
import type { Database, RunQuery } from './database.ts';
import { namespaceAt } from './mirror.ts';
import type { ServerRows } from './rows.ts';
import { schemaDifferences } from './schema.ts';
import { copyToFile } from './server-backup.ts';
import type { ServerQueue } from './server-queue.ts';
import type { ServerVectors } from './server-vectors.ts';
import { COLUMNS } from './sql.ts';
import type { WorkingSet } from './working-set.ts';

/** Rows that one transaction encrypts again. Other writers wait for it. */
const SLICE = 200;
const ROWS_AT_ONCE = 500;
/** Milliseconds between two attempts to resume a rotation that another process may still be running. */
const RESUME_MS = 5000;

interface Deps {
  readonly database: Database;
  readonly set: WorkingSet;
  readonly rows: ServerRows;
  readonly vectors: ServerVectors;
  readonly keys: KeyKeeper;
  readonly queue: ServerQueue;
  readonly feed: ChangeFeed;
  readonly clock: Clock;
  readonly time: StoredClock;
  readonly folder: string | undefined;
}

/** Maintenance of a memory in PostgreSQL. A rotation runs in one process at a time, and any process can resume it. */
export class ServerUpkeep implements Upkeep {
  readonly #deps: Deps;
  readonly #rotation: Rotation;
  #running: Promise<unknown> = Promise.resolve();
  #timer: Disposable | undefined;
  #stopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    const { keys, set, queue, rows, database } = deps;
    this.#rotation = new Rotation({
      keys,
      records: set.secrets,
      commit: (step) => queue.run(step),
      async countRows() {
        const [counted] = await database.read<{ rows: number | null }>('SELECT sum(rows)::bigint AS rows FROM usage');
        return counted?.rows ?? 0;
      },
      slice: (kinds) => this.#slice(kinds),
      walk: () => this.#walk(),
      async requireOnlyProcess() {
        if (await database.isOnlyProcess()) return;
        throw new Failure(
          'invalid_config',
          'Other processes use this database and need the new key too. Give it to every process as memory.key.next or HELMDECK_MEMORY_KEY_NEXT_FILE, or stop the other processes, and rotate again.',
        );
      },
      get brokenCount() {
        return rows.brokenCount;
      },
    });
  }

  async rotate(): Promise<void> {
    if (!(await this.#rotateAlone()))
      throw new Failure('unavailable', 'A key rotation or a backup is already running; wait until it has finished.');
  }

  /** Returns false if a rotation or a backup is running. */
  async #rotateAlone(): Promise<boolean> {
    const { database, feed } = this.#deps;
    const ran = database.alone('rotation', async () => {
      // Another process may have finished a rotation since.
      await feed.refresh();
      await this.#rotation.run();
    });
    this.#running = Promise.allSettled([this.#running, ran]);
    return (await ran) !== undefined;
  }

  /** Resumes a key rotation that another process did not finish. While another process runs it, tries again later. */
  resume(delay = 0): void {
    const { rotation, heldKeys } = this.#deps.keys;
    if (this.#stopped || this.#timer || rotation.at === 'running' || !heldKeys?.ring.retiring) return;
    const attempt = async (): Promise<void> => {
      this.#timer = undefined;
      if (this.#stopped || !this.#deps.keys.heldKeys?.ring.retiring) return;
      if (!(await this.#rotateAlone())) this.resume(RESUME_MS);
    };
    this.#timer = this.#deps.clock.after(delay, () => void attempt().catch(() => undefined));
  }

  /** Resumes a rotation of another process if that process has ended without finishing it. */
  resumeLater(): void {
    this.resume(RESUME_MS);
  }

  /** Encrypts the rows of one slice with the new key, in one commit. */
  #slice(kinds: ReadonlySet<Kind>): Promise<RotatedSlice> {
    const { set, rows, vectors, keys, queue } = this.#deps;
    let numbers: number[] = [];
    let found: Awaited<ReturnType<ServerVectors['loadForRotation']>> = [];
    const load = async (run: RunQuery): Promise<void> => {
      // Read the position in the transaction, because another process can have begun the rotation.
      const sql = `SELECT number FROM entry
        WHERE number > (SELECT coalesce(max(plain::bigint), 0) FROM meta WHERE name = '${ROTATION_PLACE}') ORDER BY number LIMIT $1`;
      numbers = (await run<{ number: number }>(sql, [SLICE])).map(({ number }) => number);
      await set.loadRows(run, numbers);
      found = await vectors.loadForRotation(run, numbers);
    };
    const move = (): RotatedSlice => {
      const walked = numbers.map((number) => set.row(number)).filter((row) => row !== undefined);
      const current = keys.ring.current.id;
      const moved = moveRows(walked, { kinds, current, namespaceOf: (id) => set.namespaceAt(id) }, rows);
      vectors.reseal(found);
      const last = numbers.at(-1);
      // Not as a change of the secrets, because no other process must read them again for it.
      if (last !== undefined) set.addStatement(`UPDATE meta SET plain = $1 WHERE name = '${ROTATION_PLACE}'`, [String(last)]);
      return { seen: numbers.length, moved };
    };
    return queue.run(move, 'rotation', { load });
  }

  async *#walk(): AsyncGenerator<readonly WalkedEntry[]> {
    const { database, rows } = this.#deps;
    for (let place = 0; ;) {
      const walked = await database.read<PlacedRow & { subject: string | null; session: string | null }>(
        `SELECT ${COLUMNS}, subject, session FROM entry LEFT JOIN namespace ON id = namespace
           WHERE number > $1 ORDER BY number LIMIT ${ROWS_AT_ONCE}`,
        [place],
      );
      const last = walked.at(-1);
      if (!last) return;
      place = last.row;
      yield walked.map((row) => {
        const namespace = namespaceAt({ id: row.namespace, subject: row.subject ?? '', session: row.session ?? '' });
        const kind = KIND_BY_NUMBER.get(row.kind) ?? 'fact';
        return { row, namespace, kind, entry: rows.open(namespace, kind, row) };
      });
    }
  }

  makeRecoveryKey(): Promise<string> {
    const { keys, set, queue } = this.#deps;
    return makeRecoveryKey(keys, set.secrets, (step) => queue.run(step));
  }

  get recoverable(): boolean {
    return this.#deps.set.secrets.meta(RECOVERY_WRAPPED_KEY) !== undefined;
  }

  /** Writes a backup in the format of a memory file, so that a backup of either kind can be restored into either. */
  async backup(): Promise<BackupResult> {
    const { database, feed, keys, time, folder } = this.#deps;
    if (folder === undefined) throw new Failure('unavailable', 'This memory has no data folder for backups.');
    const { ring } = keys.requireKeys();
    // A rotation, in this or another process, would change the keys during the backup.
    const made = ring.retiring
      ? undefined
      : database.alone('rotation', async () => {
          // Another process may have changed the key since.
          await feed.refresh();
          if (keys.requireKeys().ring.retiring) return undefined;
          const times = { now: time.now(), isClockInDoubt: time.inDoubt };
          return writeBackup(folder, times, (draft) => copyToFile(database, keys, draft));
        });
    this.#running = Promise.allSettled([this.#running, made]);
    const result = await made?.catch((error: unknown) => {
      throw diskFailureOf(error, folder)?.failure ?? error;
    });
    if (result?.value) return result.value;
    throw new Failure('unavailable', 'A key rotation or another backup is running; create the backup after it has finished.');
  }

  backups(): readonly Backup[] {
    const { folder } = this.#deps;
    return folder === undefined ? [] : listBackups(folder);
  }

  async verify(): Promise<VerificationReport> {
    const { database, feed, keys, set, vectors } = this.#deps;
    await feed.refresh();
    const { entries, broken: brokenEntries } = await countEntries(this.#walk());
    const broken = brokenEntries + (await vectors.countBroken());
    const structure = await schemaDifferences((text, values) => database.read(text, values), database.schema);
    return { entries, broken: broken + keys.countBrokenSecrets(set.secrets), structure };
  }

  /** Stops a rotation after its current slice and waits for all running maintenance. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.[Symbol.dispose]();
    this.#rotation.stop();
    await this.#running;
  }
}
