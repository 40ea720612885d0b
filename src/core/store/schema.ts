import type { Database } from 'better-sqlite3';
import { UnusableFile } from '../file/disk-failure.ts';
import { earlierForms, type Migration } from './migrations/index.ts';
import { Sqlite } from './sqlite.ts';

/**
 * `exact`: rejects every schema object that the migrations do not create. `our tables`: ignores all objects except the tables of
 * the migrations.
 */
export type SchemaCheck = 'exact' | 'our tables';

interface SchemaObject {
  readonly type: string;
  /** Null is possible in a damaged or edited file. */
  readonly name: string | null;
  readonly tbl_name: string;
  readonly sql: string | null;
}

/**
 * Maximum characters of an object name in a message. An attacker can choose the names in a tampered file, so messages show only
 * the beginning.
 */
const NAME_CHARACTERS = 60;

/**
 * Lists the differences between a file's schema and the schema that the migrations create. No seal covers the schema, so an
 * attacker could add a trigger, view or index that changes what a statement reads or deletes. For example, a trigger could insert
 * each row again that a forget deletes.
 */
export function schemaDifferences(db: Database, steps: readonly Migration[], check: SchemaCheck = 'exact'): string[] {
  const version = db.pragma('user_version', { simple: true }) as number;
  const expected = new Map(schemaAt(steps, version).map((object) => [object.name, object]));
  const differences: string[] = [];
  for (const found of objectsOf(db)) {
    const wanted = expected.get(found.name);
    expected.delete(found.name);
    if (!wanted) differences.push(...(check === 'exact' ? [`it contains ${named(found)}`] : []));
    else if (!isSame(found, wanted) && (check === 'exact' || wanted.type === 'table'))
      differences.push(`${named(wanted)} was changed`);
  }
  for (const missing of expected.values())
    if (check === 'exact' || missing.type === 'table') differences.push(`${named(missing)} is missing`);
  if (check === 'our tables') return differences;
  // Purging recognizes a page by its type byte. With `auto_vacuum`, SQLite adds pages without a type byte, which purging could
  // overwrite.
  if (db.pragma('auto_vacuum', { simple: true }) !== 0) differences.push('auto_vacuum was turned on');
  if (db.pragma('encoding', { simple: true }) !== 'UTF-8') differences.push('its text encoding was changed');
  return differences;
}

export function requireSchema(db: Database, steps: readonly Migration[], check: SchemaCheck): void {
  const [first] = schemaDifferences(db, steps, check);
  if (first === undefined) return;
  throw new UnusableFile(
    `its schema was changed outside Helmdeck Memory: ${first}`,
    `The schema of this memory was changed outside Helmdeck Memory: ${first}. Restore a backup with: helmdeck-memory restore, or save the readable facts with: helmdeck-memory salvage.`,
  );
}

function schemaAt(steps: readonly Migration[], version: number): readonly SchemaObject[] {
  const db = new Sqlite(':memory:');
  try {
    for (const apply of steps.slice(0, version)) apply(db);
    return objectsOf(db);
  } finally {
    db.close();
  }
}

const objectsOf = (db: Database): SchemaObject[] =>
  db.prepare('SELECT type, name, tbl_name, sql FROM main.sqlite_schema').all() as SchemaObject[];

const isSame = (found: SchemaObject, wanted: SchemaObject): boolean =>
  found.type === wanted.type && found.tbl_name === wanted.tbl_name && (found.sql === wanted.sql || isEarlierForm(found));

/**
 * Whether an index has an accepted earlier definition. The name must match too, so that the definition of one index is not accepted
 * for another index.
 */
const isEarlierForm = ({ name, sql }: SchemaObject): boolean =>
  sql !== null && sql.includes(` INDEX ${name} ON `) && earlierForms.has(sql);

const named = ({ type, name }: SchemaObject): string => `the ${type} ${JSON.stringify(name?.slice(0, NAME_CHARACTERS) ?? '')}`;
