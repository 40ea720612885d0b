import { createDecipheriv, createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { fileSource } from '../src/core/crypto/keys/file-source.ts';
import { openDatabase } from '../src/core/store/database.ts';
import { openStore } from '../src/core/store/open-store.ts';
import type { DatabaseOptions } from '../src/core/store/postgres/database.ts';
import type { EntryDraft, MemoryStore, Quota, Space } from '../src/core/store/store.ts';
import { type Clock, systemClock } from '../src/core/time/clock.ts';

const DAY = 86_400_000;

/** A typical fact with a value of 200 bytes. */
export const aFact = (index: number): EntryDraft => ({
  key: `preferences/area/${index}`,
  value: `${index} `.padEnd(200, 'what the owner said about it, in plain words; '),
  category: 'user_facts',
  tags: ['frontend'],
  author: { client: 'claude-code', origin: 'mcp', token: 'c2f1e0d9' },
  lifetime: 90 * DAY,
});

/** The sealed column of that fact's row. */
export const SEALED_BYTES = 268;

export interface Ours extends AsyncDisposable {
  readonly store: MemoryStore;
  readonly facts: Space;
  readonly file: string;
}

export interface Floor extends Disposable {
  readonly db: Database;
  readonly file: string;
  insert(index: number): void;
  batch(from: number, count: number): void;
  get(index: number): Buffer;
  /** The fifty newest facts before a given time. */
  page(from: number): Buffer[];
}

const folderFor = (name: string): string => mkdtempSync(join(tmpdir(), `helmdeck-bench-${name}-`));

export interface Options {
  readonly quota?: Quota;
  readonly clock?: Clock;
  readonly categoryOf?: (index: number) => string;
  readonly textOf?: (index: number) => string;
  readonly factOf?: (index: number) => Pick<EntryDraft, 'key' | 'value' | 'category' | 'tags'>;
  /** A database server that stores the facts. If absent, a file does. */
  readonly database?: DatabaseOptions;
}

/** Our store with the given number of facts. */
export async function ours(
  facts: number,
  { quota, clock = systemClock, categoryOf, textOf, factOf, database }: Options = {},
): Promise<Ours> {
  const folder = folderFor('ours');
  await fileSource(folder).save('current', randomBytes(32));
  const store = await openStore({ folder, clock, sources: () => [fileSource(folder)], database, ...(quota && { quota }) });
  const space = store.space({ subject: 'me' }, 'fact');
  const draftOf = (index: number): EntryDraft => ({
    ...aFact(index),
    ...(categoryOf && { category: categoryOf(index) }),
    ...(textOf && { value: textOf(index) }),
    ...factOf?.(index),
  });
  for (let from = 0; from < facts; from += 256) {
    await Promise.all(Array.from({ length: Math.min(256, facts - from) }, (_, more) => space.put(draftOf(from + more))));
  }
  return {
    store,
    facts: space,
    file: join(folder, 'memory.db'),
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

/** The same rows in bare SQLite, without our code. */
export function floor(facts: number): Floor {
  const folder = folderFor('floor');
  const file = join(folder, 'memory.db');
  const db = openDatabase(file);
  // SQLite's default.
  db.pragma('wal_autocheckpoint = 1000');
  db.exec("INSERT INTO namespace (id, subject, session) VALUES (1, 'me', '')");
  const hashes = createSecretKey(randomBytes(32));
  const secret = createSecretKey(randomBytes(32));
  const hash = (index: number): Buffer => createHmac('sha256', hashes).update(`${index}`).digest().subarray(0, 16);
  const put = db.prepare(
    'INSERT INTO entry (namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed) VALUES (1, 1, ?, ?, ?, ?, ?, ?)',
  );
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const columns = 'rowid AS row, key_hash, category, created_at, updated_at, expires_at, sealed';
  const one = db.prepare(
    `SELECT ${columns} FROM entry WHERE namespace = 1 AND kind = 1 AND kind <> 2 AND kind <> 6 AND substr(key_hash, 1, 8) = substr(?, 1, 8) AND key_hash = ?`,
  );
  const newest = db.prepare(
    `SELECT ${columns} FROM entry WHERE namespace = 1 AND kind = 1 AND kind <> 2 AND updated_at <= ? ORDER BY updated_at DESC, rowid DESC LIMIT 50`,
  );
  const sealed = randomBytes(SEALED_BYTES);
  const open = (bytes: Buffer): Buffer => {
    const decipher = createDecipheriv('aes-256-gcm', secret, bytes.subarray(9, 21), { authTagLength: 16 });
    decipher.setAAD(bytes.subarray(0, 64));
    decipher.setAuthTag(bytes.subarray(-16));
    const plain = decipher.update(bytes.subarray(21, -16));
    try {
      decipher.final();
    } catch {
      // The bytes are random, so decryption fails. It costs the same as success.
    }
    return plain;
  };
  const insert = (index: number): void => {
    const now = Date.now();
    put.run(hash(index), '', 0, now, now + 90 * DAY, sealed);
  };
  const batch = (from: number, count: number): void => {
    begin.run();
    for (let more = 0; more < count; more += 1) insert(from + more);
    commit.run();
  };
  for (let from = 0; from < facts; from += 256) batch(from, Math.min(256, facts - from));
  return {
    db,
    file,
    insert,
    batch,
    get: (index) => open((one.get(hash(index), hash(index)) as { sealed: Buffer }).sealed),
    page: (from) => (newest.all(from) as { sealed: Buffer }[]).map((row) => open(row.sealed)),
    [Symbol.dispose]() {
      db.close();
      rmSync(folder, { recursive: true });
    },
  };
}
