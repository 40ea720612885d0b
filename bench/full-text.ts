import Database from 'better-sqlite3';
import type { SearchableFact } from '../src/core/search/fact-index.ts';

/** SQLite's full-text index over facts, in memory and without encryption. It is the floor of the search benches. */
export interface FullText extends Disposable {
  add(fact: Pick<SearchableFact, 'key' | 'tags' | 'value'>): void;
  /** Searches for any of the words of a text. A word with hyphens or points is a phrase. */
  search(text: string, limit: number): unknown;
}

/** Opens the index in a transaction. `search` ends the transaction. */
export function fullText(): FullText {
  const db = new Database(':memory:');
  db.exec('CREATE VIRTUAL TABLE fact USING fts5(key, tags, value)');
  const insert = db.prepare('INSERT INTO fact VALUES (?, ?, ?)');
  const query = db.prepare('SELECT key, value FROM fact WHERE fact MATCH ? ORDER BY bm25(fact) LIMIT ?');
  db.exec('BEGIN');
  return {
    add({ key, tags, value }) {
      insert.run(key, tags.join(' '), value);
    },
    search(text, limit) {
      if (db.inTransaction) db.exec('COMMIT');
      const words = text.split(/\s+/).map((word) => `"${word.replaceAll('"', '')}"`);
      return query.all(words.join(' OR '), limit);
    },
    [Symbol.dispose]() {
      db.close();
    },
  };
}
