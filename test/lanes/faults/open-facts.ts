import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import Sqlite from 'better-sqlite3';
import { CATEGORY } from '../../../src/contract/categories.ts';
import { KeyRing, SealingKey, openEntry } from '../../../src/core/crypto/cipher.ts';

/** Searches files as an attacker with the key would: through SQLite and in the raw bytes. */

const SAMPLES = 40;
/** Every sealed blob is unique from its nonce on. */
const NEEDLE = { from: 9, to: 33 };
/** Facts and their earlier versions. */
const KINDS = { 1: 'fact', 2: 'history' } as const;

interface SealedRow {
  readonly kind: 1 | 2;
  readonly key_hash: Buffer;
  readonly category: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly expires_at: number;
  readonly sealed: Buffer;
  readonly subject: string | null;
  readonly session: string | null;
}

export const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** The given keys and every key that is now in the folder. */
export function keysIn(folder: string, others: readonly Buffer[]): Buffer[] {
  const kept = ['memory.key', 'memory.key.next'].map((name) => join(folder, name)).filter((file) => existsSync(file));
  return [...others, ...kept.map((file) => Buffer.from(readFileSync(file, 'utf8').trim(), 'hex'))].filter(
    ({ length }) => length === 32,
  );
}

/** Counts the facts in a file that open with one of the keys. Works on a copy, so that the file does not change. */
function openFacts(file: string, keys: readonly Buffer[], scratch: string): number {
  const rings = keys.map((key) => new KeyRing(new SealingKey(key)));
  return sealedRows(file, scratch).filter((row) => rings.some((ring) => opens(ring, row))).length;
}

function opens(ring: KeyRing, row: SealedRow): boolean {
  const { subject, session } = row;
  const namespace = session ? { subject: subject ?? 'me', session } : { subject: subject ?? 'me' };
  try {
    openEntry(
      ring,
      {
        namespace,
        kind: KINDS[row.kind],
        keyHash: row.key_hash,
        category: row.category || CATEGORY.default,
        createdAt: row.created_at || row.updated_at,
        updatedAt: row.updated_at,
        expiresAt: row.expires_at,
      },
      row.sealed,
    );
    return true;
  } catch {
    return false;
  }
}

/** Returns the rows that SQLite can read; none if the file is not our database. */
function sealedRows(file: string, scratch: string): SealedRow[] {
  const copy = join(scratch, 'looked-at.db');
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch);
  copyFileSync(file, copy);
  if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${copy}-wal`);
  const rows: SealedRow[] = [];
  let db: Sqlite.Database | undefined;
  try {
    db = new Sqlite(copy);
    const all = db.prepare(
      'SELECT entry.*, subject, session FROM entry NOT INDEXED LEFT JOIN namespace ON namespace.id = entry.namespace WHERE kind IN (1, 2)',
    );
    for (const row of all.iterate()) rows.push(row as SealedRow);
  } catch {
    // Rows before the damage count.
  } finally {
    db?.close();
  }
  return rows;
}

/** Pieces of the sealed blobs in a file, to search for in other files. */
export function needlesIn(file: string, scratch: string): Buffer[] {
  const rows = sealedRows(file, scratch);
  const step = Math.max(1, Math.floor(rows.length / SAMPLES));
  return rows.filter((_, index) => index % step === 0).map(({ sealed }) => sealed.subarray(NEEDLE.from, NEEDLE.to));
}

export interface Looked {
  /** Files that open to facts, except backups. */
  readonly wrong: string[];
  /** Backups under a final name that open to facts. */
  readonly backups: number;
}

const BACKUP = /^backups\/(?:memory|before-restore|schema-\d+)-\d+\.db$/;

/** Examines a data folder after `forget all`. */
export function lookThrough(folder: string, keys: readonly Buffer[], needles: readonly Buffer[], scratch: string): Looked {
  const wrong: string[] = [];
  let backups = 0;
  for (const file of filesIn(folder)) {
    const name = relative(folder, file);
    const facts = openFacts(file, keys, scratch);
    if (BACKUP.test(name)) {
      if (facts > 0) backups += 1;
      continue;
    }
    if (facts > 0) wrong.push(`${name} opens to ${facts} facts`);
    const bytes = readFileSync(file);
    const found = needles.filter((needle) => bytes.includes(needle)).length;
    if (found > 0) wrong.push(`${name} contains the bytes of ${found} sealed facts`);
  }
  return { wrong, backups };
}
