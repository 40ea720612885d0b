import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { keyIdOf } from '../crypto/cipher.ts';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import { KeyRing, MASTER_KEY_BYTES, SealingKey } from '../crypto/key-ring.ts';
import type { KeySource } from '../crypto/keys/key-source.ts';
import { wrapKey, RECOVERY_WRAPPED_KEY, RECOVERY_PUBLIC_KEY, RECOVERY_WRAPPED_RETIRING_KEY } from '../crypto/recovery-key.ts';
import type { CommitQueue } from '../store/commit-queue.ts';
import type { Connection, EntryRow } from '../store/connection.ts';
import { namespaceOf } from '../store/forgetting.ts';
import type { SealedRows } from '../store/sealed-rows.ts';
import { ALL_KINDS, KIND_BY_NUMBER } from '../store/statements.ts';
import type { Kind } from '../store/store.ts';
import { walkEntries } from './verification.ts';

/** A slice ends after this long, so that nobody waiting behind it notices. */
const SLICE_MS = 3;
const ROWS_AT_ONCE = 32;
const PAGES_AT_ONCE = 200;
const PLACE = 'rotation';

export type RotationState = { at: 'none' } | { at: 'running'; done: number; of: number };

const EVERYTHING: ReadonlySet<Kind> = new Set(ALL_KINDS);
const FACTS_WITH_VERSIONS: ReadonlySet<Kind> = new Set(ALL_KINDS.filter((kind) => kind !== 'history'));

interface Deps {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly rows: SealedRows;
  readonly queue: CommitQueue;
  /** Segments that another file has opened under the next key; none unless told. */
  segmentsOf?(key: Buffer): number;
}

interface WalkedRow extends EntryRow {
  readonly kind: number;
  readonly namespace: number;
}

/**
 * Leaves one master key for another, row by row, while everything stays readable and writable. Each slice is one commit
 * that also keeps the place reached, so a killed program goes on where it stood. The old key is let go only after every
 * row has been looked at once more (R-KEY).
 */
export class Rotation {
  readonly #deps: Deps;
  #state: RotationState = { at: 'none' };
  #stopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get state(): RotationState {
    return this.#state;
  }

  /** Ends the work at the next slice; the next start goes on from there. */
  stop(): void {
    this.#stopped = true;
  }

  /** Makes a new key, or takes the one that its owner handed in as the next, and moves everything under it. */
  async run(): Promise<void> {
    if (this.#state.at === 'running')
      throw new Failure('invalid_input', 'The key is being rotated already; wait until that has ended.');
    const { keys } = this.#deps;
    // The failure that says why there is no key.
    const { retiring } = keys.ring;
    this.#state = { at: 'running', done: 0, of: 0 };
    try {
      if (!retiring) await this.#begin();
      await this.#walk();
    } finally {
      this.#state = { at: 'none' };
    }
  }

  async #begin(): Promise<void> {
    const { keys, queue, connection } = this.#deps;
    const { source, ring } = keys.requireKeys();
    const bytes = await nextKey(source);
    const next = new SealingKey(bytes);
    if (next.id.equals(ring.current.id)) {
      throw new Failure('invalid_input', 'The next key is the one in use; hand in a new one, made with: openssl rand -hex 32.');
    }
    await queue.run(() => {
      // It may have been locked while the key's place was asked.
      keys.requireKeys();
      connection.sql.retireKey.run();
      connection.sql.insertKeyRecord.run(next.id, 'current', next.proof(), source.name);
      connection.sql.updateSegment.run(this.#deps.segmentsOf?.(next.id) ?? 0, next.id);
      connection.setMeta(PLACE, 0);
      // Until the end both keys are needed, so both can be recovered.
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
    // Versions move with their fact. Those whose fact is broken are left, and move in a pass of their own.
    for (const kinds of [FACTS_WITH_VERSIONS, EVERYTHING]) {
      for (let moved = -1; moved !== 0;) {
        moved = await this.#pass(kinds);
        await queue.run(() => connection.setMeta(PLACE, 0));
      }
    }
    await this.#verify();
    await this.#end();
  }

  /** Once through all rows, from the place that an earlier run reached; how many were moved. */
  async #pass(kinds: ReadonlySet<Kind>): Promise<number> {
    const { connection, queue } = this.#deps;
    const of = connection.sql.countRows.get() as number;
    let done = 0;
    for (let moved = 0; ;) {
      this.#requireTime();
      const slice = await queue.run(() => this.#slice(kinds));
      moved += slice.moved;
      done += slice.seen;
      this.#state = { at: 'running', done: Math.min(done, of), of };
      if (slice.seen === 0) return moved;
      await nextTurn();
      this.#clear();
    }
  }

  /** Every page of the file changes; cleared by and by, nobody has to wait for all of them at the end. */
  #clear(): void {
    const { connection } = this.#deps;
    if (connection.changedPages < PAGES_AT_ONCE) return;
    try {
      connection.truncateLog();
    } catch {
      // Somebody reads or writes the file just now; the next slice comes soon.
    }
  }

  /** Opens everything once more. What was known to be broken before may be left behind, nothing else. */
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
    if (this.#stopped) throw new Failure('cancelled', 'The rotation was interrupted; it goes on at the next start.');
  }

  /** Inside a transaction. */
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
        // A broken seal opens under no key; the row stays, counted, until it is forgotten or expires.
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

  /** First the database lets the old key go, then its place: whatever dies between, the key in use is there. */
  async #end(): Promise<void> {
    const { connection, keys, queue } = this.#deps;
    const { ring, source } = keys.requireKeys();
    // The log still holds rows as they were under the old key.
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

/** Kept in its place before anything is sealed with it. */
async function nextKey(source: KeySource): Promise<Buffer> {
  const waiting = await source.read('next');
  if (waiting.at === 'found') return waiting.key;
  if (!source.save) {
    throw new Failure(
      'invalid_input',
      `This key comes from ${source.name}; hand in the new one as HELMDECK_MEMORY_KEY_NEXT and rotate again.`,
    );
  }
  const key = randomBytes(MASTER_KEY_BYTES);
  await source.save('next', key);
  return key;
}
