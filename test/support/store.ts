import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { environmentSource } from '../../src/core/crypto/keys/environment-source.ts';
import type { KeySource, KeySources } from '../../src/core/crypto/keys/key-source.ts';
import { openStore } from '../../src/core/store/open-store.ts';
import type { Author, EntryDraft, MemoryStore, Quota } from '../../src/core/store/store.ts';
import type { Clock } from '../../src/core/time/clock.ts';
import { DAY } from './clock.ts';

export const A_KEY = '5e'.repeat(32);
export const ANOTHER_KEY = 'c4'.repeat(32);

export const anAuthor: Author = { client: 'claude-code', origin: 'mcp', token: 'token-1' };

export const aDraft = (over: Partial<EntryDraft> = {}): EntryDraft => ({
  key: 'preferences/frontend-framework',
  value: 'React over Vue (Konflux project constraint)',
  category: 'preferences',
  tags: ['frontend', 'konflux'],
  author: anAuthor,
  lifetime: 90 * DAY,
  ...over,
});

/** The key sources of a headless start: only the environment. */
export const keyFrom =
  (environment: Record<string, string>): KeySources =>
  () => {
    const source = environmentSource(environment);
    return source ? [source] : [];
  };

export const withKey = (key = A_KEY): KeySources => keyFrom({ HELMDECK_MEMORY_KEY: key });

/** A key source whose state the test sets. */
export function manualKeySource(
  reading: Awaited<ReturnType<KeySource['read']>>,
): KeySource & { set(next: typeof reading): void; asked: number } {
  let present = reading;
  const source = {
    name: 'the keychain of the test',
    createsOnFirstStart: false,
    asked: 0,
    // A copy, because the reader can wipe the key afterwards.
    read: async () => {
      source.asked += 1;
      return present.at === 'found' ? { at: 'found' as const, key: Buffer.from(present.key) } : present;
    },
    set(next: typeof reading) {
      present = next;
    },
  };
  return source;
}

/** Opens a memory in a file. It is closed after the test if the test does not close it. */
export async function openFileStore(
  folder: string,
  clock: Clock,
  sources: KeySources = withKey(),
  quota?: Quota,
): Promise<MemoryStore> {
  const store = await openStore({ folder, clock, sources, ...(quota && { quota }) });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

/** Changes rows of a closed memory to values that the table does not allow, as page damage can. Returns the number of rows. */
export function forceRow(folder: string, row: number, change: string): number {
  const file = join(folder, 'memory.db');
  const schema = (edit: (sql: string) => string): void => {
    const db = new Sqlite(file);
    db.unsafeMode(true);
    db.pragma('writable_schema = ON');
    const sql = db.prepare("SELECT sql FROM sqlite_schema WHERE name = 'entry'").pluck().get() as string;
    db.prepare("UPDATE sqlite_schema SET sql = ? WHERE name = 'entry'").run(edit(sql));
    db.close();
  };
  let strict = '';
  schema((sql) => {
    strict = sql;
    return sql.replace(/\bSTRICT\b/, '').replaceAll(/\bNOT NULL\b/g, '');
  });
  const db = new Sqlite(file);
  db.pragma('ignore_check_constraints = ON');
  const { changes } = db.prepare(`UPDATE entry SET ${change} WHERE rowid = ?`).run(row);
  db.close();
  schema(() => strict);
  return changes;
}
