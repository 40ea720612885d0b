import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../contract/failure.ts';
import { sealedWith } from './cipher.ts';
import type { CommitQueue } from './commit-queue.ts';
import type { Connection, Row } from './connection.ts';
import { named } from './forgetting.ts';
import type { KeyKeeper } from './key-keeper.ts';
import { KeyRing, MASTER_KEY_BYTES, SealingKey } from './key-ring.ts';
import type { KeySource } from './keys/key-source.ts';
import { lockUp, RECOVERY, RECOVERY_PUBLIC_KEY, RECOVERY_RETIRING } from './recovery-key.ts';
import type { SealedRows } from './sealed-rows.ts';
import { ALL_KINDS, KIND_OF } from './statements.ts';
import type { Kind } from './store.ts';
import { walk } from './verification.ts';

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

interface WalkedRow extends Row {
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
    const { source, ring } = keys.held();
    const bytes = await nextKey(source);
    const next = new SealingKey(bytes);
    if (next.id.equals(ring.current.id)) {
      throw new Failure('invalid_input', 'The next key is the one in use; hand in a new one, made with: openssl rand -hex 32.');
    }
    await queue.run(() => {
      // It may have been locked while the key's place was asked.
      keys.held();
      connection.sql.retireKey.run();
      connection.sql.keepKeyRecord.run(next.id, 'current', next.proof(), source.name);
      connection.sql.keepSegment.run(this.#deps.segmentsOf?.(next.id) ?? 0, next.id);
      connection.keepMeta(PLACE, 0);
      // Until the end both keys are needed, so both can be recovered.
      const recovery = keys.secret(RECOVERY_PUBLIC_KEY);
      const lockedUp = connection.meta(RECOVERY);
      if (recovery && Buffer.isBuffer(lockedUp)) {
        connection.keepMeta(RECOVERY_RETIRING, lockedUp);
        connection.keepMeta(RECOVERY, lockUp(bytes, recovery));
      }
    });
    bytes.fill(0);
    keys.take({ ring: new KeyRing(next, ring.current), source, slot: 'next' });
  }

  async #walk(): Promise<void> {
    const { connection, queue } = this.#deps;
    // Versions move with their fact. Those whose fact is broken are left, and move in a pass of their own.
    for (const kinds of [FACTS_WITH_VERSIONS, EVERYTHING]) {
      for (let moved = -1; moved !== 0;) {
        moved = await this.#pass(kinds);
        await queue.run(() => connection.keepMeta(PLACE, 0));
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
    if (connection.changed < PAGES_AT_ONCE) return;
    try {
      connection.emptyLog();
    } catch {
      // Somebody reads or writes the file just now; the next slice comes soon.
    }
  }

  /** Opens everything once more. What was known to be broken before may be left behind, nothing else. */
  async #verify(): Promise<void> {
    const { connection, rows, keys } = this.#deps;
    const known = rows.broken;
    let left = 0;
    for await (const slice of walk(connection, rows)) {
      this.#requireTime();
      left += slice.filter(({ row, entry }) => entry && !keys.ring.current.id.equals(sealedWith(row.sealed))).length;
    }
    const broken = rows.broken - known + left;
    if (broken <= 0) return;
    throw new Failure(
      'store_unavailable',
      `${broken} entries do not open under the new key, so the old one is kept; rotate again to leave them behind.`,
    );
  }

  #requireTime(): void {
    if (this.#stopped) throw new Failure('store_unavailable', 'The rotation was interrupted; it goes on at the next start.');
  }

  /** Inside a transaction. */
  #slice(kinds: ReadonlySet<Kind>): { seen: number; moved: number } {
    const { connection, rows, keys } = this.#deps;
    const namespaces = new Map(connection.namespaces().map((row) => [row.id, named(row)]));
    const { current } = keys.ring;
    let place = Number(connection.meta(PLACE) ?? 0);
    let seen = 0;
    let moved = 0;
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) {
      const walked = connection.sql.walk.all(place, ROWS_AT_ONCE) as WalkedRow[];
      for (const row of walked) {
        const namespace = namespaces.get(row.namespace);
        const kind = KIND_OF.get(row.kind);
        place = row.row;
        if (!namespace || !kind || !kinds.has(kind) || current.id.equals(sealedWith(row.sealed))) continue;
        const entry = rows.open(namespace, kind, row);
        // A broken seal opens under no key; the row stays, counted, until it is forgotten or expires.
        if (!entry) continue;
        rows.reseal(namespace, kind, row, entry);
        moved += 1;
      }
      seen += walked.length;
      if (walked.length < ROWS_AT_ONCE) break;
    }
    connection.keepMeta(PLACE, place);
    return { seen, moved };
  }

  /** First the database lets the old key go, then its place: whatever dies between, the key in use is there. */
  async #end(): Promise<void> {
    const { connection, keys, queue } = this.#deps;
    const { ring, source } = keys.held();
    // The log still holds rows as they were under the old key.
    if (!connection.emptyLog()) {
      throw new Failure('store_unavailable', 'Another program is reading the file memory.db; close it and rotate again.');
    }
    const bytes = ring.current.export();
    await queue.run(() => {
      keys.sealAnew();
      connection.dropMeta(RECOVERY_RETIRING);
      connection.sql.dropRetired.run();
    });
    keys.take({ ring: new KeyRing(ring.current), source, slot: 'current' });
    if (source.keep) {
      await source.keep('current', bytes);
      await source.remove?.('next');
    }
    bytes.fill(0);
  }
}

/** Kept in its place before anything is sealed with it. */
async function nextKey(source: KeySource): Promise<Buffer> {
  const waiting = await source.read('next');
  if (waiting.at === 'found') return waiting.key;
  if (!source.keep) {
    throw new Failure(
      'invalid_input',
      `This key comes from ${source.name}; hand in the new one as HELMDECK_MEMORY_KEY_NEXT and rotate again.`,
    );
  }
  const key = randomBytes(MASTER_KEY_BYTES);
  await source.keep('next', key);
  return key;
}
