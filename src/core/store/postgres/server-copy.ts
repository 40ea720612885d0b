import { isNumbered, type KeyRing, type SealingKey, sealEntry } from '../../crypto/cipher.ts';
import {
  type CopiedRow,
  type CopySource,
  type CopyTarget,
  type NumberedTombstone,
  openRow,
  type SmallTables,
} from '../../upkeep/copy-memory.ts';
import { MOVED, MOVING } from '../../upkeep/moved.ts';
import type { RowWithPlace } from '../../upkeep/rotation.ts';
import { KIND_BY_NUMBER } from '../statements.ts';
import type { Entry, Namespace } from '../store.ts';
import type { PlacedRow } from './change-set.ts';
import type { RunQuery } from './database.ts';
import { deleteSameKeys, insertRows } from './flush.ts';
import { Mirror } from './mirror.ts';
import { COLUMNS } from './sql.ts';

/** A memory in PostgreSQL, as the source of a copy. */
export class ServerCopySource implements CopySource {
  protected readonly run: RunQuery;
  protected readonly ring: KeyRing | undefined;

  /** Without keys, no row can be opened, and rows are compared by their bytes. */
  constructor(run: RunQuery, ring: KeyRing | undefined) {
    this.run = run;
    this.ring = ring;
  }

  async readSmall(): Promise<SmallTables> {
    const mirror = new Mirror();
    await mirror.read(this.run, new Set(['meta', 'keys', 'namespaces']));
    return {
      meta: mirror.meta,
      keys: mirror.keys,
      namespaces: [...mirror.namespaces.values()],
      tombstones: await this.run<NumberedTombstone>(
        'SELECT number, at, trusted, hash, subject, session, kind, category FROM tombstone ORDER BY number',
      ),
      revocations: await this.run<{ id: string; expires_at: number }>('SELECT id, expires_at FROM revoked_token'),
    };
  }

  rowsAfter(place: number, limit: number): Promise<readonly RowWithPlace[]> {
    const sql = `SELECT ${COLUMNS} FROM entry WHERE number > $1 ORDER BY number LIMIT $2`;
    return this.run<PlacedRow>(sql, [place, limit]);
  }

  open(namespace: Namespace, row: RowWithPlace): Entry | undefined {
    return this.ring && openRow(this.ring, namespace, row);
  }
}

interface TargetDeps {
  /** Reads outside transactions. */
  readonly read: RunQuery;
  readonly ring: KeyRing;
  /** Runs a step in one transaction that holds the lock of the writers. */
  readonly commit: (step: (run: RunQuery) => Promise<void>) => Promise<void>;
}

/** A memory in PostgreSQL, as the target of a copy. */
export class ServerCopy extends ServerCopySource implements CopyTarget {
  readonly #commit: TargetDeps['commit'];
  readonly #key: SealingKey;

  constructor({ read, ring, commit }: TargetDeps) {
    super(read, ring);
    this.#key = ring.current;
    this.#commit = commit;
  }

  writeSmall({ meta, keys, namespaces, tombstones, revocations }: SmallTables): Promise<void> {
    return this.#commit(async (run) => {
      await run('DELETE FROM meta WHERE name <> ALL ($1::text[])', [[MOVING, MOVED]]);
      for (const [name, value] of meta) {
        const isSecret = Buffer.isBuffer(value);
        await run('INSERT INTO meta (name, secret, plain) VALUES ($1, $2, $3)', [
          name,
          isSecret ? value : null,
          isSecret ? null : value,
        ]);
      }
      const opened = await run<{ id: Buffer; segment: number }>('SELECT id, segment FROM master_key');
      for (const table of ['master_key', 'namespace', 'tombstone', 'revoked_token']) await run(`DELETE FROM ${table}`);
      for (const { id, role, proof, source, segment } of keys) {
        const own = opened.find((record) => record.id.equals(id))?.segment ?? 0;
        const values = [id, role, proof, source, Math.max(segment, own)];
        await run('INSERT INTO master_key (id, role, proof, source, segment) VALUES ($1, $2, $3, $4, $5)', values);
      }
      const column = <T, K extends keyof T>(rows: readonly T[], name: K): T[K][] => rows.map((row) => row[name]);
      await run('INSERT INTO namespace (id, subject, session) SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])', [
        column(namespaces, 'id'),
        column(namespaces, 'subject'),
        column(namespaces, 'session'),
      ]);
      await run(
        `INSERT INTO tombstone (number, at, trusted, hash, subject, session, kind, category) SELECT * FROM
           unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::text[], $6::text[], $7::smallint[], $8::text[])`,
        (['number', 'at', 'trusted', 'hash', 'subject', 'session', 'kind', 'category'] as const).map((name) =>
          column(tombstones, name),
        ),
      );
      await run('INSERT INTO revoked_token (id, expires_at) SELECT * FROM unnest($1::text[], $2::bigint[])', [
        column(revocations, 'id'),
        column(revocations, 'expires_at'),
      ]);
    });
  }

  writeRows(deleted: readonly number[], stored: readonly CopiedRow[]): Promise<void> {
    return this.#commit(async (run) => {
      if (deleted.length > 0) await run('DELETE FROM entry WHERE number = ANY ($1::bigint[])', [deleted]);
      const key = stored.some(needsSeal) ? await this.#openSegment(run) : undefined;
      const rows = stored.map((one) => (key && one.entry && needsSeal(one) ? seal(key, one, one.entry) : one.row));
      await deleteSameKeys(run, rows);
      await insertRows(run, rows);
    }).catch((error: unknown) => {
      // The stored number of the segment is unknown now.
      this.#key.abandonSegment();
      throw error;
    });
  }

  /** Opens a segment of the key if none is open. A segment that was opened before is never used again. */
  async #openSegment(run: RunQuery): Promise<SealingKey> {
    const key = this.#key;
    if (key.recordsLeft >= LEAST_RECORDS) return key;
    const [stored] = await run<{ segment: number }>(
      'UPDATE master_key SET segment = segment + 1 WHERE id = $1 RETURNING segment',
      [key.id],
    );
    key.openSegment(stored?.segment ?? 1);
    return key;
  }
}

/** More than the rows of one commit. */
const LEAST_RECORDS = 1000;

/** Whether a row refers to an author that only a file stores. A row with a broken seal is copied as it is. */
const needsSeal = ({ row, entry }: CopiedRow): boolean => entry !== undefined && isNumbered(row.sealed);

function seal(key: SealingKey, { row, namespace }: CopiedRow, entry: Entry): RowWithPlace {
  const { category, createdAt, updatedAt, expiresAt } = entry;
  const keyHash = key.hash(namespace, entry.key);
  const kind = KIND_BY_NUMBER.get(row.kind) ?? 'fact';
  const sealed = sealEntry(key, { namespace, kind, keyHash, category, createdAt, updatedAt, expiresAt }, entry);
  return { ...row, key_hash: keyHash, sealed };
}
