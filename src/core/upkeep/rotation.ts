import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { KeyRing, MASTER_KEY_BYTES, SealingKey, keyIdOf } from '../crypto/cipher.ts';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import type { KeySource } from '../crypto/keys/key-source.ts';
import { wrapKey, RECOVERY_WRAPPED_KEY, RECOVERY_PUBLIC_KEY, RECOVERY_WRAPPED_RETIRING_KEY } from '../crypto/recovery-key.ts';
import type { CommitQueue } from '../store/commit-queue.ts';
import type { Connection, EntryRow } from '../store/connection.ts';
import { namespaceOf } from '../store/forgetting.ts';
import type { SealedRows } from '../store/sealed-rows.ts';
import { ALL_KINDS, KIND_BY_NUMBER } from '../store/statements.ts';
import type { Kind } from '../store/store.ts';
import { walkEntries } from './verification.ts';

/** The longest slice, so that waiting writers are not delayed noticeably. */
const SLICE_MS = 3;
const ROWS_AT_ONCE = 32;
const PAGES_AT_ONCE = 200;
const PLACE = 'rotation';

const EVERYTHING: ReadonlySet<Kind> = new Set(ALL_KINDS);
const FACTS_WITH_VERSIONS: ReadonlySet<Kind> = new Set(ALL_KINDS.filter((kind) => kind !== 'history'));

interface Deps {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly rows: SealedRows;
  readonly queue: CommitQueue;
  /** Segments that another file has already opened under the next key. */
  segmentsOf?(key: Buffer): number;
}

interface WalkedRow extends EntryRow {
  readonly kind: number;
  readonly namespace: number;
}

/**
 * Moves every row from one master key to another while the memory stays readable and writable. Each slice is one commit that
 * stores the position, so a killed program resumes there. The old key is dropped only after every row was checked again (R-KEY).
 */
export class Rotation {
  readonly #deps: Deps;
  #stopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Stops after the current slice; the next start resumes. */
  stop(): void {
    this.#stopped = true;
  }

  /** Creates the next key, or uses the one that the owner provided, and moves every row to it. */
  async run(): Promise<void> {
    const { keys } = this.#deps;
    if (keys.rotation.at === 'running')
      throw new Failure('unavailable', 'The key is being rotated already; wait until the rotation has ended.');
    // Throws if no key is held.
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
    const { keys, queue, connection } = this.#deps;
    const { source, ring } = keys.requireKeys();
    const bytes = await nextKey(source);
    const next = new SealingKey(bytes);
    if (next.id.equals(ring.current.id)) {
      throw new Failure('invalid_config', 'The next key is the one in use; provide a new one, made with: openssl rand -hex 32.');
    }
    await queue.run(() => {
      // The memory may have been locked while the key source was read.
      keys.requireKeys();
      connection.sql.retireKey.run();
      connection.sql.insertKeyRecord.run(next.id, 'current', next.proof(), source.name);
      connection.sql.updateSegment.run(this.#deps.segmentsOf?.(next.id) ?? 0, next.id);
      connection.setMeta(PLACE, 0);
      // Until the rotation ends both keys are needed, so both must be recoverable.
      const recovery = keys.readSecret(RECOVERY_PUBLIC_KEY);
      const lockedUp = connection.meta(RECOVERY_WRAPPED_KEY);
      if (recovery && Buffer.isBuffer(lockedUp)) {
        connection.setMeta(RECOVERY_WRAPPED_RETIRING_KEY, lockedUp);
        connection.setMeta(RECOVERY_WRAPPED_KEY, wrapKey(bytes, recovery));
      }
    });
    bytes.fill(0);
    keys.replaceKeys({ ring: new KeyRing(next, ring.current), source, slot: 'next' });
  }

  async #walk(): Promise<void> {
    const { connection, queue } = this.#deps;
    // Versions move with their fact. A second pass moves the versions of broken facts.
    for (const kinds of [FACTS_WITH_VERSIONS, EVERYTHING]) {
      for (let moved = -1; moved !== 0;) {
        moved = await this.#pass(kinds);
        await queue.run(() => connection.setMeta(PLACE, 0));
      }
    }
    await this.#verify();
    await this.#end();
  }

  /** Walks all rows from the stored position. Returns how many were moved. */
  async #pass(kinds: ReadonlySet<Kind>): Promise<number> {
    const { connection, queue, keys } = this.#deps;
    const of = connection.sql.countRows.get() as number;
    let done = 0;
    for (let moved = 0; ;) {
      this.#requireTime();
      const slice = await queue.run(() => this.#slice(kinds));
      moved += slice.moved;
      done += slice.seen;
      keys.rotation = { at: 'running', done: Math.min(done, of), of };
      if (slice.seen === 0) return moved;
      await nextTurn();
      this.#clear();
    }
  }

  /** Empties the log now and then, so that the end of the rotation does not have to wait for every page. */
  #clear(): void {
    const { connection } = this.#deps;
    if (connection.changedPages < PAGES_AT_ONCE) return;
    try {
      connection.truncateLog();
    } catch {
      // Another connection uses the file; the next slice tries again.
    }
  }

  /** Opens every row again. Only rows that were known to be broken may remain under the old key. */
  async #verify(): Promise<void> {
    const { connection, rows, keys } = this.#deps;
    const known = rows.brokenCount;
    let left = 0;
    for await (const slice of walkEntries(connection, rows)) {
      this.#requireTime();
      left += slice.filter(({ row, entry }) => entry && !keys.ring.current.id.equals(keyIdOf(row.sealed))).length;
    }
    const broken = rows.brokenCount - known + left;
    if (broken <= 0) return;
    throw new Failure(
      'store_unavailable',
      `${broken} entries do not open under the new key, so the old one is kept; rotate again to leave them behind.`,
    );
  }

  #requireTime(): void {
    if (this.#stopped) throw new Failure('cancelled', 'The rotation was interrupted; it continues at the next start.');
  }

  /** Call it in a transaction. */
  #slice(kinds: ReadonlySet<Kind>): { seen: number; moved: number } {
    const { connection, rows, keys } = this.#deps;
    const namespaces = new Map(connection.namespaces().map((row) => [row.id, namespaceOf(row)]));
    const { current } = keys.ring;
    let place = Number(connection.meta(PLACE) ?? 0);
    let seen = 0;
    let moved = 0;
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) {
      const walked = connection.sql.rowsAfter.all(place, ROWS_AT_ONCE) as WalkedRow[];
      for (const row of walked) {
        const namespace = namespaces.get(row.namespace);
        const kind = KIND_BY_NUMBER.get(row.kind);
        place = row.row;
        if (!namespace || !kind || !kinds.has(kind) || current.id.equals(keyIdOf(row.sealed))) continue;
        const entry = rows.open(namespace, kind, row);
        // A broken seal opens under no key. The row stays and is counted until it is forgotten or expires.
        if (!entry) continue;
        rows.reseal(namespace, kind, row, entry);
        moved += 1;
      }
      seen += walked.length;
      if (walked.length < ROWS_AT_ONCE) break;
    }
    connection.setMeta(PLACE, place);
    return { seen, moved };
  }

  /** The database drops the old key before the key source does, so a crash in between cannot lose the key in use. */
  async #end(): Promise<void> {
    const { connection, keys, queue } = this.#deps;
    const { ring, source } = keys.requireKeys();
    // The log still contains rows sealed with the old key.
    if (!connection.truncateLog()) {
      throw new Failure('store_unavailable', 'Another program is reading the file memory.db; close it and rotate again.');
    }
    const bytes = ring.current.export();
    await queue.run(() => {
      keys.resealSecrets();
      connection.deleteMeta(RECOVERY_WRAPPED_RETIRING_KEY);
      connection.sql.deleteRetiredKey.run();
    });
    keys.replaceKeys({ ring: new KeyRing(ring.current), source, slot: 'current' });
    if (source.save) {
      await source.save('current', bytes);
      await source.remove?.('next');
    }
    bytes.fill(0);
  }
}

/** Stores the key in its source before anything is sealed with it. */
async function nextKey(source: KeySource): Promise<Buffer> {
  const waiting = await source.read('next');
  if (waiting.at === 'found') return waiting.key;
  if (!source.save) {
    throw new Failure(
      'invalid_config',
      `This key comes from ${source.name}; provide the new one as HELMDECK_MEMORY_KEY_NEXT and rotate again.`,
    );
  }
  const key = randomBytes(MASTER_KEY_BYTES);
  await source.save('next', key);
  return key;
}
