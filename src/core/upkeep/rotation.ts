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

/** Maximum milliseconds of one slice, so that waiting writers are not delayed noticeably. */
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
  /** Returns how many segments of the next key another file has already opened. */
  segmentsOf?(key: Buffer): number;
}

interface WalkedRow extends EntryRow {
  readonly kind: number;
  readonly namespace: number;
}

/**
 * Encrypts every row with a new master key while the memory stays readable and writable. Each slice is one commit that also
 * stores the position, so the rotation resumes there after a kill. The old key is dropped only after every row was checked again
 * (R-KEY).
 */
export class Rotation {
  readonly #deps: Deps;
  #stopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Stops after the current slice. The next startup resumes the rotation. */
  stop(): void {
    this.#stopped = true;
  }

  /** Creates the next key, or uses the next key that the owner provided, and encrypts every row with it. */
  async run(): Promise<void> {
    const { keys } = this.#deps;
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
    const { keys, queue, connection } = this.#deps;
    const { source, ring } = keys.requireKeys();
    const bytes = await nextKey(source);
    const next = new SealingKey(bytes);
    if (next.id.equals(ring.current.id)) {
      throw new Failure(
        'invalid_config',
        'The new key is the same as the current key; provide a different key, created with: openssl rand -hex 32.',
      );
    }
    await queue.run(() => {
      // Check again, because the memory may have been locked while the key source was read.
      keys.requireKeys();
      connection.sql.retireKey.run();
      connection.insertKeyRecord({ id: next.id, role: 'current', proof: next.proof(), source: source.name });
      connection.setSegment(next.id, this.#deps.segmentsOf?.(next.id) ?? 0);
      connection.setMeta(PLACE, 0);
      // Wrap both keys for the recovery key, because both are needed until the rotation ends.
      const recovery = keys.readSecret(RECOVERY_PUBLIC_KEY);
      const wrapped = connection.meta(RECOVERY_WRAPPED_KEY);
      if (recovery && Buffer.isBuffer(wrapped)) {
        connection.setMeta(RECOVERY_WRAPPED_RETIRING_KEY, wrapped);
        connection.setMeta(RECOVERY_WRAPPED_KEY, wrapKey(bytes, recovery));
      }
    });
    bytes.fill(0);
    keys.replaceKeys({ ring: new KeyRing(next, ring.current), source, slot: 'next' });
  }

  async #walk(): Promise<void> {
    const { connection, queue } = this.#deps;
    // The first pass encrypts each fact together with its versions. The second pass encrypts the versions of facts with a broken
    // seal.
    for (const kinds of [FACTS_WITH_VERSIONS, EVERYTHING]) {
      for (let moved = -1; moved !== 0;) {
        moved = await this.#pass(kinds);
        await queue.run(() => connection.setMeta(PLACE, 0));
      }
    }
    await this.#verify();
    await this.#end();
  }

  /** Encrypts all rows after the stored position. Returns how many of them were still encrypted with the old key. */
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

  /**
   * Truncates the log when many pages have changed, so that the end of the rotation does not have to flush all pages at once.
   */
  #clear(): void {
    const { connection } = this.#deps;
    if (connection.changedPages < PAGES_AT_ONCE) return;
    try {
      connection.truncateLog();
    } catch {
      // Ignore the error, because the next slice tries again.
    }
  }

  /** Decrypts every row again. Only rows that were already known to be broken can stay encrypted with the old key. */
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
      `Entries that cannot be decrypted with the new key: ${broken}. The old key is kept; rotate again to continue without these entries.`,
    );
  }

  #requireTime(): void {
    if (this.#stopped) throw new Failure('cancelled', 'The key rotation was interrupted; it resumes at the next startup.');
  }

  /** Encrypts the rows of one slice with the new key. Call it in a transaction. */
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
        // No key opens a row with a broken seal. The row stays, and is reported, until it is forgotten or expires.
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

  /**
   * Drops the old key. The database drops it before the key source does, so that a crash between the two steps cannot lose the
   * key in use.
   */
  async #end(): Promise<void> {
    const { connection, keys, queue, rows } = this.#deps;
    const { ring, source } = keys.requireKeys();
    // Truncate the log, because it still contains rows that are encrypted with the old key.
    if (!connection.truncateLog()) {
      throw new Failure(
        'store_unavailable',
        'Another program is reading the file memory.db; close that program and rotate the key again.',
      );
    }
    const bytes = ring.current.export();
    await queue.run(() => {
      keys.resealSecrets();
      rows.authors.reseal();
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

/**
 * Returns the next key, from its source or newly created. A new key is stored in the source before anything is encrypted with it.
 */
async function nextKey(source: KeySource): Promise<Buffer> {
  const waiting = await source.read('next');
  if (waiting.at === 'found') return waiting.key;
  if (!source.save) {
    throw new Failure(
      'invalid_config',
      `The current key comes from ${source.name}; provide the new key as HELMDECK_MEMORY_KEY_NEXT and rotate again.`,
    );
  }
  const key = randomBytes(MASTER_KEY_BYTES);
  await source.save('next', key);
  return key;
}
