import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Connection } from '../../../src/core/store/connection.ts';
import { openDatabase } from '../../../src/core/store/database.ts';
import { diskFolder } from '../../support/temp-folder.ts';

/** Random bytes, short enough that a page holds several and splits often. */
const blobOf = (index: number): Buffer => {
  const seed = createHash('sha512').update(`row ${index}`).digest();
  return Buffer.concat(Array.from({ length: 3 + (index % 9) }, () => seed));
};
const markOf = (index: number): Buffer => blobOf(index).subarray(0, 32);

describe('deleted bytes that SQLite leaves in its pages (R-PURGE-01)', () => {
  let file: string;
  let connection: Connection;
  let db: Database;

  beforeEach(() => {
    file = join(diskFolder(), 'memory.db');
    connection = new Connection(file, openDatabase(file));
    const opened = connection;
    onTestFinished(() => opened.close());
    db = connection.db;
    random = 1;
  });

  /** Purges as the store does. */
  const commit = (): void => {
    connection.commit();
    connection.checkpointLongLog();
  };
  const insert = (from: number, to: number): void => {
    const put = db.prepare("INSERT INTO entry VALUES (1, 1, ?, 'x', ?, 1, 1, ?)");
    connection.begin();
    for (let index = from; index < to; index += 1) put.run(createHash('md5').update(`${index}`).digest(), index, blobOf(index));
    commit();
  };

  let random: number;
  const upTo = (limit: number): number => (random = (random * 48_271) % 2_147_483_647) % limit;

  /** Growing rows split pages, and deleted rows merge them. */
  const churn = (changes: number): void => {
    const resize = db.prepare('UPDATE entry SET sealed = ? WHERE created_at = ?');
    const remove = db.prepare('DELETE FROM entry WHERE created_at = ?');
    for (let change = 0; change < changes; change += 1) {
      const index = upTo(2000);
      const blob = blobOf(index);
      connection.begin();
      if (change % 4 === 0) remove.run(index);
      else resize.run(Buffer.concat([blob, blob, blob]).subarray(0, 64 + upTo(2 * blob.length)), index);
      commit();
    }
  };
  /** Deletes most rows one by one, so that nearly empty pages are merged. */
  const thin = (): void => {
    connection.begin();
    const remove = db.prepare('DELETE FROM entry WHERE created_at = ?');
    for (let index = 0; index < 2000; index += 1) if (index % 9 > 1) remove.run(index);
    commit();
  };
  const removed = (): number[] => {
    const left = new Set(db.prepare('SELECT created_at FROM entry').pluck().all() as number[]);
    return Array.from({ length: 2000 }, (_, index) => index).filter((index) => !left.has(index));
  };
  const standing = (): number => {
    const bytes = readFileSync(file);
    return removed().filter((index) => bytes.includes(markOf(index))).length;
  };

  test('are copies of rows, in spite of secure_delete, and are scrubbed', async () => {
    insert(0, 2000);
    churn(600);
    thin();
    // SQLite alone truncates the log and leaves the copies.
    db.pragma('wal_checkpoint(TRUNCATE)');
    expect(removed().length).toBeGreaterThan(100);
    expect(standing()).toBeGreaterThan(0);
    expect(await connection.scanForRemnants()).toBe(true);
    expect(connection.truncateLog()).toBe(true);
    expect(standing()).toBe(0);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  test('do not come back from the page cache when the pages are written again', () => {
    insert(0, 2000);
    for (let turn = 2; turn < 6; turn += 1) {
      churn(600);
      connection.truncateLog();
      expect(standing(), `turn ${turn}`).toBe(0);
      db.exec(`UPDATE entry SET updated_at = ${turn}`);
      db.exec('VACUUM');
      connection.truncateLog();
      expect(standing(), `turn ${turn}, written again`).toBe(0);
    }
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  test('are found when a long log was moved into the file in between', () => {
    for (let from = 0; from < 2000; from += 20) {
      insert(from, from + 20);
      if (from % 200 === 0) churn(200);
    }
    churn(1500);
    thin();
    connection.truncateLog();
    expect(standing()).toBe(0);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  test('are found in the file of an earlier run', async () => {
    insert(0, 2000);
    churn(600);
    thin();
    db.pragma('wal_checkpoint(TRUNCATE)');
    const next = new Connection(file, openDatabase(file));
    expect(standing()).toBeGreaterThan(0);
    expect(await next.scanForRemnants()).toBe(true);
    expect(next.truncateLog()).toBe(true);
    expect(standing()).toBe(0);
    expect(await next.scanForRemnants()).toBe(false);
    next.close();
  });

  test('are found after a reader kept the log from being truncated', async () => {
    insert(0, 1000);
    connection.truncateLog();
    insert(1000, 2000);
    const reader = new Sqlite(file);
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM entry').get();
    expect(connection.truncateLog()).toBe(false);
    reader.exec('COMMIT');
    reader.close();
    // The next commit restarts the log, with fewer pages than were recorded before.
    thin();
    expect(connection.truncateLog()).toBe(true);
    expect(await connection.scanForRemnants()).toBe(false);
    expect(standing()).toBe(0);
  });

  test('the file grows before a commit needs it, and shrinks afterwards', () => {
    insert(0, 2000);
    const pages = db.pragma('page_count', { simple: true }) as number;
    expect(statSync(file).size).toBeGreaterThanOrEqual(pages * 4096);
    connection.truncateLog();
    expect(statSync(file).size).toBe(pages * 4096);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  test('no stored row is changed', () => {
    insert(0, 2000);
    churn(600);
    const rows = db.prepare('SELECT * FROM entry ORDER BY rowid').all();
    connection.truncateLog();
    expect(db.prepare('SELECT * FROM entry ORDER BY rowid').all()).toEqual(rows);
    expect(
      db
        .prepare('SELECT count(*) FROM entry INDEXED BY entry_key WHERE namespace = 1 AND kind = 1 AND kind <> 2 AND kind <> 6')
        .pluck()
        .get(),
    ).toBe(rows.length);
  });

  test('the log stays short, however much is written', () => {
    const frames = (): number => (db.pragma('wal_checkpoint(NOOP)') as { log: number }[])[0]?.log ?? 0;
    let longest = 0;
    for (let from = 0; from < 2000; from += 10) {
      insert(from, from + 10);
      longest = Math.max(longest, frames());
    }
    for (let turn = 0; turn < 10; turn += 1) {
      churn(200);
      longest = Math.max(longest, frames());
    }
    expect(longest).toBeGreaterThan(500);
    expect(longest).toBeLessThan(3000);
  });
});
